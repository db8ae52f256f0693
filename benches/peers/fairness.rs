//! How evenly a limit is shared: 20 tasks ask for one turn after the other at 100/s, for 5 s. The fair share of each is 25 turns.

use std::{error::Error, sync::Arc, time::Duration};

use governor::DefaultDirectRateLimiter;
use tokio::{runtime, task::JoinSet};
use tower_throttle::Limiter;

use paced::Paced;
use table::{Table, now};

#[path = "paced.rs"]
mod paced;
#[path = "../support/table.rs"]
mod table;

const TASKS: u32 = 20;
const RATE: u32 = 100;
const SECONDS: u32 = 5;
const SHARE: u32 = RATE * SECONDS / TASKS;
/// Long enough for all tasks to be in line and the burst to be used up.
const WARM_UP: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    let mut table = Table::new(&["limiter", "min", "max", "sum", "within 1 of the share"]);
    table.row(shared::<Limiter>()?);
    table.row(shared::<Arc<DefaultDirectRateLimiter>>()?);
    table.row(shared::<Arc<leaky_bucket::RateLimiter>>()?);
    table.print(&format!(
        "turns for each of {TASKS} tasks at {RATE}/s in {SECONDS} s; the share is {SHARE}"
    ));
    Ok(())
}

fn shared<L: Paced>() -> Result<[String; 5], Box<dyn Error>> {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()?;
    let turns = runtime.block_on(async {
        let limiter = L::new(RATE, 1)?;
        let start = now() + WARM_UP;
        let end = start + Duration::from_secs(u64::from(SECONDS));
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let limiter = limiter.clone();
            tasks.spawn(async move {
                let mut turns = 0;
                // A task that starves never comes back from its last turn, so all stop by the clock.
                let all = async {
                    loop {
                        limiter.turn().await;
                        turns += u32::from((start..end).contains(&now()));
                    }
                };
                let _ = tokio::time::timeout_at(end.into(), all).await;
                turns
            });
        }
        Ok::<_, Box<dyn Error>>(tasks.join_all().await)
    })?;
    let min = turns.iter().copied().min().unwrap_or(0);
    let max = turns.iter().copied().max().unwrap_or(0);
    let fair = SHARE - 1 <= min && max <= SHARE + 1;
    let sum = turns.iter().sum::<u32>();
    Ok([
        L::NAME.to_owned(),
        min.to_string(),
        max.to_string(),
        sum.to_string(),
        if fair { "yes" } else { "no" }.to_owned(),
    ])
}
