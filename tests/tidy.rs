//! The layout is part of the design: dependencies point down, the engine is pure, files stay small.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    fs,
    path::{Path, PathBuf},
};

const LONGEST: usize = 500;

fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src")
        .join(folder);
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

/// Code without comments, as far as a line tells.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
}

fn forbid(folder: &str, words: &[&str]) {
    for (path, text) in sources(folder) {
        for line in code(&text) {
            for word in words {
                assert!(
                    !line.contains(word),
                    "{}: `{word}` does not belong in {folder}: {line}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn the_engine_is_pure() {
    forbid(
        "engine",
        &[
            "tokio",
            "tracing",
            "http::",
            "Mutex",
            "Atomic",
            "Waker",
            "async ",
            ".await",
            "SystemTime",
            "Instant",
            "crate::limiter",
            "crate::client",
            "crate::feedback",
            "crate::audit",
            "println!",
        ],
    );
}

#[test]
fn the_reader_is_pure() {
    forbid(
        "feedback",
        &[
            "tokio",
            "tracing",
            "Mutex",
            "Atomic",
            "async ",
            ".await",
            "::now()",
            "crate::engine",
            "crate::limiter",
            "crate::client",
            "crate::audit",
        ],
    );
}

#[test]
fn the_limiter_does_not_know_its_callers() {
    forbid("limiter", &["crate::client", "tower"]);
}

#[test]
fn files_are_short() {
    for (path, text) in sources("") {
        let lines = text.lines().count();
        let tests = path.ends_with("tests.rs");
        assert!(
            tests || lines <= LONGEST,
            "{} has {lines} lines",
            path.display()
        );
    }
}
