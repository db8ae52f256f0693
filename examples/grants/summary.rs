//! What is printed at the end: one `key: value` a line.

use std::{fmt, time::Duration};

use crate::{Error, meter::Share, records::Written, server::Count, trail::Contents};

#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) elapsed: Duration,
    pub(crate) expected: usize,
    pub(crate) records: Written,
    pub(crate) trail: Contents,
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    pub(crate) share: Option<Share>,
    /// The own server's books.
    pub(crate) windows: Option<Vec<Count>>,
}

impl Summary {
    /// Whether all is as it should be.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !self.each_once() {
            let (records, repeated) = (self.records.records, self.records.repeated);
            return Err(format!(
                "{} records were announced, {records} arrived and {repeated} more than once",
                self.expected
            )
            .into());
        }
        if !self.trail_is_complete() {
            return Err("the audit trail does not agree with the requests made".into());
        }
        match self.counted_by_server() {
            Some(counted) if counted != self.requests => {
                Err("the server counted other than the client".into())
            }
            _ => Ok(()),
        }
    }

    fn each_once(&self) -> bool {
        self.records.records == self.expected && self.records.repeated == 0
    }

    fn trail_is_complete(&self) -> bool {
        self.trail.sent == self.requests && self.trail.lost == 0
    }

    fn counted_by_server(&self) -> Option<u64> {
        let windows = self.windows.as_ref()?;
        Some(
            windows
                .iter()
                .map(|count| count.accepted + count.refused)
                .sum(),
        )
    }

    /// The wait that this part of the requests did not exceed.
    fn wait(&self, part: f64) -> Wait {
        let waits = &self.trail.waits;
        let rank = (waits.len() as f64 * part).ceil() as usize;
        Wait(
            waits
                .get(rank.saturating_sub(1))
                .copied()
                .unwrap_or_default(),
        )
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "records: {} of {}", self.records.records, self.expected)?;
        writeln!(f, "each_record_once: {}", yes(self.each_once()))?;
        writeln!(f, "elapsed: {:.1} s", self.elapsed.as_secs_f64())?;
        writeln!(f, "requests: {}", self.requests)?;
        writeln!(f, "refused_429: {}", self.refused)?;
        match self.share {
            Some(share) => {
                let (accepted, allowed) = (share.accepted, share.allowed());
                let (limit, period) = (share.limit, share.period.as_secs_f64());
                let time = share.time.as_secs_f64();
                writeln!(f, "server_limit: {limit} in {period:.1} s")?;
                writeln!(f, "limit_share: {:.3}", accepted as f64 / allowed)?;
                writeln!(
                    f,
                    "limit_share_from: {accepted} accepted of {allowed:.1} allowed in the {time:.2} s after the first window"
                )?;
            }
            None => writeln!(
                f,
                "limit_share: unknown, as the server told no limit or no second window began"
            )?,
        }
        if let (Some(windows), Some(counted)) = (&self.windows, self.counted_by_server()) {
            let accepted: Vec<_> = windows
                .iter()
                .map(|count| count.accepted.to_string())
                .collect();
            writeln!(f, "server_windows: {}", accepted.join(" "))?;
            writeln!(f, "server_requests: {counted}")?;
        }
        writeln!(f, "wait_median: {}", self.wait(0.5))?;
        writeln!(f, "wait_p95: {}", self.wait(0.95))?;
        writeln!(f, "wait_max: {}", self.wait(1.0))?;
        writeln!(f, "audit_sent: {}", self.trail.sent)?;
        writeln!(f, "audit_lost: {}", self.trail.lost)?;
        writeln!(f, "audit_complete: {}", yes(self.trail_is_complete()))?;
        writeln!(
            f,
            "audit_verified: yes, and {} decisions made again with the same outcome",
            self.trail.replayed
        )?;
        writeln!(f, "records_file: {}", self.records.path.display())?;
        writeln!(f, "audit_file: {}", self.trail.path.display())
    }
}

struct Wait(Duration);

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ms", self.0.as_secs_f64() * 1e3)
    }
}

const fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "NO" }
}
