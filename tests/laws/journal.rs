//! The reader of journals on anything at all.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../journal/folder.rs"]
mod folder;
#[expect(dead_code, reason = "this uses its own part of them")]
#[path = "engine/properties/mod.rs"]
mod properties;

use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tower_throttle::{
    Learned, Limiter, Quota,
    audit::journal::{Journal, Lines, Opened, ReplayError, Sync, files, replay, verify},
    engine::Record,
};

use folder::{Folder, LONG};
use properties::{
    bytes::Bytes,
    restore::{Life, change},
};

/// The text of a journal with these lines, in which all hashes fit: whoever can write the file can write this.
fn chained(bodies: &[Value]) -> String {
    let mut chain = [0_u8; 32];
    let mut text = String::new();
    for body in bodies {
        let body = body.to_string();
        let hash = Sha256::new().chain_update(chain).chain_update(&body);
        chain = hash.finalize().into();
        let hash: String = chain.iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!("{{\"hash\":\"{hash}\",\"body\":{body}}}\n");
    }
    text
}

/// A journal without its beginning: a checkpoint in the middle of a life, and so many steps after it.
fn journal(bytes: &mut Bytes<'_>, steps: u8) -> Vec<Value> {
    let mut life = Life::new(bytes);
    for _ in 0..bytes.byte() % 64 {
        let step = life.step(bytes);
        life.tell(&step);
    }
    let header = json!({
        "format": 1, "version": "0.1.0", "previous": null, "chain": "0".repeat(64),
    });
    let mut bodies = vec![json!({ "n": 0, "wall": "2026-01-01T00:00:00Z", "file": header })];
    let mut line = |at: u64, kind: &str, value: Value| {
        let n = bodies.len();
        bodies.push(json!({
            "n": n, "at": at, "wall": "2026-01-01T00:00:00Z", "limiter": "a", kind: value,
        }));
    };
    let state = serde_json::to_value(&life.engine).unwrap();
    line(life.engine.now().as_nanos(), "checkpoint", state);
    for _ in 0..steps {
        let step = life.step(bytes);
        let decision = life.tell(&step);
        let after = life.engine.after();
        let record = Record {
            step,
            decision,
            after,
        };
        let record = serde_json::to_value(record).unwrap();
        line(life.engine.now().as_nanos(), "step", record);
    }
    bodies
}

/// The number of the line at which the replay ended.
fn place(error: &ReplayError) -> u64 {
    match error {
        ReplayError::Diverged(divergence) => divergence.n,
        ReplayError::Loss(n)
        | ReplayError::Checkpoint(n, _)
        | ReplayError::Unsound(n, ..)
        | ReplayError::Unopened(n, _)
        | ReplayError::Malformed(n) => *n,
        other => panic!("{other}"),
    }
}

