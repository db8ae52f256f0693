//! What part of a server's limit a client reaches, and what part of its requests is refused on the way: every client against every
//! server, in virtual time.
//!
//! `cargo bench --bench pacing` makes the whole report, and writes it to `results.md` and `chart.svg` beside this file. With
//! arguments (`-- [server [client]] [--seed N] [--scale LIMIT] [--trace]`) it prints what was asked for and writes nothing.

mod args;
mod chart;
mod client;
mod layer;
mod record;
mod report;
mod rng;
mod row;
mod score;
mod server;
mod whole;
mod world;

use std::{env, error::Error, fs, path::Path};

use args::{Args, pick};
use client::{ADAPT_OFF, KINDS, Kind};
use record::Record;
use report::{DETAILS, details, table};
use row::{ODD_ROWS, ROWS, Row};
use score::Scoring;
use server::At;

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse(env::args().skip(1))?;
    if args.is_whole() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/pacing");
        let (text, agree) = whole::report()?;
        print!("{text}");
        fs::write(folder.join("results.md"), text)?;
        fs::write(folder.join("chart.svg"), whole::chart())?;
        return if agree {
            Ok(())
        } else {
            Err("the engine alone and behind the layer do not agree".into())
        };
    }
    let all = ROWS.iter().chain(ODD_ROWS);
    let kinds = match args.client.as_deref() {
        Some(name) if name == ADAPT_OFF.name => vec![&ADAPT_OFF],
        filter => pick(KINDS.iter(), |kind| kind.name, filter),
    };
    let mut rows = Vec::new();
    for row in pick(all, |row| row.name, args.server.as_deref()) {
        for kind in &kinds {
            let (scoring, record) = run(row, kind, args.limit(), args.seed());
            if args.trace {
                trace(row, kind, &record);
            }
            let score = scoring.score(&record);
            let missed = scoring.bars.missed(&score);
            rows.push(details(row.name, kind.name, &score, missed));
        }
    }
    if rows.is_empty() {
        return Err("no server or no client has such a name".into());
    }
    print!("{}", table(&DETAILS, &rows));
    Ok(())
}

/// Runs one client, or as many as the row wants, against one server.
fn run(row: &Row, kind: &Kind, limit: u32, seed: u64) -> (Scoring, Record) {
    let setup = row.setup(limit, seed);
    let scoring = Scoring::of(&setup);
    let clients = kind.make(&setup);
    (scoring, setup.world.run(clients))
}

/// One line for each second.
fn trace(row: &Row, kind: &Kind, record: &Record) {
    println!(
        "{}, {}: second, sent, accepted, refused, own rate",
        row.name, kind.name
    );
    let second = At::from_secs(1);
    for number in 0..record.allowed.len() / 10 {
        let from = second * number as u32;
        let cell = record.sum(from, from + second);
        let rates = record.rates.iter();
        let rates = rates.map(|rates| format!("{:9.2}", rates.get(number).unwrap_or(&f64::NAN)));
        println!(
            "{number:4} {:5} {:5} {:5} {}",
            cell.sent(),
            cell.accepted,
            cell.refused,
            rates.collect::<String>()
        );
    }
    println!();
}
