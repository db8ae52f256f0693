//! The command line.

use std::error::Error;

use crate::row::LIMIT;

/// What to run.
#[derive(Debug, Clone)]
pub(crate) struct Args {
    pub(crate) server: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) seed: Option<u64>,
    /// The servers' limit; bursts, windows and ceilings go with it.
    pub(crate) limit: Option<u32>,
    pub(crate) trace: bool,
}

/// The seed of the table.
pub(crate) const SEED: u64 = 1;

const USAGE: &str = "usage: cargo bench --bench pacing -- [server [client]] [--seed N] [--scale LIMIT] [--trace]
  server, client: a name or a part of some, \"\" for all; without any argument the whole report is made";

impl Args {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut parsed = Self {
            server: None,
            client: None,
            seed: None,
            limit: None,
            trace: false,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            match &*arg {
                // cargo adds this.
                "--bench" => {}
                "--seed" => parsed.seed = Some(value()?.parse()?),
                "--scale" => parsed.limit = Some(value()?.parse()?),
                "--trace" => parsed.trace = true,
                option if option.starts_with('-') => return Err(USAGE.into()),
                _ if parsed.server.is_none() => parsed.server = Some(arg),
                _ if parsed.client.is_none() => parsed.client = Some(arg),
                _ => return Err(USAGE.into()),
            }
        }
        // A fifth of it is a burst.
        if parsed.limit.is_some_and(|limit| limit < 5) {
            return Err("--scale is the servers' limit a second, at least 5".into());
        }
        Ok(parsed)
    }

    /// Everything, with the defaults.
    pub(crate) const fn is_whole(&self) -> bool {
        self.server.is_none()
            && self.client.is_none()
            && self.seed.is_none()
            && self.limit.is_none()
            && !self.trace
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(SEED)
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit.unwrap_or(LIMIT)
    }
}

/// Those a filter picks: the one with just this name, else all that contain it, else all.
pub(crate) fn pick<'a, T>(
    all: impl Iterator<Item = &'a T> + Clone,
    name: impl Fn(&T) -> &'static str,
    filter: Option<&str>,
) -> Vec<&'a T> {
    let filter = filter.unwrap_or("");
    match all.clone().find(|item| name(item) == filter) {
        Some(item) => vec![item],
        None => all.filter(|item| name(item).contains(filter)).collect(),
    }
}
