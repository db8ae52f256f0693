//! Which part of the configured rate is reached while there is always a line.
//!
//! 64 tasks on two workers ask for one turn after the other. After a warm-up, in which the burst is used up, turns are counted from
//! the first one after a start instant to the first one after an end instant, so that a cell has no rounding at its edges and a limiter
//! that stalls at the end pays for it. `THROTTLE_BENCH_SECONDS` sets the time for each cell (3).

use std::{
    env,
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use governor::DefaultDirectRateLimiter;
use tokio::{runtime, task::JoinSet};
use tower_throttle::Limiter;

use paced::Paced;
use table::{Table, now};

#[path = "paced.rs"]
mod paced;
#[path = "../support/table.rs"]
mod table;

const RATES: [u32; 4] = [100, 1_000, 10_000, 100_000];
const BURSTS: [u32; 2] = [1, 10];
const TASKS: usize = 64;
const WARM_UP: Duration = Duration::from_millis(500);
/// What this crate promises.
const BAR: f64 = 0.995;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = match env::var("THROTTLE_BENCH_SECONDS") {
        Ok(seconds) => Duration::try_from_secs_f64(seconds.parse()?)?,
        Err(_) => Duration::from_secs(3),
    };
    let names = [
        Limiter::NAME,
        <Arc<DefaultDirectRateLimiter>>::NAME,
        <Arc<leaky_bucket::RateLimiter>>::NAME,
    ];
    let mut table = Table::new(&["rate", "burst", names[0], names[1], names[2]]);
    let mut below = Vec::new();
    for rate in RATES {
        for burst in BURSTS {
            let ours = reached::<Limiter>(rate, burst, seconds)?;
            let governor = reached::<Arc<DefaultDirectRateLimiter>>(rate, burst, seconds)?;
            let leaky = reached::<Arc<leaky_bucket::RateLimiter>>(rate, burst, seconds)?;
            let ratios = [ours, governor, leaky].map(|ratio| format!("{ratio:.4}"));
            table.row(
                [format!("{rate}/s"), burst.to_string()]
                    .into_iter()
                    .chain(ratios),
            );
            if ours < BAR {
                below.push(format!("below {BAR}: {rate}/s, burst {burst}: {ours:.4}"));
            }
        }
    }
    table.print("rate reached / rate configured");
    for line in below {
        println!("{line}");
    }
    Ok(())
}

/// What one task saw: its first turn after the start, its first after the end, and its turns between start and end.
struct Seen {
    first: Instant,
    last: Instant,
    turns: u32,
}

fn reached<L: Paced>(rate: u32, burst: u32, length: Duration) -> Result<f64, Box<dyn Error>> {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()?;
    let seen = runtime.block_on(async {
        let limiter = L::new(rate, burst)?;
        let start = now() + WARM_UP;
        let end = start + length;
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            tasks.spawn(watch(limiter.clone(), start, end));
        }
        Ok::<_, Box<dyn Error>>(tasks.join_all().await)
    })?;
    let turns: u32 = seen.iter().map(|seen| seen.turns).sum();
    let first = seen.iter().map(|seen| seen.first).min();
    let last = seen.iter().map(|seen| seen.last).min();
    let (Some(first), Some(last)) = (first, last) else {
        return Err("no task ran".into());
    };
    // The turn at `last` is not among those counted, so each stands for one interval.
    let time = last.saturating_duration_since(first).as_secs_f64();
    Ok(f64::from(turns) / time / f64::from(rate))
}

async fn watch<L: Paced>(limiter: L, start: Instant, end: Instant) -> Seen {
    let mut first = None;
    let mut turns = 0;
    loop {
        limiter.turn().await;
        let at = now();
        if at < start {
            continue;
        }
        let first = *first.get_or_insert(at);
        if at >= end {
            return Seen {
                first,
                last: at,
                turns,
            };
        }
        turns += 1;
    }
}
