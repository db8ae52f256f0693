//! What a request costs when it need not wait, beside peers doing the same in the same run.
//!
//! Samples of all candidates take turns, so that a slow phase of the machine hits all alike, and the median counts.

use std::{
    error::Error,
    hint::{self, black_box},
    num::NonZeroU32,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use governor::{RateLimiter, clock::MonotonicClock};
use http::{Request, Response};
use tokio::{runtime, task::unconstrained};
use tower::{
    Layer, Service, ServiceExt,
    limit::{self, ConcurrencyLimit, RateLimit},
};
use tower_throttle::{Limiter, Quota, ThrottleLayer};

use client::Client;
use table::{Table, now};

#[path = "../support/client.rs"]
mod client;
#[path = "../support/table.rs"]
mod table;

/// Many and short, so that most of them are not disturbed by anything else on the machine.
const SAMPLES: usize = 51;
const REQUESTS: u32 = 10_000;
const CHECKS: u32 = 200_000;

fn main() -> Result<(), Box<dyn Error>> {
    through_the_layer()?;
    without_waiting(1)?;
    without_waiting(2)
}

/// A token is there each nanosecond and the bucket never runs dry.
fn plenty() -> Quota {
    Quota::new(1, Duration::from_nanos(1)).burst(u32::MAX)
}

fn through_the_layer() -> Result<(), Box<dyn Error>> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let _guard = runtime.enter();
    let mut bare = Client;
    let layer = ThrottleLayer::new(Limiter::new(plenty())?);
    let mut throttle = layer.layer(Client);
    let mut lean = layer.report_pacing(false).layer(Client);
    let mut concurrency = ConcurrencyLimit::new(Client, 1_024);
    let mut rate = RateLimit::new(
        Client,
        limit::rate::Rate::new(u64::MAX, Duration::from_secs(1)),
    );
    let mut times: [Vec<f64>; 5] = Default::default();
    for _ in 0..SAMPLES {
        // Unconstrained: only `ConcurrencyLimit` takes part in tokio's budget, and would pay for that alone.
        times[0].push(runtime.block_on(unconstrained(requests(&mut bare))));
        times[1].push(runtime.block_on(unconstrained(requests(&mut concurrency))));
        times[2].push(runtime.block_on(unconstrained(requests(&mut rate))));
        times[3].push(runtime.block_on(unconstrained(requests(&mut throttle))));
        times[4].push(runtime.block_on(unconstrained(requests(&mut lean))));
    }
    let [bare, concurrency, rate, throttle, lean] = times.map(median);
    let mut table = Table::new(&["service", "ns", "Throttle / it"]);
    for (name, ns) in [
        ("Throttle", throttle),
        ("Throttle, without `Pacing`", lean),
        ("ConcurrencyLimit", concurrency),
        ("RateLimit", rate),
        ("none", bare),
    ] {
        table.row([
            name.to_owned(),
            format!("{ns:.1}"),
            format!("{:.2}", throttle / ns),
        ]);
    }
    table.print("one request: ready, call and response, with a token free");
    Ok(())
}

/// Nanoseconds for each request.
async fn requests<S>(service: &mut S) -> f64
where
    S: Service<Request<()>, Response = Response<()>>,
{
    let start = now();
    for _ in 0..REQUESTS {
        let Ok(ready) = service.ready().await else {
            return f64::NAN;
        };
        let Ok(response) = ready.call(Request::new(())).await else {
            return f64::NAN;
        };
        black_box(response);
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(REQUESTS)
}

fn without_waiting(threads: usize) -> Result<(), Box<dyn Error>> {
    let start = now();
    let ours = Limiter::new(plenty())?;
    let quota =
        governor::Quota::with_period(Duration::from_nanos(1)).ok_or("a period above zero")?;
    let quota = quota.allow_burst(NonZeroU32::MAX);
    // governor reads the processor's counter by itself, which tokio's paused clock cannot stop. On the system's clock, which tokio
    // reads too, the difference between the limiters alone is left.
    let theirs = RateLimiter::direct(quota);
    let on_our_clock = RateLimiter::direct_with_clock(quota, MonotonicClock);
    let mut times: [Vec<f64>; 5] = Default::default();
    for _ in 0..SAMPLES {
        times[0].push(checks(threads, || ours.try_acquire(1).is_ok()));
        times[1].push(checks(threads, || theirs.check().is_ok()));
        times[2].push(checks(threads, || on_our_clock.check().is_ok()));
        times[3].push(checks(threads, || black_box(now()) > start));
    }
    let times = times.map(median);
    let names = [
        "try_acquire",
        "governor's check",
        "the same, system clock",
        "reading the clock",
    ];
    let mut table = Table::new(&["call", "ns", "try_acquire / it"]);
    for (name, ns) in names.into_iter().zip(times) {
        table.row([
            name.to_owned(),
            format!("{ns:.1}"),
            format!("{:.2}", times[0] / ns),
        ]);
    }
    table.print(&format!(
        "taking one token, {threads} {}; time for each call of one thread",
        if threads == 1 { "thread" } else { "threads" }
    ));
    Ok(())
}

/// Nanoseconds for each call, in each of several threads at once. `NaN` if one did not get its token.
fn checks(threads: usize, check: impl Fn() -> bool + Sync) -> f64 {
    let there = AtomicUsize::new(0);
    let run = || {
        // Spinning, because a thread that has to be woken comes when the others are done.
        there.fetch_add(1, Ordering::SeqCst);
        while there.load(Ordering::SeqCst) < threads {
            hint::spin_loop();
        }
        let start = now();
        let passed = (0..CHECKS).filter(|_| black_box(check())).count();
        let time = start.elapsed().as_secs_f64() * 1e9 / f64::from(CHECKS);
        if passed == CHECKS as usize {
            time
        } else {
            f64::NAN
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let times = (threads.into_iter()).map(|thread| thread.join().unwrap_or(f64::NAN));
        let count = times.len() as f64;
        times.sum::<f64>() / count
    })
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
