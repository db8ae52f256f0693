//! The whole report.

use std::error::Error;

use crate::{
    args::SEED,
    chart::{Panel, svg},
    client::{KINDS, Kind},
    layer,
    report::{DETAILS, bars, details, short, table},
    row::{LIMIT, ODD_ROWS, ROWS, Row},
    run,
    score::{Score, Scoring},
};

/// Besides that of the table.
const SEEDS: std::ops::Range<u64> = SEED + 1..SEED + 6;
/// Besides that of the table.
const LIMITS: [u32; 2] = [5, 1_000];
/// Those that are run through the layer too.
const LAYERED: [&str; 4] = ["bucket", "bucket+ra", "window+ra", "headers-policies"];
/// How much the two may differ: tokio's timers have a grain of a millisecond, so the runs are alike and not the same.
const TOLERANCE: f64 = 0.01;

const PREFACE: &str = "\
# Pacing: share of the limit, and requests refused on the way

Made by `cargo bench --bench pacing`, in virtual time and with seeded chance, in a few seconds. Demand is endless, at most 200 requests wait or are
in flight, a round trip takes 60 to 80 ms. The client's own ceiling is ten times what the server allows, which it does not know. Scored
from 30 s to 300 s, fixed windows from the beginning of one to the end of another.

- **share**: requests accepted for each that the server allows in that time.
- **refused %**: requests refused for each 100 sent.

![requests over time](chart.svg)
";

const CELLS: &str =
    "Each cell is share / refused %. A bar is missed where the last column says so.";

const SERVERS: &str = "\
The servers allow 50 a second unless said otherwise, and those whose name ends in *+ra* send `Retry-After`, in whole seconds rounded
up; the others say nothing but 429. *bucket* is a token bucket with a burst of 50; *tight* nginx's `limit_req` with `nodelay` and a
burst of 10; *window* 500 in each fixed 10 s; *sliding* 500 in any 10 s; *slow-window* 60 in each fixed 60 s, with a ceiling of 5;
*slow-bucket* 2 a second with a burst of 5. *headers-counters* is *window* with `X-RateLimit-Limit`, `-Remaining` and `-Reset` on every
answer, *headers-policies* with `RateLimit` and `RateLimit-Policy`. *shared* is *bucket* with a stranger on the same key, who asks for
40 % of it in every second minute; the share is that of the rest. *drop* falls to 20 at 100 s and rises to 80 at 200 s. *flaky* loses
1 % of the answers, and 5 % come 2 s late. *sparse* is *bucket* while only 10 a second are wanted.
";

const ODD: &str = "\
*moody* is *bucket* and refuses 2 % besides, whatever the rate. *places* serves 20 at a time, 60 ms each. *late-refusals* is *bucket*
whose refusals take 3 s to come. *restless* goes between 20 and 80 every 20 s. *twins* is *bucket* with two clients that know nothing of
each other, *newcomer* the same with the second 60 s after the first; their split is that of the last 100 s. *pulse* is *bucket* while
only 10 a second are wanted from 60 s to 180 s; it is scored after that.
";

const CLIENTS: &str = "\
The clients: *ours* is this crate; *aws-adaptive* is the rate limiter of the AWS SDKs' adaptive retry mode; *aimd* halves its rate once
for each flight with a refusal and adds 1 % of its ceiling each second; *guide* is a token bucket that a 429 drains and stops for the
time it names, or a second; *sleep* lets each refused caller sleep for the time it was told, or a second; *fixed-right* is a fixed rate
that happens to be the server's; *fixed-10x* one that is ten times too high. All but the fixed ones have the same ceiling.
";

/// The text, and whether engine and layer agree.
pub(crate) fn report() -> Result<(String, bool), Box<dyn Error>> {
    let mut text = format!("{PREFACE}\n## All clients\n\n{CELLS}\n\n");
    let (compared, ours) = compare(ROWS);
    text += &format!("{compared}\n{SERVERS}\n{CLIENTS}\n## Ours\n\n{ours}\n");
    text += "## Other seeds, other limits\n\n";
    text += "Share / refused % of ours; `*` marks a cell that misses a bar. The slow servers are the same at each limit.\n\n";
    text += &elsewhere();
    text += "\n## Servers it was not made for\n\n";
    let (compared, ours) = compare(ODD_ROWS);
    text += &format!("{compared}\n{ODD}\n{ours}\n");
    text += "## Through the layer\n\n";
    text += "The engine, as above, and a whole stack with `ThrottleLayer` against the same server, on tokio's paused clock.\n\n";
    let (layered, agree) = layered()?;
    Ok((text + &layered, agree))
}

