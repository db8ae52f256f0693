//! What a record costs: a request with nothing recorded, with `tracing` events, and with the journal, in the same run; and how many
//! records a second reach the file.

use std::{
    env,
    error::Error,
    fs,
    future::Future,
    io,
    path::Path,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use http::Request;
use tower::{Layer, Service};
use tower_throttle::{Limiter, Quota, ThrottleLayer, audit::journal::Journal};
use tracing_subscriber::prelude::*;

use client::Client;
use table::{Table, now};

#[path = "../support/client.rs"]
mod client;
#[path = "../support/table.rs"]
mod table;

/// Few enough that the journal's queue holds them all: what is measured is the request, not the disk.
const REQUESTS: u32 = 10_000;
const SAMPLES: usize = 21;
/// Records in each try of the throughput.
const RECORDS: u32 = 300_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::temp_dir().join(format!("tower-throttle-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let done = requests(&folder).and_then(|()| throughput(&folder));
    fs::remove_dir_all(&folder)?;
    done
}

/// A token is there each nanosecond and the bucket never runs dry.
fn plenty() -> Quota {
    Quota::new(1, Duration::from_nanos(1)).burst(u32::MAX)
}

fn journal(path: &Path) -> io::Result<Journal> {
    Journal::open(path).capacity(1 << 20).build()
}

fn requests(folder: &Path) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let _guard = runtime.enter();
    let journal = journal(&folder.join("requests.jsonl"))?;
    let off = Limiter::new(plenty())?;
    let on = Limiter::builder()
        .quota("q", plenty())
        .audit(journal.clone())
        .build()?;
    let events = tracing_subscriber::registry().with(
        tracing_subscriber::fmt::layer()
            .json()
            .with_writer(io::sink),
    );
    let events = tracing::Dispatch::new(events);
    // With one subscriber alone, tracing asks but once whether anybody listens to an event: at first nobody does.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..SAMPLES {
        times[0].push(sample(&off)?);
        times[1].push(tracing::dispatcher::with_default(&events, || sample(&off))?);
        times[2].push(sample(&on)?);
        // So that the thread that writes does not compete with the next.
        journal.flush(Duration::from_secs(60))?;
    }
    let medians = times.map(|mut times| {
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    });
    let mut table = Table::new(&["recorded", "ns", "to nothing"]);
    for (name, time) in [
        "nothing",
        "tracing events, as JSON to nowhere",
        "the journal",
    ]
    .into_iter()
    .zip(medians)
    {
        let ratio = time / medians[0];
        table.row([name.into(), format!("{time:.0}"), format!("{ratio:.2}")]);
    }
    table.print("one request: ready, call and response, with a token free");
    Ok(())
}

/// Nanoseconds for each request.
fn sample(limiter: &Limiter) -> Result<f64, Box<dyn Error>> {
    let mut service = ThrottleLayer::new(limiter.clone()).layer(Client);
    let mut cx = Context::from_waker(Waker::noop());
    let start = now();
    for _ in 0..REQUESTS {
        if Service::<Request<()>>::poll_ready(&mut service, &mut cx).is_pending() {
            return Err("a token is free".into());
        }
        match pin!(service.call(Request::new(()))).poll(&mut cx) {
            Poll::Ready(answer) => drop(answer.map_err(|error| error.to_string())?),
            Poll::Pending => return Err("the answer is there".into()),
        }
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(REQUESTS))
}

fn throughput(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut best: f64 = 0.0;
    for number in 0..3 {
        let journal = journal(&folder.join(format!("{number}.jsonl")))?;
        let limiter = Limiter::builder()
            .quota("q", plenty())
            .audit(journal.clone())
            .build()?;
        let start = now();
        for _ in 0..RECORDS {
            drop(limiter.try_acquire(1)?);
        }
        journal.flush(Duration::from_secs(600))?;
        best = best.max(f64::from(RECORDS) / start.elapsed().as_secs_f64());
        if journal.status().lost > 0 {
            return Err("records were lost".into());
        }
    }
    println!("records a second, from the limiter to the synced file, the best of 3: {best:.0}");
    Ok(())
}
