use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{Router, extract::State, http::HeaderMap, response::IntoResponse, routing::any};

/// A real server on a free loopback port. The first `refusals` requests are answered 429 with `Retry-After`.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct Shared {
    requests: Arc<AtomicUsize>,
    refusals: usize,
    retry_after: &'static str,
}

impl Server {
    pub(crate) async fn start(refusals: usize, retry_after: &'static str) -> Self {
        let requests = Arc::new(AtomicUsize::new(0));
        let shared = Shared {
            requests: Arc::clone(&requests),
            refusals,
            retry_after,
        };
        let router = Router::new().fallback(any(answer)).with_state(shared);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1/search?q=1", self.address)
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn answer(State(shared): State<Shared>) -> impl IntoResponse {
    let number = shared.requests.fetch_add(1, Ordering::SeqCst);
    let mut headers = HeaderMap::new();
    let status = if number < shared.refusals {
        headers.insert("retry-after", shared.retry_after.parse().unwrap());
        429
    } else {
        headers.insert("x-ratelimit-limit", "1000".parse().unwrap());
        headers.insert("x-ratelimit-remaining", "999".parse().unwrap());
        200
    };
    (
        http::StatusCode::from_u16(status).unwrap(),
        headers,
        "hello",
    )
}
