//! Budgets the server announces: their size outlives a window, and a long one does not make a short job slow.

use std::sync::{Arc, Mutex};

use tower::{Service, ServiceExt};
use tower_throttle::{Limiter, Quota, Spend, Throttle};

use crate::support::{Answer, Origin, Timeline, assert_times, request, secs, throttle};

/// A client with a burst of 10 that has made one request, six seconds ago.
async fn six_seconds_after_one_request(
    time: &Timeline,
    origin: Origin,
) -> (Limiter, Throttle<Origin>) {
    let limiter = Limiter::new(Quota::per_second(50).burst(10)).unwrap();
    let mut service = throttle(&limiter, origin);
    let ready = service.ready().await.unwrap();
    ready.call(request()).await.unwrap();
    time.at(6.0).await;
    (limiter, service)
}

fn spend_all(service: &Throttle<Origin>, requests: usize) -> Vec<tokio::task::JoinHandle<()>> {
    (0..requests)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move { drop(service.oneshot(request()).await.unwrap()) })
        })
        .collect()
}

/// A server that allows 5 in each 5 s. It says so in its first answer and, if `again`, in all the others.
fn five_in_five(time: &Timeline, again: bool) -> Origin {
    let (clock, used) = (time.clone(), Arc::new(Mutex::new((0, 0))));
    Origin::new(time, move |number| {
        let now = clock.now().as_secs_f64();
        let window = (now / 5.0) as u64;
        let mut used = used.lock().unwrap();
        if used.0 != window {
            *used = (window, 0);
        }
        used.1 += 1;
        if used.1 > 5 {
            return Answer::status(429).after(0.05);
        }
        let answer = Answer::status(200).after(0.05);
        if number > 0 && !again {
            return answer;
        }
        (answer.header("x-ratelimit-limit", 5))
            .header("x-ratelimit-remaining", 5 - used.1)
            .header(
                "x-ratelimit-reset",
                (5.0 * (window + 1) as f64 - now).ceil(),
            )
    })
}

