use tower_throttle::{Limiter, Priority, Quota};

use crate::support::{Timeline, settle};

/// Starts callers of one class that never stop, and counts what they get.
fn besiege(
    limiter: &Limiter,
    priority: Priority,
    callers: u32,
) -> std::sync::Arc<std::sync::atomic::AtomicU32> {
    let count = std::sync::Arc::<std::sync::atomic::AtomicU32>::default();
    for _ in 0..callers {
        let (limiter, count) = (limiter.clone(), count.clone());
        tokio::spawn(async move {
            loop {
                limiter.acquire(1).priority(priority).await.unwrap();
                count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        });
    }
    count
}

/// Whatever others do, each class gets its share: 16, 4 and 1 of 21.
#[tokio::test(start_paused = true)]
async fn no_class_starves_another() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(100)).unwrap();
    let classes = [Priority::High, Priority::Normal, Priority::Low];
    let counts = classes.map(|class| besiege(&limiter, class, 5));
    time.at(21.0).await;
    let got = counts.map(|count| f64::from(count.load(std::sync::atomic::Ordering::SeqCst)));
    let all: f64 = got.iter().sum();
    assert!(all >= 0.99 * 2100.0, "{all}");
    for (got, share) in got.into_iter().zip([16.0, 4.0, 1.0]) {
        assert!(
            (got - all * share / 21.0).abs() <= 0.02 * all,
            "{got} of {all}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_class_by_itself_gets_everything() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(100)).unwrap();
    let low = besiege(&limiter, Priority::Low, 5);
    time.at(10.0).await;
    assert!(low.load(std::sync::atomic::Ordering::SeqCst) >= 1000);
}

/// The web page does not wait behind the nightly job's line.
#[tokio::test(start_paused = true)]
async fn a_high_class_passes_a_long_line_of_a_low_one() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(10)).unwrap();
    for _ in 0..1000 {
        let limiter = limiter.clone();
        tokio::spawn(async move { limiter.acquire(1).priority(Priority::Low).await });
    }
    settle().await;
    for second in 1..20 {
        time.at(f64::from(second) + 0.05).await;
        let permit = limiter.acquire(1).priority(Priority::High).await.unwrap();
        assert!(permit.waited().as_secs_f64() <= 0.21, "{permit:?}");
    }
}

/// Within a class it is first come, first served.
#[tokio::test(start_paused = true)]
async fn a_class_keeps_its_order() {
    let limiter = Limiter::new(Quota::per_second(100)).unwrap();
    let order = std::sync::Arc::<std::sync::Mutex<Vec<(Priority, u32)>>>::default();
    let mut tasks = Vec::new();
    for number in 0..60 {
        for class in [Priority::Low, Priority::High, Priority::Normal] {
            let (limiter, order) = (limiter.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                limiter.acquire(1).priority(class).await.unwrap();
                order.lock().unwrap().push((class, number));
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    let order = order.lock().unwrap();
    for class in [Priority::Low, Priority::High, Priority::Normal] {
        let of_class = order.iter().filter(|(other, _)| *other == class);
        assert!(of_class.map(|(_, number)| number).is_sorted());
    }
    // The last of the highest is served long before the last of the lowest.
    let last = |class| order.iter().rposition(|(other, _)| *other == class);
    assert!(last(Priority::High) < last(Priority::Normal));
    assert!(last(Priority::Normal) < last(Priority::Low));
}
