//! What a limiter recorded, told to fresh engines.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use http::Response;
use tower::{Layer, ServiceExt, service_fn};
use tower_throttle::{
    BoxError, Cost, Limiter, Priority, Quota, ThrottleLayer,
    audit::journal::{Journal, OnFailure, ReplayError, Request, files, replay},
};

use crate::Folder;

/// A small source of chance, the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn journal(path: &Path) -> Journal {
    // Far more than are written in one go.
    Journal::open(path).capacity(1 << 20).build().unwrap()
}

/// How many requests the random run makes. `THROTTLE_JOURNAL_REQUESTS` sets it for long runs.
fn requests() -> u64 {
    std::env::var("THROTTLE_JOURNAL_REQUESTS").map_or(3_000, |text| text.parse().unwrap())
}

/// Waits, refusals, cancels, pauses, settlements, classes and live changes, all at random.
async fn run(limiter: &Limiter, seed: u64) -> u64 {
    let calls = Arc::<AtomicU64>::default();
    let counter = Arc::clone(&calls);
    let mut chance = Chance(seed);
    let mut tasks = Vec::new();
    let answers = seed;
    let service = ThrottleLayer::new(limiter.clone())
        .cost(|request| Cost::new(1).of("tokens", request.path().len() as u32))
        .layer(service_fn(move |request: http::Request<u64>| {
            counter.fetch_add(1, SeqCst);
            async move {
                let mut chance = Chance(*request.body() ^ answers);
                tokio::time::sleep(Duration::from_millis(chance.below(300))).await;
                let response = match chance.below(40) {
                    0 => Response::builder().status(429),
                    1 => Response::builder().status(429).header("retry-after", 1),
                    2 => Response::builder()
                        .header("x-ratelimit-remaining", chance.below(20))
                        .header("x-ratelimit-reset", 2),
                    3 => return Err(std::io::Error::other("broken")),
                    _ => Response::builder(),
                };
                Ok(response.body(()).unwrap())
            }
        }));
    for number in 0..requests() {
        tokio::time::sleep(Duration::from_micros(chance.below(20_000))).await;
        match chance.below(100) {
            0 => limiter.penalize(Duration::from_millis(chance.below(500))),
            1 => {
                let quota = Quota::per_second(50 + chance.below(100) as u32).burst(20);
                limiter.set_quota("requests", quota).unwrap();
            }
            2 => limiter.pause(),
            3 => limiter.set_max_wait(Some(Duration::from_millis(500 + chance.below(2_000)))),
            4 => limiter.set_observe_only(true),
            5..8 => {
                limiter.resume();
                limiter.set_observe_only(false);
            }
            8..20 => drop(limiter.try_acquire(Cost::new(1).of("tokens", 3))),
            20..30 => {
                let acquire = limiter
                    .acquire(1 + chance.below(3) as u32)
                    .of("tokens", chance.below(40) as u32)
                    .priority(Priority::Low);
                tasks.push(tokio::spawn(async move {
                    if let Ok(mut permit) = acquire.await {
                        permit.settle(Cost::new(1).of("tokens", 7)).unwrap();
                    }
                }));
            }
            _ => {
                let uri =
                    "https://user@api.example.com/v1/\u{7f}?key=secret".replace('\u{7f}', "x");
                let request = http::Request::get(uri).body(number).unwrap();
                let service = service.clone();
                tasks.push(tokio::spawn(async move {
                    drop(service.oneshot(request).await);
                }));
            }
        }
        if chance.below(10) == 0 && !tasks.is_empty() {
            let index = chance.below(tasks.len() as u64) as usize;
            tasks.swap_remove(index).abort();
        }
        drop(limiter.snapshot());
    }
    limiter.resume();
    tokio::time::sleep(Duration::from_secs(600)).await;
    limiter.close();
    for task in tasks {
        drop(task.await);
    }
    calls.load(SeqCst)
}

