//! Allocations for each request, and what a long line costs.
//!
//! Apart from the `overhead` bench, because counting slows every allocation down.

use std::{
    alloc::System,
    error::Error,
    future::Future,
    hint::black_box,
    pin::Pin,
    task::{Context, Waker},
};

use http::{Request, Response};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::{
    runtime::{self, Runtime},
    task::JoinSet,
};
use tower::{Layer, Service, ServiceExt, limit::ConcurrencyLimit};
use tower_throttle::{Limiter, Quota, ThrottleLayer, limiter::Acquire};

use client::Client;
use table::{Table, now};

#[path = "support/client.rs"]
mod client;
#[path = "support/table.rs"]
mod table;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const REQUESTS: u32 = 10_000;
const LINES: [usize; 2] = [10_000, 100_000];
const SAMPLES: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    for_each_request()?;
    for_each_waiter()?;
    a_long_line()
}

/// Time stands still until all tasks wait, then jumps to the next timer: what is measured is work, not waiting.
fn paused() -> Result<Runtime, std::io::Error> {
    runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
}

fn for_each_request() -> Result<(), Box<dyn Error>> {
    let runtime = paused()?;
    let limiter = Limiter::new(Quota::per_second(1).burst(u32::MAX))?;
    let layer = ThrottleLayer::new(limiter.clone());
    let mut throttle = layer.layer(Client);
    let mut lean = layer.report_pacing(false).layer(Client);
    let mut concurrency = ConcurrencyLimit::new(Client, 1_024);
    let mut table = Table::new(&["without waiting", "allocations", "bytes"]);
    let mut row = |name: &str, (allocations, bytes): (f64, f64)| {
        table.row([
            name.to_owned(),
            format!("{allocations:.2}"),
            format!("{bytes:.0}"),
        ]);
    };
    runtime.block_on(async {
        row(
            "request through Throttle",
            counted(async || request(&mut throttle).await).await?,
        );
        row(
            "request through Throttle, without `Pacing`",
            counted(async || request(&mut lean).await).await?,
        );
        row(
            "request through ConcurrencyLimit",
            counted(async || request(&mut concurrency).await).await?,
        );
        row(
            "acquire",
            counted(async || {
                black_box(limiter.acquire(1).await?);
                Ok(())
            })
            .await?,
        );
        row(
            "try_acquire",
            counted(async || {
                black_box(limiter.try_acquire(1)?);
                Ok(())
            })
            .await?,
        );
        Ok::<_, Box<dyn Error>>(())
    })?;
    table.print("allocations for each granted request");
    Ok(())
}

async fn request<S>(service: &mut S) -> Result<(), Box<dyn Error>>
where
    S: Service<Request<()>, Response = Response<()>>,
{
    let failed = |_| "an in-memory service failed";
    let ready = service.ready().await.map_err(failed)?;
    black_box(ready.call(Request::new(())).await.map_err(failed)?);
    Ok(())
}

/// Allocations and bytes for each call, once warm.
async fn counted(
    mut call: impl AsyncFnMut() -> Result<(), Box<dyn Error>>,
) -> Result<(f64, f64), Box<dyn Error>> {
    for _ in 0..100 {
        call().await?;
    }
    let region = Region::new(ALLOCATOR);
    for _ in 0..REQUESTS {
        call().await?;
    }
    let change = region.change();
    let each = |sum: usize| sum as f64 / f64::from(REQUESTS);
    Ok((
        each(change.allocations + change.reallocations),
        each(change.bytes_allocated),
    ))
}

/// A line of callers that have been polled once, in the paused runtime.
fn line(limiter: &Limiter, length: usize) -> Vec<Pin<Box<Acquire>>> {
    let mut line = Vec::with_capacity(length);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..length {
        let mut waiter = Box::pin(limiter.acquire(1));
        assert!(waiter.as_mut().poll(&mut context).is_pending());
        line.push(waiter);
    }
    line
}

