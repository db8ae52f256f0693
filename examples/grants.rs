//! Fetches every page of a grants search as fast as the server allows, and no faster.
//!
//! ```text
//! cargo run --release --example grants
//! ```
//!
//! Without options it starts a server of its own that behaves like the `search2` call of Grants.gov and counts requests per key.
//! The client does not know what that server allows: it is told a rate that is too high, and learns the rest from the headers of
//! the answers. `--help` lists the options. With `--features examples-tls` and `-- --url https://api.grants.gov` it asks the real one.

#![expect(
    clippy::disallowed_methods,
    reason = "the library reads its clock in one place; an example is outside of that rule"
)]

#[path = "grants/args.rs"]
mod args;
#[path = "grants/catalogue.rs"]
mod catalogue;
#[path = "grants/fetch.rs"]
mod fetch;
#[path = "grants/meter.rs"]
mod meter;
#[path = "grants/progress.rs"]
mod progress;
#[path = "grants/records.rs"]
mod records;
#[path = "grants/server.rs"]
mod server;
#[path = "grants/summary.rs"]
mod summary;
#[path = "grants/trail.rs"]
mod trail;

use std::{
    io::{self, Write as _},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use args::Args;
use fetch::{Search, TryAgain};
use http::{HeaderValue, header};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use meter::Meter;
use progress::Progress;
use summary::Summary;
use tower::{ServiceBuilder, retry::RetryLayer};
use tower_http::set_header::SetRequestHeaderLayer;
use tower_throttle::{Limiter, Quota, Spend, ThrottleLayer};
use trail::Trail;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// How long one request may take, from leaving the throttle to its answer.
const PATIENCE: Duration = Duration::from_secs(30);

async fn run(args: Args) -> Result<Summary, Error> {
    let trail = Trail::start(&args.out.join("journal.jsonl"))?;

    // These three lines are all the throttling there is: a rate, a limiter, a layer. The limiter is the budget. All clones of the
    // client below share it, so that 64 tasks together keep to what one key may do. All it decides goes to the journal.
    let quota = Quota::from_rate(args.rate)?.burst(args.burst);
    let limiter = Limiter::builder()
        .name("grants")
        .quota("search", quota)
        .spend(Spend::Evenly)
        .audit(trail.journal().clone())
        .build()?;
    let throttle = ThrottleLayer::new(limiter.clone());

    let (records, sink) = records::write_to(args.out.join("records.jsonl"))?;
    let (url, server) = match args.url {
        Some(url) => (url, None),
        None => server::start().await.map(|own| (own.url(), Some(own)))?,
    };
    let meter = Arc::new(Meter::default());
    let watcher = Arc::clone(&meter);
    let http = Client::builder(TokioExecutor::new()).build(connector());

    let client = ServiceBuilder::new()
        // Outside the throttle: each attempt is a request to the server, so each has to wait its turn and be seen.
        .layer(RetryLayer::new(TryAgain::default()))
        .layer(throttle)
        // Inside of it, where there is one call for each request that leaves: to check the audit trail against.
        .map_future(move |answer| Arc::clone(&watcher).watch(answer))
        // Also inside: standing in line may take long and is no fault of the server.
        .timeout(PATIENCE)
        .layer(SetRequestHeaderLayer::overriding(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ))
        .layer(SetRequestHeaderLayer::overriding(
            http::HeaderName::from_static("x-api-key"),
            args.key,
        ))
        .service(http);

    let search = Search::new(url, &args.keyword, args.rows);
    let progress = Progress::default();
    let started = Instant::now();
    let fetched = tokio::select! {
        fetched = fetch::all(client, search, args.tasks, &progress, records) => fetched,
        failed = progress.show(&limiter, &meter) => failed,
        Ok(()) = tokio::signal::ctrl_c() => Err("interrupted".into()),
    };
    let elapsed = started.elapsed();

    // First the files, whatever became of the search: a trail is needed most when things went wrong.
    let written = sink.await;
    let trail = trail.finish();
    let written = written??;
    fetched?;
    Ok(Summary {
        elapsed,
        expected: progress.expected(),
        records: written,
        trail: trail?,
        requests: meter.requests(),
        refused: meter.refused(),
        share: meter.share(),
        windows: server.map(|server| server.windows()),
    })
}

#[cfg(not(feature = "examples-tls"))]
fn connector() -> hyper_util::client::legacy::connect::HttpConnector {
    hyper_util::client::legacy::connect::HttpConnector::new()
}

#[cfg(feature = "examples-tls")]
fn connector() -> hyper_rustls::HttpsConnector<hyper_util::client::legacy::connect::HttpConnector> {
    hyper_rustls::HttpsConnectorBuilder::new()
        .with_webpki_roots()
        .https_or_http()
        .enable_http1()
        .build()
}

#[tokio::main]
async fn main() -> ExitCode {
    let (message, code) = match Args::parse(std::env::args_os().skip(1)) {
        Ok(None) => return print(args::HELP),
        Ok(Some(args)) => match run(args).await {
            Ok(summary) => {
                let printed = print(&summary.to_string());
                match summary.check() {
                    Ok(()) => return printed,
                    Err(error) => (one_line(&*error), 1),
                }
            }
            Err(error) => (one_line(&*error), 1),
        },
        Err(error) => (format!("{}; see --help", one_line(&*error)), 2),
    };
    // Nothing is left to be done if even this cannot be written.
    let _ = writeln!(io::stderr(), "grants: {message}");
    ExitCode::from(code)
}

/// Unlike `println`, does not panic when the reader has gone away.
fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// An error with its causes: "client error (Connect)" alone helps nobody.
fn one_line(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Some errors repeat their cause in their own text.
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = error.source();
    }
    line.replace(['\n', '\r'], " ")
}