/// What each line holds under its kind.
fn content(body: &mut Value) -> &mut Value {
    let kinds = ["file", "checkpoint", "step"];
    let kind = kinds.into_iter().find(|kind| body.get(kind).is_some());
    &mut body[kind.unwrap()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        let folder = Folder::new();
        fs::write(folder.file(), &bytes).unwrap();
        let read = verify([folder.file()], |_| ());
        // Nothing but the beginning of a line passes, and not as a line.
        if let Ok(summary) = read {
            prop_assert_eq!(summary.lines, 0);
            let start = bytes.len().min(3);
            prop_assert_eq!(&bytes[..start], &b"{\"h"[..start]);
        }
    }

    #[test]
    fn any_bytes_put_into_a_journal_are_found(
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'"'), Just(b'}')], 1..40),
        at in any::<proptest::sample::Index>(),
    ) {
        let folder = Folder::with_files(2);
        let all = files(folder.file()).unwrap();
        verify(&all, |_| ()).unwrap();
        let mut text = fs::read(folder.file()).unwrap();
        let at = at.index(text.len());
        let end = at + bytes.len();
        text.splice(at..at, bytes);
        fs::write(folder.file(), text).unwrap();
        match verify(&all, |_| ()) {
            Ok(summary) => prop_assert!(summary.torn.is_some()),
            // A newline put before a newline is an empty line after it.
            Err(fault) => prop_assert!(fault.byte <= end as u64),
        }
    }

    #[test]
    fn a_journal_without_its_beginning_replays(bytes in proptest::collection::vec(any::<u8>(), 0..1_000)) {
        let folder = Folder::new();
        fs::write(folder.file(), chained(&journal(&mut Bytes::new(&bytes), 30))).unwrap();
        prop_assert_eq!(replay([folder.file()], |_| ()).unwrap().steps, 30);
    }

    /// The hashes fit, so it is for the replay to see: an error that says where, never a panic, and always an end.
    #[test]
    fn a_forged_line_is_an_error_with_its_place_or_does_no_harm(
        bytes in proptest::collection::vec(any::<u8>(), 0..1_000),
        changes in proptest::collection::vec(any::<u8>(), 40),
        in_checkpoint in proptest::bool::weighted(0.7),
        at in 1..31_usize,
    ) {
        let folder = Folder::new();
        let mut bodies = journal(&mut Bytes::new(&bytes), 30);
        let at = if in_checkpoint { 1 } else { at };
        let mut changes = Bytes::new(&changes);
        while !changes.is_empty() {
            change(content(&mut bodies[at]), &mut changes);
        }
        fs::write(folder.file(), chained(&bodies)).unwrap();
        verify([folder.file()], |_| ()).unwrap();
        if let Err(error) = replay([folder.file()], |_| ()) {
            prop_assert!(place(&error) >= at as u64, "{}", error);
            let text = format!("line {}: ", place(&error));
            prop_assert!(error.to_string().contains(&text), "{}", error);
        }
    }

    /// To the bit, by whatever reads the JSON.
    #[test]
    fn any_float_is_read_as_it_was_written(float in proptest::num::f64::ANY) {
        let same = |read: Learned| {
            let read = read.per_second();
            read.to_bits() == float.to_bits() || (read.is_nan() && float.is_nan())
        };
        let learned = Learned::from_per_second(float);
        let text = serde_json::to_string(&learned).unwrap();
        prop_assert!(same(serde_json::from_str(&text).unwrap()), "{}", text);
        let value: Value = serde_json::from_str(&text).unwrap();
        prop_assert!(same(serde_json::from_value(value).unwrap()), "{}", text);
    }

    #[test]
    fn any_float_is_recorded_as_it_was(
        float in proptest::num::f64::POSITIVE | proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL,
    ) {
        let folder = Folder::new();
        let journal = Journal::open(folder.file()).sync(Sync::Never).build().unwrap();
        let limiter = Limiter::builder()
            .quota("q", Quota::per_second(1_000))
            .learned(Learned::from_per_second(float), std::time::Duration::ZERO)
            .audit(journal.clone())
            .build()
            .unwrap();
        let learned = limiter.learned();
        drop(limiter);
        journal.close(LONG).unwrap();
        replay([folder.file()], |_| ()).unwrap();
        let opened = Lines::open([folder.file()])
            .map(Result::unwrap)
            .find(|line| line.kind == "opened")
            .unwrap();
        let opened: Opened = serde_json::from_value(opened.value).unwrap();
        let recorded = opened.config.learned.map(Learned::per_second);
        prop_assert_eq!(recorded.map(f64::to_bits), Some(float.to_bits()), "{:?}", learned);
    }
}

/// As people write it in a configuration, and as it was written once.
#[test]
fn a_float_may_also_stand_there_as_a_number() {
    for (text, float) in [
        ("48.5", 48.5),
        ("48", 48.0),
        ("-1", -1.0),
        ("\"48.7\"", 48.7),
    ] {
        let text = format!("{{\"per_second\":{text}}}");
        let learned: Learned = serde_json::from_str(&text).unwrap();
        assert_eq!(learned.per_second(), float);
    }
    for text in ["\"fast\"", "null", "true", "\"\""] {
        let text = format!("{{\"per_second\":{text}}}");
        assert!(serde_json::from_str::<Learned>(&text).is_err());
    }
}