/// A limiter whose one token is gone.
fn dry(quota: Quota) -> Result<Limiter, Box<dyn Error>> {
    let limiter = Limiter::new(quota)?;
    black_box(limiter.try_acquire(1)?);
    Ok(limiter)
}

fn for_each_waiter() -> Result<(), Box<dyn Error>> {
    let runtime = paused()?;
    let _guard = runtime.enter();
    let future = size_of::<Acquire>();
    let mut table = Table::new(&["waiting", "besides the future", "future", "with the future"]);
    for length in LINES {
        let limiter = dry(Quota::per_second(1))?;
        let region = Region::new(ALLOCATOR);
        let line = line(&limiter, length);
        let change = region.change();
        // The list of waiters is the bench's own.
        let list = length * size_of::<Pin<Box<Acquire>>>();
        let bytes = change.bytes_allocated - change.bytes_deallocated - list;
        let each = bytes as f64 / length as f64;
        table.row([
            length.to_string(),
            format!("{:.1}", each - future as f64),
            future.to_string(),
            format!("{each:.1}"),
        ]);
        drop(line);
    }
    table.print("bytes for each waiter");
    Ok(())
}

fn a_long_line() -> Result<(), Box<dyn Error>> {
    let mut table = Table::new(&[
        "waiting",
        "grant all, ms",
        "ns each",
        "cancel in front, ns",
        "anywhere, ns",
        "at the end, ns",
    ]);
    for length in LINES {
        let all = least(|| granted(length))?;
        let front = least(|| cancelled(length, |nth, _| nth))?;
        // A prime far from any power of two: each step lands elsewhere.
        let anywhere = least(|| cancelled(length, |nth, length| (nth + 1) * 7_919 % length))?;
        let end = least(|| cancelled(length, |nth, length| length - 1 - nth))?;
        table.row([
            length.to_string(),
            format!("{:.1}", all * 1e3),
            format!("{:.0}", all * 1e9 / length as f64),
            format!("{:.0}", front * 1e9),
            format!("{:.0}", anywhere * 1e9),
            format!("{:.0}", end * 1e9),
        ]);
    }
    table.print("time in a long line");
    Ok(())
}

/// The least of some samples: what disturbs a single-threaded run only makes it longer.
fn least(mut sample: impl FnMut() -> Result<f64, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    (0..SAMPLES).try_fold(f64::INFINITY, |least, _| Ok(least.min(sample()?)))
}

/// Seconds of work from a full line to an empty one, the tasks' own scheduling and timers included.
fn granted(length: usize) -> Result<f64, Box<dyn Error>> {
    let runtime = paused()?;
    runtime.block_on(async {
        let limiter = dry(Quota::per_second(100_000))?;
        let mut tasks = JoinSet::new();
        for _ in 0..length {
            let limiter = limiter.clone();
            tasks.spawn(async move { limiter.acquire(1).await.is_ok() });
        }
        // All join the line; the clock has not moved yet.
        tokio::task::yield_now().await;
        let start = now();
        let mut granted = 0;
        while let Some(task) = tasks.join_next().await {
            granted += usize::from(task?);
        }
        if granted < length {
            return Err("a caller was not granted".into());
        }
        Ok(start.elapsed().as_secs_f64())
    })
}

/// Seconds for dropping one waiter, the mean of many. `place` says which is the nth to go.
fn cancelled(length: usize, place: impl Fn(usize, usize) -> usize) -> Result<f64, Box<dyn Error>> {
    let runtime = paused()?;
    let _guard = runtime.enter();
    let limiter = dry(Quota::per_second(1))?;
    let mut line: Vec<_> = line(&limiter, length).into_iter().map(Some).collect();
    let count = 1_000;
    let start = now();
    for nth in 0..count {
        drop(line[place(nth, length)].take());
    }
    Ok(start.elapsed().as_secs_f64() / count as f64)
}
