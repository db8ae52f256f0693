//! Budgets by key: looking one up and taking a token beside governor's keyed limiter in the same run, bytes for each key, and what a
//! sweep costs.
//!
//! `THROTTLE_BENCH_SECONDS` is how long each size of the look-up takes in all, by default 3.

use std::{
    alloc::System,
    env,
    error::Error,
    hint::{self, black_box},
    num::NonZeroU32,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use governor::{RateLimiter, clock::MonotonicClock, state::keyed::DashMapStateStore};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::runtime;
use tower_throttle::{KeyedLimiter, Limiter, Quota};

use table::{Table, now};

#[path = "../support/table.rs"]
mod table;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SIZES: [u64; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
/// Look-ups in one sample; candidates take turns sample by sample, and the median counts.
const CHECKS: usize = 50_000;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = env::var("THROTTLE_BENCH_SECONDS").map_or(Ok(3.0), |text| text.parse())?;
    let time = Duration::try_from_secs_f64(seconds)?;
    looking_up(1, time)?;
    looking_up(2, time)?;
    bytes_for_each_key()?;
    sweeping()
}

/// No bucket runs dry, nor is it soon full again: a key stays until it is looked up next.
const BURST: u32 = 100_000_000;

fn plenty() -> Quota {
    Quota::per_minute(1).burst(BURST)
}

fn limiter(quota: Quota, keys: u64) -> Result<KeyedLimiter<u64>, Box<dyn Error>> {
    let limiter = KeyedLimiter::builder()
        .quota(quota)
        .max_keys(usize::try_from(keys)?)
        .build()?;
    Ok(limiter)
}

/// Keys in an order that no cache foresees, each of them as often as any other.
fn order(keys: u64) -> Vec<u64> {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % keys
    };
    (0..CHECKS * 16).map(|_| next()).collect()
}

fn looking_up(threads: usize, time: Duration) -> Result<(), Box<dyn Error>> {
    let burst = NonZeroU32::new(BURST).ok_or("a burst above zero")?;
    let quota = governor::Quota::per_minute(NonZeroU32::MIN).allow_burst(burst);
    let mut table = Table::new(&[
        "keys",
        "try_acquire, ns",
        "governor, ns",
        "try_acquire / it",
        "governor on the system clock, ns",
        "try_acquire / it",
    ]);
    for keys in SIZES {
        let order = order(keys);
        let ours = limiter(plenty(), keys)?;
        let theirs = RateLimiter::keyed(quota);
        // Reads the same clock as ours; see the `overhead` bench.
        let on_our_clock = RateLimiter::<u64, DashMapStateStore<u64>, _, _>::dashmap_with_clock(
            quota,
            MonotonicClock,
        );
        for key in 0..keys {
            let all = ours.try_acquire(&key, 1).is_ok()
                && theirs.check_key(&key).is_ok()
                && on_our_clock.check_key(&key).is_ok();
            if !all {
                return Err("a full bucket refused".into());
            }
        }
        let mut samples: [Vec<f64>; 3] = Default::default();
        let start = now();
        for round in 0.. {
            let at = round % 16 * CHECKS;
            let part = &order[at..at + CHECKS];
            samples[0].push(checks(threads, part, |key| {
                ours.try_acquire(key, 1).is_ok()
            }));
            samples[1].push(checks(threads, part, |key| theirs.check_key(key).is_ok()));
            samples[2].push(checks(threads, part, |key| {
                on_our_clock.check_key(key).is_ok()
            }));
            if round >= 4 && start.elapsed() >= time {
                break;
            }
        }
        let [ours, theirs, on_our_clock] = samples.map(median);
        table.row([
            keys.to_string(),
            format!("{ours:.1}"),
            format!("{theirs:.1}"),
            format!("{:.2}", ours / theirs),
            format!("{on_our_clock:.1}"),
            format!("{:.2}", ours / on_our_clock),
        ]);
    }
    table.print(&format!(
        "taking one token of a known key, {threads} {}; time for each call of one thread",
        if threads == 1 { "thread" } else { "threads" }
    ));
    Ok(())
}

