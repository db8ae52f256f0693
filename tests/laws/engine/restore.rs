//! Checkpoints: what an engine writes is read again, and what was changed in it is refused or does no harm.

use std::{
    io::{self, Write},
    process,
    sync::mpsc,
    thread,
    time::Duration,
};

use proptest::prelude::*;

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
        writeln!(io::stderr(), "never returns on {input:?}").unwrap();
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
