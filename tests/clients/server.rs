use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Instant,
};

use axum::{
    Router,
    response::{IntoResponse, Response},
};

/// A real server on a free loopback port, for HTTP/1 and, with prior knowledge, HTTP/2.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    arrivals: Arc<Mutex<Vec<Instant>>>,
}

impl Server {
    /// The first `refusals` requests are answered 429 with `Retry-After`.
    pub(crate) async fn start(refusals: usize, retry_after: &'static str) -> Self {
        Self::answering(move |number| {
            if number < refusals {
                let headers = [("retry-after", retry_after)];
                (http::StatusCode::TOO_MANY_REQUESTS, headers, "hello").into_response()
            } else {
                let headers = [
                    ("x-ratelimit-limit", "1000"),
                    ("x-ratelimit-remaining", "999"),
                ];
                (headers, "hello").into_response()
            }
        })
        .await
    }

    /// `answer` is given the number of the request, from 0.
    pub(crate) async fn answering(
        answer: impl Fn(usize) -> Response + Clone + Send + Sync + 'static,
    ) -> Self {
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&arrivals);
        let router = Router::new().fallback(move || {
            let number = {
                let mut log = log.lock().unwrap();
                log.push(Instant::now());
                log.len() - 1
            };
            std::future::ready(answer(number))
        });
        let address = serve(router).await;
        Self { address, arrivals }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1/search?q=1", self.address)
    }

    pub(crate) fn requests(&self) -> usize {
        self.arrivals.lock().unwrap().len()
    }

    /// When each request arrived, in that order, before it was answered.
    pub(crate) fn arrivals(&self) -> Vec<Instant> {
        self.arrivals.lock().unwrap().clone()
    }
}

/// Serves `router` for as long as the runtime lives.
pub(crate) async fn serve(router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}
