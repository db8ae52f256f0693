//! What the user sees while it runs.

use std::{
    collections::VecDeque,
    io::{self, IsTerminal as _, Write as _},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use tower_throttle::Limiter;

use crate::{Error, meter::Meter};

/// The time over which the current rate is taken.
const RATE_OVER: Duration = Duration::from_secs(1);

/// How far it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    expected: Arc<AtomicUsize>,
    arrived: Arc<AtomicUsize>,
}

impl Progress {
    pub(crate) fn expect(&self, records: usize) {
        self.expected.store(records, Ordering::Relaxed);
    }

    pub(crate) fn expected(&self) -> usize {
        self.expected.load(Ordering::Relaxed)
    }

    pub(crate) fn arrived(&self, records: usize) {
        self.arrived.fetch_add(records, Ordering::Relaxed);
    }

    /// Shows it until dropped; only returns if it cannot: a bar on a terminal, elsewhere a line now and then, fit for a log.
    pub(crate) async fn show<T>(&self, limiter: &Limiter, meter: &Meter) -> Result<T, Error> {
        let terminal = io::stderr().is_terminal();
        let mut tick = tokio::time::interval(if terminal { RATE_OVER / 10 } else { RATE_OVER });
        let bar = Bar(if terminal {
            ProgressBar::no_length()
        } else {
            ProgressBar::hidden()
        });
        // Short, and cut off where the terminal ends: a line that wraps cannot be drawn over.
        bar.0.set_style(ProgressStyle::with_template(
            "{bar:16} {pos}/{len} records, {wide_msg}",
        )?);
        let mut samples = VecDeque::from([(Instant::now(), 0)]);
        tick.tick().await;
        loop {
            tick.tick().await;
            let status = status(limiter, rate(&mut samples, meter.requests()));
            let (arrived, expected) = (self.arrived.load(Ordering::Relaxed), self.expected());
            bar.0.set_length(expected as u64);
            bar.0.set_position(arrived as u64);
            bar.0.set_message(status.clone());
            if !terminal {
                // A log that cannot be written is no reason to stop.
                let _ = writeln!(io::stderr(), "{arrived}/{expected} records, {status}");
            }
        }
    }
}

/// Leaves the terminal in order, however the showing ends.
struct Bar(ProgressBar);

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn status(limiter: &Limiter, rate: f64) -> String {
    let limiter = limiter.snapshot();
    let pause = limiter.pause.map_or_else(String::new, |(left, _)| {
        format!(", paused for {:.1} s", left.as_secs_f64())
    });
    format!(
        "{rate:.1} requests/s of {:.1} allowed, {} waiting{pause}",
        limiter.rate, limiter.queue_len
    )
}

/// Requests a second, lately.
fn rate(samples: &mut VecDeque<(Instant, u64)>, requests: u64) -> f64 {
    let now = Instant::now();
    samples.push_back((now, requests));
    while samples.len() > 2 && now - samples[1].0 >= RATE_OVER {
        samples.pop_front();
    }
    let (since, before) = samples[0];
    let time = (now - since).as_secs_f64().max(f64::MIN_POSITIVE);
    (requests - before) as f64 / time
}
