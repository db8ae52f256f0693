//! The engine's laws with answers as servers write them: header blocks, read by the reader.

use std::{fs, path::Path, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proptest::prelude::*;
use tower_throttle::{Adapt, Quota, Spend};

use crate::properties::{
    self,
    block::{self, Block, NAMES, NOW, VALUES},
    trace::{self, Head, Op, Setup},
};

const SECOND: u64 = 1_000_000_000;

fn nanos() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..2 * SECOND,
        3 => 0..100 * SECOND,
        1 => any::<u64>(),
    ]
}

/// Mostly fields that say something together, so that they do.
fn line() -> impl Strategy<Value = (&'static str, String)> {
    let name = prop_oneof![
        1 => prop::sample::select(NAMES),
        1 => prop::sample::select(&NAMES[..12]),
    ];
    let value = prop_oneof![
        3 => prop::sample::select(VALUES).prop_map(str::to_owned),
        2 => (0..30_u32).prop_map(|number| number.to_string()),
        1 => (0..100_u64).prop_map(|ahead| (NOW.as_secs() + ahead).to_string()),
        1 => "[0-9a-zA-Z:;,.=\"{} -]{0,20}",
    ];
    (name, value)
}

fn head() -> impl Strategy<Value = Head> {
    let status = prop::sample::select(&[200_u16, 200, 429, 429, 503, 403, 304, 500][..]);
    let dialect = prop_oneof![3 => Just(0), 1 => any::<u8>()];
    let lines = prop::collection::vec(line(), 0..6);
    (status, dialect, any::<u32>(), any::<bool>(), lines).prop_map(
        |(status, dialect, clock, in_step, lines)| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(
                    HeaderName::from_static(name),
                    HeaderValue::from_str(&value).unwrap(),
                );
            }
            let block = Block {
                status: StatusCode::from_u16(status).unwrap(),
                headers,
                now: std::time::UNIX_EPOCH + Duration::from_secs(clock.into()),
                dialect: block::dialect(dialect),
            };
            Head {
                block: Box::new(block),
                in_step,
            }
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let index = 0..12_usize;
    prop_oneof![
        8 => (0..6_u32, prop::option::weighted(0.2, nanos()))
            .prop_map(|(cost, patience)| Op::Join { cost, patience }),
        3 => index.clone().prop_map(Op::Poll),
        10 => (index.clone(), prop::bool::weighted(0.8))
            .prop_map(|(ticket, tracked)| Op::Send { ticket, tracked }),
        1 => index.clone().prop_map(Op::Cancel),
        5 => nanos().prop_map(Op::Advance),
        1 => nanos().prop_map(Op::Back),
        1 => (0..6_u32).prop_map(Op::Try),
        8 => (index.clone(), head()).prop_map(|(flight, head)| Op::Answer { flight, head }),
        1 => head().prop_map(Op::Reconcile),
        1 => index.prop_map(Op::Lost),
        1 => nanos().prop_map(Op::Pause),
        1 => Just(Op::Refund),
        1 => (0..80_u8).prop_map(Op::Work),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    let quota = (1..50_u32, 1_000_000..5 * SECOND, 1..8_u32).prop_map(|(amount, period, burst)| {
        Quota::new(amount, Duration::from_nanos(period)).burst(burst)
    });
    let patience = (
        prop::option::weighted(0.2, nanos()),
        prop::option::weighted(0.2, 0..10_usize),
        prop_oneof![3 => Just(3_600 * SECOND), 1 => nanos()],
        prop::option::weighted(0.3, (0..SECOND, 0..100 * SECOND)),
    );
    (quota, any::<[bool; 3]>(), patience).prop_map(|(quota, [freely, fixed, prompt], patience)| {
        let (max_wait, max_queue, max_pause, backoff) = patience;
        Setup {
            quota,
            spend: if freely { Spend::Freely } else { Spend::Evenly },
            adapt: if fixed { Adapt::Off } else { Adapt::On },
            max_wait,
            max_queue,
            max_pause,
            backoff,
            prompt,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn the_laws_hold_whatever_servers_say(
        setup in setup(),
        ops in prop::collection::vec(op(), 1..80),
    ) {
        trace::check(&setup, &ops);
    }

    /// As the fuzz targets do, without their guidance.
    #[test]
    fn no_bytes_break_a_law(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        properties::reader(&bytes);
        properties::answers(&bytes);
    }
}

/// What fuzzing found worth keeping.
fn replay(target: &str, check: fn(&[u8])) {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let mut inputs: Vec<_> = fs::read_dir(fuzz.join("corpus").join(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort_unstable();
    assert!(!inputs.is_empty());
    for input in inputs {
        println!("{}", input.display());
        check(&fs::read(&input).unwrap());
    }
}

#[test]
fn the_corpus_of_header_blocks_is_read() {
    replay("reader", properties::reader);
}

#[test]
fn the_corpus_of_traces_keeps_the_laws() {
    replay("answers", properties::answers);
}
