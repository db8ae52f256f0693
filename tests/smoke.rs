use std::time::Duration;
use tokio::time::Instant;
use tower_throttle::{Limiter, Quota};

#[tokio::test(start_paused = true)]
async fn paced() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..50 {
        let limiter = limiter.clone();
        tasks.push(tokio::spawn(async move {
            let p = limiter.acquire(1).await.unwrap();
            (start.elapsed(), p.waited())
        }));
    }
    for (i, t) in tasks.into_iter().enumerate() {
        let (at, waited) = t.await.unwrap();
        println!("{i} {at:?} {waited:?}");
        assert!(
            at >= Duration::from_secs(i as u64)
                && at <= Duration::from_secs(i as u64) + Duration::from_millis(2)
        );
    }
}
