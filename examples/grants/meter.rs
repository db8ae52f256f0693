//! Counts what leaves the throttle, and how much of the server's limit that is.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use http::{Response, StatusCode};
use tower_throttle::feedback;

/// Resets are told in whole seconds, rounded up.
const GRAIN: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Meter {
    requests: AtomicU64,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    refused: u64,
    windows: Vec<Window>,
    last: Option<Instant>,
}

/// A window of the server, as the headers of its answers show it. It ends between two instants.
#[derive(Debug)]
struct Window {
    after: Instant,
    until: Instant,
    limit: u64,
    accepted: u64,
}

/// What was used of what the server allowed after its first window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) limit: u64,
    pub(crate) period: Duration,
    /// Over this time.
    pub(crate) time: Duration,
    pub(crate) accepted: u64,
}

impl Share {
    pub(crate) fn allowed(&self) -> f64 {
        self.limit as f64 * self.time.as_secs_f64() / self.period.as_secs_f64()
    }
}

impl Meter {
    /// Notes a request that leaves, and its answer when that has come.
    pub(crate) fn watch<B, E>(
        self: Arc<Self>,
        answer: impl Future<Output = Result<Response<B>, E>>,
    ) -> impl Future<Output = Result<Response<B>, E>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let sent = Instant::now();
        async move {
            let answer = answer.await;
            if let Ok(response) = &answer {
                self.answered(sent, response);
            }
            answer
        }
    }

    fn answered<B>(&self, sent: Instant, response: &Response<B>) {
        // The library's own reader, so that every way in which servers tell their limits is understood.
        let told = feedback::read(response.status(), response.headers(), SystemTime::now());
        let mut seen = self.seen();
        let now = Instant::now();
        let refused = response.status() == StatusCode::TOO_MANY_REQUESTS;
        seen.refused += u64::from(refused);
        seen.last = Some(now);
        let window = told.budgets.iter().find_map(|budget| {
            // The server wrote this after the request had left and before the answer was here.
            Some(Window {
                after: sent.checked_add(budget.reset?.saturating_sub(GRAIN))?,
                until: now.checked_add(budget.reset?)?,
                limit: budget.limit?,
                accepted: u64::from(!refused),
            })
        });
        if let Some(window) = window {
            seen.add(window);
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How many were answered 429.
    pub(crate) fn refused(&self) -> u64 {
        self.seen().refused
    }

    /// `None` if the server told no limit, or no second window began.
    ///
    /// The time runs to the last answer, as if the server's allowance came evenly: a window that was just begun counts as far as it
    /// had come.
    pub(crate) fn share(&self) -> Option<Share> {
        let seen = self.seen();
        let (first, later) = seen.windows.split_first()?;
        // A window in which nothing was sent leaves a gap and counts all the same.
        let period = (seen.windows.windows(2))
            .map(|pair| pair[1].until - pair[0].until)
            .min()?;
        Some(Share {
            limit: later.last()?.limit,
            period,
            time: seen.last?.saturating_duration_since(first.until),
            accepted: later.iter().map(|window| window.accepted).sum(),
        })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Answers overtake each other, so one may speak of a window that is over. Those whose ends may be the same speak of the same.
    fn add(&mut self, told: Window) {
        let known = (self.windows.iter_mut().rev())
            .find(|known| told.after <= known.until && known.after <= told.until);
        match known {
            Some(known) => {
                known.after = known.after.max(told.after);
                known.until = known.until.min(told.until);
                known.limit = told.limit;
                known.accepted += told.accepted;
            }
            None => {
                self.windows.push(told);
                self.windows.sort_unstable_by_key(|window| window.until);
            }
        }
    }
}
