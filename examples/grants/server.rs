//! A server that behaves like the `search2` call of Grants.gov, with opportunities that nobody offers and a limit for each key.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header::RETRY_AFTER},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::post,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Error,
    catalogue::{self, Opportunity},
};

/// What one key may do in each window: 50 a second, unless it is spent at once.
const LIMIT: u64 = 250;
const WINDOW: Duration = Duration::from_secs(5);

/// What a look into a database takes.
const LATENCY: Duration = Duration::from_millis(30);

const MAX_ROWS: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Server {
    uri: Uri,
    books: Arc<Books>,
}

/// What each key did, window by window.
#[derive(Debug, Default)]
struct Books(Mutex<HashMap<String, Account>>);

#[derive(Debug)]
struct Account {
    opened: Instant,
    windows: Vec<Count>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
}

struct Verdict {
    accepted: bool,
    remaining: u64,
    /// In whole seconds and rounded up, as servers do.
    reset: u64,
}

/// Starts it on a free port.
pub(crate) async fn start() -> Result<Server, Error> {
    let failed = |error| format!("cannot start the server: {error}");
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .map_err(failed)?;
    let uri = format!("http://{}/v1/api/search2", listener.local_addr()?).parse()?;
    let books = Arc::new(Books::default());
    let catalogue: Arc<[Opportunity]> = catalogue::all().collect();
    let app = Router::new()
        .route("/v1/api/search2", post(search))
        .with_state(catalogue)
        .layer(middleware::from_fn_with_state(Arc::clone(&books), limit));
    tokio::spawn(axum::serve(listener, app).into_future());
    Ok(Server { uri, books })
}

impl Server {
    pub(crate) fn url(&self) -> Uri {
        self.uri.clone()
    }

    /// All it counted, for the only key that came.
    pub(crate) fn windows(&self) -> Vec<Count> {
        let accounts = self.books.0.lock().unwrap_or_else(PoisonError::into_inner);
        accounts
            .values()
            .flat_map(|account| account.windows.clone())
            .collect()
    }
}

impl Books {
    fn enter(&self, key: &str) -> Verdict {
        let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let account = accounts.entry(key.to_owned()).or_insert_with(|| Account {
            opened: Instant::now(),
            windows: Vec::new(),
        });
        let age = account.opened.elapsed();
        let index = (age.as_nanos() / WINDOW.as_nanos()) as usize;
        account.windows.resize_with(index + 1, Count::default);
        let count = &mut account.windows[index];
        let accepted = count.accepted < LIMIT;
        if accepted {
            count.accepted += 1;
        } else {
            count.refused += 1;
        }
        let left = WINDOW.as_nanos() - age.as_nanos() % WINDOW.as_nanos();
        Verdict {
            accepted,
            remaining: LIMIT - count.accepted,
            reset: left.div_ceil(1_000_000_000) as u64,
        }
    }
}

async fn limit(State(books): State<Arc<Books>>, request: Request, next: Next) -> Response {
    let key = request
        .headers()
        .get("x-api-key")
        .and_then(|key| key.to_str().ok());
    let verdict = books.enter(key.unwrap_or_default());
    let mut response = if verdict.accepted {
        next.run(request).await
    } else {
        let body = json!({ "errorcode": 429, "msg": "Rate limit exceeded", "token": "" });
        let mut response = (StatusCode::TOO_MANY_REQUESTS, Json(body)).into_response();
        response
            .headers_mut()
            .insert(RETRY_AFTER, verdict.reset.into());
        response
    };
    let headers: &mut HeaderMap<HeaderValue> = response.headers_mut();
    headers.insert("x-ratelimit-limit", LIMIT.into());
    headers.insert("x-ratelimit-remaining", verdict.remaining.into());
    headers.insert("x-ratelimit-reset", verdict.reset.into());
    response
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Query {
    keyword: String,
    opp_statuses: String,
    rows: usize,
    start_record_num: usize,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            keyword: String::new(),
            opp_statuses: "forecasted|posted".into(),
            rows: 25,
            start_record_num: 0,
        }
    }
}

async fn search(
    State(catalogue): State<Arc<[Opportunity]>>,
    Json(query): Json<Query>,
) -> Json<Value> {
    tokio::time::sleep(LATENCY).await;
    let keyword = query.keyword.to_lowercase();
    let hits: Vec<_> = (catalogue.iter())
        .filter(|it| {
            query
                .opp_statuses
                .split('|')
                .any(|status| status == it.opp_status)
        })
        .filter(|it| keyword.is_empty() || it.title.to_lowercase().contains(&keyword))
        .collect();
    let page: Vec<_> = (hits.iter())
        .skip(query.start_record_num)
        .take(query.rows.min(MAX_ROWS))
        .collect();
    Json(json!({
        "errorcode": 0,
        "msg": "Webservice Succeeds",
        "token": "",
        "data": {
            "hitCount": hits.len(),
            "startRecord": query.start_record_num,
            "oppHits": page,
        },
    }))
}