#[tokio::test(start_paused = true)]
async fn in_a_window_nothing_is_said_about_yet_no_more_leaves_than_in_the_last_one() {
    let time = Timeline::start();
    let (_, service) = six_seconds_after_one_request(&time, five_in_five(&time, true)).await;
    for task in spend_all(&service, 6) {
        task.await.unwrap();
    }
    // The sixth waits for the next window, as the first answer says that none is left: 4 s after it came.
    assert_times(&time.events(), &[0.0, 6.0, 6.0, 6.0, 6.0, 6.0, 10.05]);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_answers_do_not_mention_any_more_is_forgotten() {
    let time = Timeline::start();
    let origin = Origin::new(&time, |number| {
        let answer = Answer::status(200).after(0.05);
        if number > 0 {
            return answer;
        }
        (answer.header("x-ratelimit-limit", 5))
            .header("x-ratelimit-remaining", 4)
            .header("x-ratelimit-reset", 5)
    });
    let (_, service) = six_seconds_after_one_request(&time, origin).await;
    for task in spend_all(&service, 7) {
        task.await.unwrap();
    }
    assert_times(&time.events()[..6], &[0.0, 6.0, 6.0, 6.0, 6.0, 6.0]);
    // Accepted in that window without a word about the budget: it is not about these requests.
    assert_times(&time.events()[6..], &[6.05, 6.05]);
}

#[tokio::test(start_paused = true)]
async fn a_request_above_the_size_of_a_window_does_not_wait_for_ever() {
    let time = Timeline::start();
    let (limiter, _) = six_seconds_after_one_request(&time, five_in_five(&time, false)).await;
    let permit = limiter.acquire(8).await.unwrap();
    assert!(permit.waited() <= secs(5.0), "{:?}", permit.waited());
}

/// What a server allows and how it says so, and what fifty requests at 10 a second take at most.
struct Api {
    name: &'static str,
    limit: u64,
    left: u64,
    names: [&'static str; 3],
    reset: Option<u64>,
    takes: f64,
}

const COUNTERS: [&str; 3] = [
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];
const STANDARD: [&str; 3] = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
const REQUESTS: [&str; 3] = [
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
];
const GATEWAY: [&str; 3] = [
    "x-ratelimit-requests-limit",
    "x-ratelimit-requests-remaining",
    "x-ratelimit-requests-reset",
];

const fn api(
    name: &'static str,
    names: [&'static str; 3],
    limit: u64,
    left: u64,
    reset: Option<u64>,
    takes: f64,
) -> Api {
    Api {
        name,
        limit,
        left,
        names,
        reset,
        takes,
    }
}

const APIS: [Api; 14] = [
    api(
        "1,000 a month, gateway",
        GATEWAY,
        1_000,
        999,
        Some(2_419_200),
        5.0,
    ),
    api(
        "500,000 a month, gateway",
        GATEWAY,
        500_000,
        499_000,
        Some(2_419_200),
        5.0,
    ),
    api("5,000 an hour", COUNTERS, 5_000, 4_999, Some(3_600), 5.0),
    api(
        "5,000 an hour, without reset",
        COUNTERS,
        5_000,
        4_999,
        None,
        5.0,
    ),
    api(
        "1,000 an hour, half used",
        COUNTERS,
        1_000,
        700,
        Some(1_800),
        5.0,
    ),
    api(
        "15,000 an hour, standard",
        STANDARD,
        15_000,
        14_000,
        Some(3_000),
        5.0,
    ),
    api("900 in 15 minutes", COUNTERS, 900, 899, Some(900), 5.0),
    // Less than ten a second for the minute ahead: the last of a budget go slowly.
    api("450 in 15 minutes", COUNTERS, 450, 449, Some(900), 7.1),
    api("1,000 in 10 minutes", COUNTERS, 1_000, 999, Some(600), 5.0),
    api(
        "10,000 in 6 hours",
        COUNTERS,
        10_000,
        9_999,
        Some(21_600),
        5.0,
    ),
    api("10,000 a day", COUNTERS, 10_000, 9_000, Some(86_400), 5.0),
    api(
        "10,000 a day, without reset",
        COUNTERS,
        10_000,
        9_000,
        None,
        5.0,
    ),
    api(
        "2,000 a day, language model",
        REQUESTS,
        2_000,
        1_999,
        Some(43_200),
        5.0,
    ),
    api("600 a minute", COUNTERS, 650, 649, Some(60), 5.0),
];

fn origin(time: &Timeline, api: &'static Api) -> Origin {
    let clock = time.clone();
    Origin::new(time, move |number| {
        let [limit, remaining, reset] = api.names;
        let answer = (Answer::status(200).after(0.05))
            .header(limit, api.limit)
            .header(remaining, api.left - number as u64);
        match api.reset {
            Some(length) => answer.header(reset, length - clock.now().as_secs()),
            None => answer,
        }
    })
}

#[tokio::test(start_paused = true)]
async fn fifty_requests_take_five_seconds_while_the_budget_allows_however_long_its_window() {
    for api in &APIS {
        let time = Timeline::start();
        // Three lines, as in the README.
        let limiter = Limiter::new(Quota::per_second(10)).unwrap();
        let service = throttle(&limiter, origin(&time, api));
        for task in spend_all(&service, 50) {
            task.await.unwrap();
        }
        let took = time.events()[49].as_secs_f64();
        println!("| {} | {took:.1} |", api.name);
        assert!(took <= api.takes, "{}: {took:.1} s", api.name);
    }
}

#[tokio::test(start_paused = true)]
async fn even_spacing_never_holds_a_request_longer_than_the_horizon() {
    const MONTH: Api = api("month", GATEWAY, 1_000, 3, Some(2_419_200), 0.0);
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(10)).unwrap();
    let service = throttle(&limiter, origin(&time, &MONTH));
    for task in spend_all(&service, 4) {
        task.await.unwrap();
    }
    let events = time.events();
    let gaps: Vec<_> = events.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|&gap| gap <= secs(60.1)), "{gaps:?}");
    // The last of a budget go slowly.
    assert!(gaps[2] > secs(20.0), "{gaps:?}");
    // None left gates until the reset, which is further away than a pause may be.
    let error = limiter.try_acquire(1).unwrap_err();
    assert!(error.is_paused(), "{error}");
    assert!(error.retry_after().unwrap() > secs(2_000_000.0));
}

#[tokio::test(start_paused = true)]
async fn spread_over_the_whole_window_it_lasts_as_long_as_the_window() {
    const HOUR: Api = api("hour", COUNTERS, 60, 60, Some(3_600), 0.0);
    let time = Timeline::start();
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(10))
        .spend(Spend::Evenly)
        .build()
        .unwrap();
    let service = throttle(&limiter, origin(&time, &HOUR));
    for task in spend_all(&service, 31) {
        task.await.unwrap();
    }
    let took = time.events()[30].as_secs_f64();
    assert!((1_600.0..2_000.0).contains(&took), "{took}");
}