/// Ours and two peers on two servers.
pub(crate) fn chart() -> String {
    let mut panels = Vec::new();
    for row in ["drop", "bucket"] {
        for kind in ["ours", "aws-adaptive", "guide"] {
            let row = ROWS.iter().find(|item| item.name == row);
            let kind = KINDS.iter().find(|item| item.name == kind);
            let (Some(row), Some(kind)) = (row, kind) else {
                continue;
            };
            let (scoring, record) = run(row, kind, LIMIT, SEED);
            let score = scoring.score(&record);
            panels.push(Panel {
                title: format!("{}: {}", row.name, kind.name),
                caption: format!("share / refused %: {}", short(&score)),
                record,
            });
        }
    }
    svg(&panels)
}

/// All clients side by side, and ours in detail.
fn compare(rows: &[Row]) -> (String, String) {
    let mut heading = vec!["server"];
    heading.extend(KINDS.iter().map(|kind| kind.name));
    heading.push("bars, ours");
    let (mut compared, mut ours) = (Vec::new(), Vec::new());
    for row in rows {
        let mut cells = vec![row.name.to_owned()];
        let mut verdict = String::new();
        for (index, kind) in KINDS.iter().enumerate() {
            let (scoring, score) = score(row, kind, LIMIT, SEED);
            cells.push(short(&score));
            if index == 0 {
                let missed = scoring.bars.missed(&score);
                verdict = bars(missed.clone());
                ours.push(details(row.name, kind.name, &score, missed));
            }
        }
        cells.push(verdict);
        compared.push(cells);
    }
    (table(&heading, &compared), table(&DETAILS, &ours))
}

fn elsewhere() -> String {
    let seeds = SEEDS.map(|seed| (format!("seed {seed}"), LIMIT, seed));
    let limits = LIMITS.map(|limit| (format!("{limit}/s"), limit, SEED));
    let columns: Vec<(String, u32, u64)> = seeds.chain(limits).collect();
    let mut heading = vec!["server"];
    heading.extend(columns.iter().map(|(name, ..)| &**name));
    let rows: Vec<Vec<String>> = (ROWS.iter())
        .map(|row| {
            let cells = columns.iter().map(|&(_, limit, seed)| {
                let (scoring, score) = score(row, &KINDS[0], limit, seed);
                let missed = scoring.bars.missed(&score);
                let mark = missed.is_some_and(|missed| !missed.is_empty());
                short(&score) + if mark { " *" } else { "" }
            });
            [row.name.to_owned()].into_iter().chain(cells).collect()
        })
        .collect();
    table(&heading, &rows)
}

fn layered() -> Result<(String, bool), Box<dyn Error>> {
    let mut rows = Vec::new();
    let mut all = true;
    for row in ROWS.iter().filter(|row| LAYERED.contains(&row.name)) {
        let (_, engine) = score(row, &KINDS[0], LIMIT, SEED);
        let setup = row.setup(LIMIT, SEED);
        let scoring = Scoring::of(&setup);
        let layer = scoring.score(&layer::run(setup)?);
        let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE;
        let shares = engine.share.zip(layer.share);
        let agree = shares.is_some_and(|(a, b)| near(a, b)) && near(engine.refused, layer.refused);
        let verdict = if agree { "yes" } else { "no" };
        all &= agree;
        rows.push(vec![
            row.name.to_owned(),
            short(&engine),
            short(&layer),
            verdict.to_owned(),
        ]);
    }
    let within = format!("within {TOLERANCE}");
    let table = table(&["server", "engine", "layer", &within], &rows);
    Ok((table, all))
}

fn score(row: &Row, kind: &Kind, limit: u32, seed: u64) -> (Scoring, Score) {
    let (scoring, record) = run(row, kind, limit, seed);
    let score = scoring.score(&record);
    (scoring, score)
}
