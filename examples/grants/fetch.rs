//! The search: pages, tasks and retries. Nothing in here knows that it is throttled.

use std::{
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body, Bytes};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet};
use tower::{Service, ServiceExt as _, retry::Policy};

use crate::{Error, PATIENCE, progress::Progress};

/// Far more than a page has; a bound, because it is kept in memory.
const MAX_BODY: usize = 64 << 20;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Search {
    url: Uri,
    keyword: String,
    rows: usize,
}

#[derive(Deserialize)]
struct Answer {
    errorcode: i64,
    #[serde(default)]
    msg: String,
    data: Option<Page>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    hit_count: usize,
    opp_hits: Vec<Value>,
}

/// Repeats what was refused for its rate.
///
/// It does not sleep, and need not read `Retry-After`: the throttle has, and lets nobody through before the time has come.
#[derive(Debug, Clone)]
pub(crate) struct TryAgain {
    left: u32,
}

impl Default for TryAgain {
    fn default() -> Self {
        Self { left: 5 }
    }
}

impl<Req: Clone, B, E> Policy<Req, Response<B>, E> for TryAgain {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Req, result: &mut Result<Response<B>, E>) -> Option<Self::Future> {
        let refused =
            matches!(result, Ok(answer) if answer.status() == StatusCode::TOO_MANY_REQUESTS);
        if !refused {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Req) -> Option<Req> {
        Some(request.clone())
    }
}

/// Fetches all pages with so many tasks and hands over the records of each as they come.
pub(crate) async fn all<S, B>(
    mut client: S,
    search: Search,
    tasks: usize,
    progress: &Progress,
    records: mpsc::Sender<Vec<Value>>,
) -> Result<(), Error>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Error>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: Body<Data: Send, Error: Into<Error>> + Send + 'static,
{
    // Only the first page tells how many there are.
    let first = search.page(&mut client, 0).await?;
    let total = first.hit_count;
    progress.expect(total);
    hand_over(&records, progress, first).await?;

    let search = Arc::new(search);
    let next = Arc::new(AtomicUsize::new(search.rows));
    // If one task fails the set is dropped, and that ends the others.
    let mut set = JoinSet::new();
    for _ in 0..tasks {
        // A clone of the client is another place in line for the same budget.
        let (mut client, search, next) = (client.clone(), Arc::clone(&search), Arc::clone(&next));
        let (progress, records) = (progress.clone(), records.clone());
        set.spawn(async move {
            loop {
                let start = next.fetch_add(search.rows, Ordering::Relaxed);
                if start >= total {
                    return Ok(());
                }
                let page = search.page(&mut client, start).await?;
                hand_over(&records, &progress, page).await?;
            }
        });
    }
    while let Some(ended) = set.join_next().await {
        let result: Result<(), Error> = ended?;
        result?;
    }
    Ok(())
}

async fn hand_over(
    records: &mpsc::Sender<Vec<Value>>,
    progress: &Progress,
    page: Page,
) -> Result<(), Error> {
    let count = page.opp_hits.len();
    let gone = |_| "the records cannot be written";
    records.send(page.opp_hits).await.map_err(gone)?;
    progress.arrived(count);
    Ok(())
}

impl Search {
    pub(crate) fn new(url: Uri, keyword: &str, rows: usize) -> Self {
        let keyword = keyword.to_owned();
        Self { url, keyword, rows }
    }

    async fn page<S, B>(&self, client: &mut S, start: usize) -> Result<Page, Error>
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Error>,
        B: Body<Error: Into<Error>>,
    {
        let question = json!({
            "keyword": self.keyword,
            "oppStatuses": "forecasted|posted",
            "rows": self.rows,
            "startRecordNum": start,
        });
        let request = Request::post(&self.url).body(Full::from(question.to_string()))?;
        let failed = |error: Error| Failure {
            what: format!("{} from record {start} on", self.url),
            error,
        };
        // `ready` is where it stands in line.
        let client = client.ready().await.map_err(failed)?;
        let response = client.call(request).await.map_err(failed)?;
        let page = read(response).await.map_err(failed)?;
        // Else a server that miscounts would be asked for ever.
        if page.opp_hits.is_empty() && start < page.hit_count {
            return Err(failed("the page is empty".into()).into());
        }
        Ok(page)
    }
}

async fn read<B>(response: Response<B>) -> Result<Page, Error>
where
    B: Body<Error: Into<Error>>,
{
    let status = response.status();
    if status != StatusCode::OK {
        return Err(format!("the server answered {status}").into());
    }
    // The timeout in the stack ends with the head of the answer.
    let body = Limited::new(response.into_body(), MAX_BODY).collect();
    let late = |_| format!("the answer did not end within {PATIENCE:?}");
    let body = tokio::time::timeout(PATIENCE, body)
        .await
        .map_err(late)??
        .to_bytes();
    let answer: Answer = serde_json::from_slice(&body)
        .map_err(|error| format!("the server's answer is not as expected: {error}"))?;
    match answer.data {
        Some(page) if answer.errorcode == 0 => Ok(page),
        _ => Err(format!(
            "the server reports error {}: {}",
            answer.errorcode, answer.msg
        )
        .into()),
    }
}

/// An error, and what could not be done because of it.
#[derive(Debug)]
struct Failure {
    what: String,
    error: Error,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.error)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}