/// Returns how often the inner service was called.
fn record(path: &Path, seed: u64) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let journal = journal(path);
    let limiter = Limiter::builder()
        .name("one")
        .quota("requests", Quota::per_second(100).burst(20))
        .quota("tokens", Quota::per_second(1_000).burst(500))
        .quota("strict", Quota::at_most(400, Duration::from_secs(5)))
        .max_queue(200)
        .audit(journal.clone())
        .build()
        .unwrap();
    let calls = runtime.block_on(run(&limiter, seed));
    journal.close(Duration::from_secs(60)).unwrap();
    calls
}

#[test]
fn a_random_run_replays_exactly() {
    let folder = Folder::new();
    for seed in 0..4 {
        let path = folder.0.join(format!("{seed}.jsonl"));
        let calls = record(&path, seed);
        let mut named = Vec::new();
        let replayed = replay(files(&path).unwrap(), |line| {
            if line.kind == "request" {
                named.push(line.value["seq"].as_u64().unwrap());
            }
        })
        .unwrap();
        // One for each call, and none without.
        assert_eq!(named.len() as u64, calls);
        named.sort_unstable();
        named.dedup();
        assert_eq!(named.len() as u64, calls);
        assert!(replayed.steps >= requests(), "{}", replayed.steps);
        assert!(replayed.summary.closed);
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("secret") && !text.contains("user"));
    }
}

/// Without its oldest files a journal is replayed from the first checkpoint.
#[test]
fn a_journal_without_its_beginning_replays_from_a_checkpoint() {
    let folder = Folder::new();
    let path = folder.file();
    let journal = Journal::open(&path)
        .capacity(1 << 20)
        .rotate_at_bytes(2 << 20)
        .build()
        .unwrap();
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(1_000).burst(5))
        .quota("strict", Quota::at_most(50, Duration::from_millis(100)))
        .audit(journal.clone())
        .build()
        .unwrap();
    for _ in 0..40_000 {
        drop(limiter.try_acquire(1));
    }
    journal.close(Duration::from_secs(60)).unwrap();
    let all = files(&path).unwrap();
    assert!(all.len() >= 4, "{}", all.len());
    let replayed = replay(&all, |_| ()).unwrap();
    assert_eq!((replayed.steps, replayed.skipped), (40_000, 0));
    let replayed = replay(&all[1..], |_| ()).unwrap();
    assert!(
        replayed.steps >= 10_000 && replayed.skipped > 0,
        "{replayed:?}"
    );
    // A file in between is missed.
    let gap = [&all[0], &all[2]];
    assert!(matches!(replay(gap, |_| ()), Err(ReplayError::Fault(_))));
}

