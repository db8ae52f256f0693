//! Checkpoints: what an engine writes is read again, and what was changed in it is refused or does no harm.

use std::{
    io::{self, Write},
    process,
    sync::mpsc,
    thread,
    time::Duration,
};

use proptest::prelude::*;
use serde_json::json;
use tower_throttle::{
    Quota,
    engine::{Answer, Config, Engine, Time},
};

use crate::properties;

/// Far longer than anything takes.
const LONG: Duration = Duration::from_secs(60);

/// Runs it, and ends all tests if it never returns: nothing else ends it.
fn returns(input: &[u8], check: fn(&[u8])) {
    let (done, wait) = mpsc::channel::<()>();
    let bytes = input.to_owned();
    let run = thread::spawn(move || {
        check(&bytes);
        drop(done);
    });
    if wait.recv_timeout(LONG) == Err(mpsc::RecvTimeoutError::Timeout) {
        // Not by `eprintln`, which is kept back until the test ends.
        let text = format!("never returns on {input:?}\n");
        io::stderr().write_all(text.as_bytes()).unwrap();
        process::abort();
    }
    if let Err(panic) = run.join() {
        std::panic::resume_unwind(panic);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2 * crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn a_changed_state_is_refused_or_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..1_500)) {
        returns(&bytes, properties::restore);
    }
}

/// The count of them stays at the most it can be.
#[test]
fn more_refusals_in_a_row_than_can_be_counted_are_one_more_pause() {
    let engine = Engine::new(Config::new(Quota::per_second(1)), Time::ZERO).unwrap();
    let mut state = serde_json::to_value(engine).unwrap();
    state["rate"]["streak"]["refusals"] = json!(u32::MAX);
    let mut engine: Engine = serde_json::from_value(state).unwrap();
    engine.validate().unwrap();
    let refused = Answer {
        refused: true,
        wait: Some(Duration::from_secs(1)),
        ..Answer::default()
    };
    for minutes in 1..3 {
        let now = Time::ZERO.after(Duration::from_secs(60 * (minutes - 1)));
        let pause = engine.reconcile(now, &refused).paused.unwrap();
        assert_eq!(pause.until, now.after(Duration::from_secs(60)));
    }
}