/// Nanoseconds for each call, in each of several threads at once. `NaN` if one did not get its token.
fn checks(threads: usize, keys: &[u64], check: impl Fn(&u64) -> bool + Sync) -> f64 {
    let there = AtomicUsize::new(0);
    let run = |offset: usize| {
        let keys = keys[offset..].iter().chain(&keys[..offset]);
        there.fetch_add(1, Ordering::SeqCst);
        while there.load(Ordering::SeqCst) < threads {
            hint::spin_loop();
        }
        let start = now();
        let passed = keys.filter(|key| black_box(check(key))).count();
        let time = start.elapsed().as_secs_f64() * 1e9 / CHECKS as f64;
        if passed == CHECKS { time } else { f64::NAN }
    };
    if threads == 1 {
        return run(0);
    }
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || run(number * CHECKS / threads)))
            .collect();
        let count = threads.len() as f64;
        let times = (threads.into_iter()).map(|thread| thread.join().unwrap_or(f64::NAN));
        times.sum::<f64>() / count
    })
}

fn bytes_for_each_key() -> Result<(), Box<dyn Error>> {
    let mut table = Table::new(&[
        "keys",
        "at rest, 8 byte keys",
        "at rest, 24 byte names",
        "governor, 8 byte keys",
        "with a limiter of its own",
    ]);
    let slow = Quota::per_hour(1).burst(10);
    for keys in SIZES {
        let each = |bytes: usize| format!("{:.0}", bytes as f64 / keys as f64);
        let numbers = {
            let limiter = limiter(slow, keys)?;
            let region = Region::new(ALLOCATOR);
            for key in 0..keys {
                black_box(limiter.try_acquire(&key, 1)?);
            }
            net(&region)
        };
        let names = {
            let limiter = KeyedLimiter::builder()
                .quota(slow)
                .max_keys(usize::try_from(keys)?)
                .build()?;
            let region = Region::new(ALLOCATOR);
            for key in 0..keys {
                let name = format!("host-{key:07}.example.org").into_boxed_str();
                black_box(limiter.try_acquire(&name, 1)?);
            }
            net(&region)
        };
        let theirs = {
            let one = NonZeroU32::MIN;
            let limiter = RateLimiter::keyed(governor::Quota::per_hour(one));
            let region = Region::new(ALLOCATOR);
            for key in 0..keys {
                black_box(limiter.check_key(&key).is_ok());
            }
            net(&region)
        };
        let whole = if keys <= 100_000 {
            let limiter = limiter(slow, keys)?;
            let region = Region::new(ALLOCATOR);
            for key in 0..keys {
                limiter.penalize(&key, Duration::from_secs(1))?;
            }
            each(net(&region))
        } else {
            "-".to_owned()
        };
        table.row([
            keys.to_string(),
            each(numbers),
            each(names),
            each(theirs),
            whole,
        ]);
    }
    table.print("bytes for each tracked key, all memory of the limiter included");
    Ok(())
}

fn net(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated - change.bytes_deallocated
}

fn sweeping() -> Result<(), Box<dyn Error>> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let mut table = Table::new(&[
        "keys",
        "sweep that keeps all, ns a key",
        "sweep that forgets all, ns a key",
        "new key while full ones are forgotten, ns",
        "the same in a table that is not full, ns",
        "a request of a key with a global limit, ns",
    ]);
    for keys in SIZES {
        let each = |seconds: f64| format!("{:.0}", seconds * 1e9 / keys as f64);
        let row = runtime.block_on(async {
            let limiter = limiter(Quota::per_second(1).burst(10), keys)?;
            let start = now();
            for key in 0..keys {
                limiter.try_acquire(&key, 1)?;
            }
            let fresh = start.elapsed();
            let start = now();
            let kept = limiter.sweep();
            let keeps = start.elapsed();
            tokio::time::advance(Duration::from_secs(2)).await;
            // All are due: each new one has others forgotten.
            let start = now();
            for key in keys..2 * keys {
                limiter.try_acquire(&key, 1)?;
            }
            let churn = start.elapsed();
            tokio::time::advance(Duration::from_secs(2)).await;
            let left = limiter.len();
            let start = now();
            let forgotten = limiter.sweep();
            let forgets = start.elapsed();
            if kept > 0 || forgotten < left || !limiter.is_empty() {
                return Err("a sweep did not do what it is for".into());
            }
            let above = KeyedLimiter::builder()
                .quota(plenty())
                .max_keys(usize::try_from(keys)?)
                .global(Limiter::new(plenty())?)
                .build()?;
            for key in 0..keys {
                above.try_acquire(&key, 1)?;
            }
            let start = now();
            for key in 0..keys {
                black_box(above.try_acquire(&key, 1)?);
            }
            let both = start.elapsed();
            let times = [keeps, forgets, churn, fresh, both];
            Ok::<_, Box<dyn Error>>(times.map(|time| each(time.as_secs_f64())))
        })?;
        table.row([keys.to_string()].into_iter().chain(row));
    }
    table.print("sweeps and new keys");
    Ok(())
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