/// From several threads on the real clock the order of the steps is that in which they were decided.
#[test]
fn many_threads_replay_exactly() {
    let folder = Folder::new();
    let path = folder.file();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .unwrap();
    let journal = journal(&path);
    let limiter = Limiter::builder()
        .name("many")
        .quota("requests", Quota::per_second(20_000).burst(10))
        .audit(journal.clone())
        .build()
        .unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..64)
            .map(|task| {
                let limiter = limiter.clone();
                tokio::spawn(async move {
                    for turn in 0..100 {
                        let acquire = limiter.acquire(1);
                        if (task + turn) % 7 == 0 {
                            drop(tokio::time::timeout(Duration::from_micros(200), acquire).await);
                        } else {
                            acquire.await.unwrap();
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    journal.close(Duration::from_secs(60)).unwrap();
    let replayed = replay([&path], |_| ()).unwrap();
    assert!(replayed.steps >= 6_400);
}

/// Two limiters in one journal, each opened anew when the process starts again.
#[test]
fn a_journal_is_shared_and_outlives_a_restart() {
    let folder = Folder::new();
    let path = folder.file();
    for _ in 0..3 {
        let journal = journal(&path);
        let build = |name: &str| {
            Limiter::builder()
                .name(name)
                .quota("q", Quota::per_second(10).burst(5))
                .audit(journal.clone())
                .build()
                .unwrap()
        };
        let (one, other) = (build("one"), build("other"));
        for _ in 0..10 {
            drop(one.try_acquire(1));
            drop(other.try_acquire(2));
        }
        journal.close(Duration::from_secs(10)).unwrap();
    }
    assert_eq!(replay([&path], |_| ()).unwrap().steps, 60);
}

/// A line that was forged with care, so that the chain holds, is a decision the engine would not make.
#[test]
fn a_decision_that_was_not_made_is_found() {
    let folder = Folder::new();
    let path = folder.file();
    let journal = journal(&path);
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(10).burst(5))
        .audit(journal.clone())
        .build()
        .unwrap();
    for _ in 0..10 {
        drop(limiter.try_acquire(1));
    }
    journal.close(Duration::from_secs(10)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let forged = forge(&text, |body| {
        body.replace("{\"refused\":[6,", "{\"refused\":[7,")
    });
    assert_ne!(text, forged);
    fs::write(&path, forged).unwrap();
    match replay([&path], |_| ()) {
        Err(ReplayError::Diverged(divergence)) => assert_eq!(divergence.limiter, "default"),
        other => panic!("{other:?}"),
    }
}

/// The same for a checkpoint, and for steps of a limiter that nothing says how it began.
#[test]
fn a_forged_checkpoint_and_a_missing_beginning_are_found() {
    let folder = Folder::new();
    let path = folder.file();
    let journal = journal(&path);
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(10).burst(5))
        .audit(journal.clone())
        .build()
        .unwrap();
    for _ in 0..10_001 {
        drop(limiter.try_acquire(1));
    }
    journal.close(Duration::from_secs(60)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let forged = forge(&text, |body| {
        if body.contains("\"checkpoint\":") {
            body.replace("\"agreed\":0", "\"agreed\":1")
        } else {
            body.to_owned()
        }
    });
    assert_ne!(text, forged);
    fs::write(&path, forged).unwrap();
    let replayed = replay([&path], |_| ());
    assert!(
        matches!(replayed, Err(ReplayError::Checkpoint(_, _))),
        "{replayed:?}"
    );
    let forged = forge(&text, |body| body.replace("\"opened\":", "\"other\":"));
    fs::write(&path, forged).unwrap();
    let replayed = replay([&path], |_| ());
    assert!(
        matches!(replayed, Err(ReplayError::Unopened(_, _))),
        "{replayed:?}"
    );
}

/// Where a limiter is replayed from a checkpoint, that is the only thing that says how it was.
#[test]
fn a_checkpoint_that_no_engine_comes_into_is_named_with_its_place() {
    let folder = Folder::new();
    let path = folder.file();
    let journal = journal(&path);
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(10).burst(5))
        .quota("strict", Quota::at_most(50, Duration::from_secs(64)))
        .audit(journal.clone())
        .build()
        .unwrap();
    for _ in 0..10_001 {
        drop(limiter.try_acquire(1));
    }
    journal.close(Duration::from_secs(60)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let line = text
        .lines()
        .position(|line| line.contains("\"checkpoint\":"))
        .unwrap();
    // As if the files before were missing.
    let without_beginning = |from: &str, to: &str| {
        let forged = forge(&text, |body| {
            if body.contains("\"checkpoint\":") {
                assert!(body.contains(from), "no {from} in {body}");
                return body.replacen(from, to, 1);
            }
            body.replace("\"opened\":", "\"other\":")
                .replace("\"start\":", "\"other\":")
        });
        fs::write(&path, forged).unwrap();
        replay([&path], |_| ())
    };
    let replayed = without_beginning("\"agreed\":0", "\"agreed\":0").unwrap();
    assert_eq!((replayed.steps, replayed.skipped), (1, 10_000));
    let most = u64::MAX.to_string();
    for (from, to, invariant) in [
        ("\"agreed\":0", "\"agreed\":3".to_owned(), "measurements"),
        (
            "\"slot\":1000000000",
            "\"slot\":0".to_owned(),
            "count in any window",
        ),
        ("\"seq\":10000", format!("\"seq\":{most}"), "counts"),
        (
            "\"held_cost\":0",
            format!("\"held_cost\":{most}"),
            "what is held",
        ),
        ("\"token\":\"", "\"token\":\"-".to_owned(), "bucket"),
        ("\"free\":[]", "\"free\":[7]".to_owned(), "free slot"),
        ("\"head\":4294967295", "\"head\":0".to_owned(), "links"),
        ("\"index\":1", "\"index\":9".to_owned(), "one gate"),
        ("\"at\":", "\"at\":1".to_owned(), "time of its line"),
        (
            "\"learned\":null",
            "\"learned\":{\"per_second\":\"NaN\"}".to_owned(),
            "configuration",
        ),
    ] {
        match without_beginning(from, &to) {
            Err(ReplayError::Unsound(n, limiter, why)) => {
                assert_eq!((n, &*limiter), (line as u64, "default"));
                assert!(why.invariant().contains(invariant), "{to}: {why}");
            }
            other => panic!("{to}: {other:?}"),
        }
    }
    // One that engines come into, but not by these steps, is found by the next step.
    let forged = without_beginning("\"sent\":", "\"sent\":1");
    assert!(
        matches!(forged, Err(ReplayError::Diverged(_))),
        "{forged:?}"
    );
}

/// Changes bodies and computes all hashes anew, as only somebody with the whole file could.
fn forge(text: &str, change: impl Fn(&str) -> String) -> String {
    use sha2::{Digest, Sha256};
    let mut chain = [0_u8; 32];
    let mut forged = String::new();
    for line in text.lines() {
        let body = change(&line[82..line.len() - 1]);
        let mut hash = Sha256::new();
        hash.update(chain);
        hash.update(body.as_bytes());
        chain = hash.finalize().into();
        let hash: String = chain.iter().map(|byte| format!("{byte:02x}")).collect();
        forged += &format!("{{\"hash\":\"{hash}\",\"body\":{body}}}\n");
    }
    forged
}

/// What was sent is in the journal, by number, and nothing that is secret.
#[test]
fn requests_are_named_and_keep_their_secrets() {
    let folder = Folder::new();
    let path = folder.file();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let journal = journal(&path);
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(10))
        .audit(journal.clone())
        .build()
        .unwrap();
    runtime.block_on(async {
        let service = ThrottleLayer::new(limiter).layer(service_fn(|_: http::Request<()>| async {
            Ok::<_, BoxError>(Response::new(()))
        }));
        let request = http::Request::put("https://me:pass@api.example.com:8443/v1/a?key=secret")
            .header("authorization", "Bearer secret")
            .body(())
            .unwrap();
        service.oneshot(request).await.unwrap();
    });
    journal.close(Duration::from_secs(10)).unwrap();
    let mut requests = Vec::new();
    replay([&path], |line| {
        if line.kind == "request" {
            requests.push(serde_json::from_value::<Request>(line.value.clone()).unwrap());
        }
    })
    .unwrap();
    assert_eq!(requests.len(), 1);
    let request = &requests[0];
    assert_eq!(
        (
            request.seq,
            &*request.method,
            &*request.host,
            &*request.path
        ),
        (1, "PUT", "api.example.com", "/v1/a")
    );
    assert_eq!((&*request.scheme, request.port), ("https", Some(8443)));
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("secret") && !text.contains("pass"));
}

/// Once the journal takes no more, nothing is sent unrecorded.
#[test]
fn what_cannot_be_recorded_is_refused() {
    let folder = Folder::new();
    let path = folder.file();
    let journal = Journal::open(&path)
        .capacity(8)
        .on_failure(OnFailure::Refuse)
        .build()
        .unwrap();
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(1_000).burst(1_000))
        .audit(journal.clone())
        .build()
        .unwrap();
    journal.close(Duration::from_secs(10)).unwrap();
    let error = limiter.try_acquire(1).unwrap_err();
    assert!(error.is_unrecorded(), "{error}");
    assert_eq!(limiter.snapshot().counters.sent, 0);
}
