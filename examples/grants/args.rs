//! The command line.

use std::{ffi::OsString, path::PathBuf, str::FromStr};

use http::{HeaderValue, Uri};

use crate::Error;

pub(crate) const HELP: &str = "\
Fetches every page of a grants search through one throttle.

usage: grants [OPTIONS]

  --url URL       server to ask, such as https://api.grants.gov; without it one is started on a free loopback port
                  (https needs `cargo run --release --features examples-tls --example grants -- --url https://...`)
  --key KEY       sent as X-Api-Key (default: demo-key to the own server, none to another)
  --rate N        requests a second at most; the server's headers can only lower it (default 60, with --url 2)
  --burst N       requests that may leave at once after a quiet time (default 1)
  --keyword WORD  what to search for (default: everything)
  --rows N        records a page (default 5, with --url 100)
  --tasks N       pages asked for concurrently (default 64)
  --out DIR       where records.jsonl and journal.jsonl go (default out)
  --help          this text
";

/// The path of the search on the real server.
const PATH: &str = "/v1/api/search2";

/// Bounds that no sensible use comes near.
const MAX_TASKS: usize = 10_000;
const MAX_ROWS: usize = 1_000_000;

#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) url: Option<Uri>,
    pub(crate) key: Option<HeaderValue>,
    pub(crate) rate: f64,
    pub(crate) burst: u32,
    pub(crate) keyword: String,
    pub(crate) rows: usize,
    pub(crate) tasks: usize,
    pub(crate) out: PathBuf,
}

impl Args {
    /// `None` if help was asked for.
    pub(crate) fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Option<Self>, Error> {
        let (mut url, mut key, mut rate, mut rows) = (None, None, None, None);
        let (mut burst, mut tasks) = (1, 64);
        let (mut keyword, mut out) = (String::new(), PathBuf::from("out"));
        while let Some(arg) = args.next() {
            let (option, inline) = match arg.to_str().and_then(|arg| arg.split_once('=')) {
                Some((option, value)) => (option.to_owned(), Some(OsString::from(value))),
                None => (arg.to_string_lossy().into_owned(), None),
            };
            let mut value = || {
                let value = inline.clone().or_else(|| args.next());
                value.ok_or_else(|| format!("{option} needs a value"))
            };
            match &*option {
                "--help" | "-h" => return Ok(None),
                "--url" => url = Some(address(&text(&option, value()?)?)?),
                "--key" => key = Some(secret(&text(&option, value()?)?)?),
                "--keyword" => keyword = text(&option, value()?)?,
                "--out" => out = PathBuf::from(value()?),
                "--rate" => rate = Some(number(&option, value()?)?),
                "--rows" => rows = Some(count(&option, value()?, MAX_ROWS)?),
                "--tasks" => tasks = count(&option, value()?, MAX_TASKS)?,
                "--burst" => burst = number(&option, value()?)?,
                _ => return Err(format!("there is no option {option}").into()),
            }
        }
        // The own server's allowance is lower than this default on purpose. A stranger's server is asked gently.
        let (default_rate, default_rows) = if url.is_some() { (2.0, 100) } else { (60.0, 5) };
        if url.is_none() {
            key = key.or(Some(HeaderValue::from_static("demo-key")));
        }
        let rate = rate.unwrap_or(default_rate);
        // Here rather than where the limiter is built, so that a bad value is told before anything is started.
        tower_throttle::Quota::from_rate(rate)?
            .burst(burst)
            .validate()?;
        Ok(Some(Self {
            url,
            key,
            rate,
            burst,
            keyword,
            rows: rows.unwrap_or(default_rows),
            tasks,
            out,
        }))
    }
}

fn text(option: &str, value: OsString) -> Result<String, Error> {
    value
        .into_string()
        .map_err(|_| format!("{option} is not UTF-8").into())
}

fn number<T: FromStr>(option: &str, value: OsString) -> Result<T, Error> {
    let value = text(option, value)?;
    value
        .parse()
        .map_err(|_| format!("{option} needs a number, not {value:?}").into())
}

fn count(option: &str, value: OsString, most: usize) -> Result<usize, Error> {
    match number(option, value)? {
        value if (1..=most).contains(&value) => Ok(value),
        _ => Err(format!("{option} goes from 1 to {most}").into()),
    }
}

fn address(url: &str) -> Result<Uri, Error> {
    let bad = |why: &str| Error::from(format!("--url {url:?} {why}"));
    let uri: Uri = url
        .parse()
        .map_err(|error| bad(&format!("is no URL: {error}")))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(bad("has to start with http:// or https://"));
    }
    if uri.scheme_str() == Some("https") && !cfg!(feature = "examples-tls") {
        return Err(bad(
            "needs TLS: run it with `cargo run --release --features examples-tls --example grants -- ...`",
        ));
    }
    let Some(authority) = uri.authority().filter(|part| !part.as_str().contains('@')) else {
        return Err(bad("needs a host and no user name; a key goes to --key"));
    };
    if !matches!(uri.path(), "" | "/") {
        return Ok(uri);
    }
    let scheme = uri.scheme_str().unwrap_or_default();
    format!("{scheme}://{authority}{PATH}")
        .parse()
        .map_err(|error| bad(&format!("is no URL: {error}")))
}

fn secret(key: &str) -> Result<HeaderValue, Error> {
    let mut key = HeaderValue::from_str(key)
        .map_err(|_| "--key holds a character that no header can carry")?;
    // Whatever prints headers leaves it out.
    key.set_sensitive(true);
    Ok(key)
}
