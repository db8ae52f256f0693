//! The same server behind a real stack: [`ThrottleLayer`] over a service, on tokio's paused clock.

use std::{cell::RefCell, convert::Infallible, error::Error, future, rc::Rc};

use http::{Request, Response, StatusCode};
use tokio::{
    runtime,
    task::LocalSet,
    time::{Instant, sleep},
};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_throttle::{Limiter, Quota, ThrottleLayer};

use crate::{
    record::Record,
    rng::Rng,
    row::Setup,
    server::{At, Reply, Server, Voice},
    world::{Demand, round_trip},
};

/// Runs a row whose demand is endless and whose net is good.
pub(crate) fn run(setup: Setup) -> Result<Record, Box<dyn Error>> {
    let Demand::Endless(callers) = setup.world.demand else {
        return Err("only endless demand runs through the layer".into());
    };
    let quota = Quota::per_second(setup.ceiling).burst(setup.burst);
    let layer = ThrottleLayer::new(Limiter::new(quota)?);
    let end = setup.world.end;
    let origin = Rc::new(RefCell::new(Origin {
        server: setup.world.server,
        rng: setup.world.rng,
        record: Record::new(1, end),
        end,
    }));
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let start = now();
        let shared = Rc::clone(&origin);
        let service = layer.layer(service_fn(move |_: Request<()>| {
            answer(Rc::clone(&shared), start)
        }));
        for _ in 0..callers {
            let mut service = service.clone();
            tasks.spawn_local(async move {
                while let Ok(ready) = service.ready().await {
                    if ready.call(Request::new(())).await.is_err() {
                        break;
                    }
                }
            });
        }
        sleep(end).await;
    });
    drop(tasks);
    let origin = Rc::into_inner(origin).ok_or("a request outlived its task")?;
    let Origin {
        server, mut record, ..
    } = origin.into_inner();
    record.close(server.rule);
    Ok(record)
}

struct Origin {
    server: Server,
    rng: Rng,
    record: Record,
    end: At,
}

async fn answer(origin: Rc<RefCell<Origin>>, start: Instant) -> Result<Response<()>, Infallible> {
    let half = round_trip(&mut origin.borrow_mut().rng) / 2;
    sleep(half).await;
    let at = now() - start;
    if at >= origin.borrow().end {
        future::pending::<()>().await;
    }
    let reply = {
        let mut origin = origin.borrow_mut();
        let reply = origin.server.decide(at);
        origin.record.arrived(0, at, !reply.refused);
        reply
    };
    sleep(half + reply.service).await;
    Ok(head(&reply))
}

fn head(reply: &Reply) -> Response<()> {
    let mut response = Response::builder();
    if reply.refused {
        response = response.status(StatusCode::TOO_MANY_REQUESTS);
    }
    if let Some(wait) = reply.retry_after {
        response = response.header("retry-after", wait.as_secs());
    }
    if let Some(budget) = reply.budget {
        let (limit, remaining) = (budget.limit, budget.remaining);
        let (reset, window) = (budget.reset.as_secs(), budget.window.as_secs());
        response = match reply.voice {
            Voice::Policies => response
                .header(
                    "ratelimit-policy",
                    format!("\"default\";q={limit};w={window}"),
                )
                .header("ratelimit", format!("\"default\";r={remaining};t={reset}")),
            _ => response
                .header("x-ratelimit-limit", limit)
                .header("x-ratelimit-remaining", remaining)
                .header("x-ratelimit-reset", reset),
        };
    }
    response.body(()).expect("the head is valid")
}

/// Here tokio's clock is the virtual time.
fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "this is the server's clock")]
    Instant::now()
}
