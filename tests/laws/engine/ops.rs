//! What happens in the random traces of `mixed.rs`.

use std::time::Duration;

use proptest::prelude::*;
use tower_throttle::{
    Quota,
    engine::{Priority, QUOTAS},
};

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Join {
        costs: [u32; QUOTAS],
        priority: Priority,
        patience: Option<u64>,
    },
    Poll(usize),
    Send(usize),
    Cancel(usize),
    Advance(u64),
    Back(u64),
    Try([u32; QUOTAS]),
    Answer {
        flight: usize,
        refused: bool,
        wait: u64,
    },
    Pause(u64),
    Charge([u32; QUOTAS]),
    /// What one that left really cost.
    Settle(usize, [u32; QUOTAS]),
    SetQuota(usize, Quota),
    SetPatience(Option<u64>, u64),
    Halt,
    Resume,
    Observe(bool),
    Close,
}

pub(crate) fn quota() -> impl Strategy<Value = Quota> {
    let period = || 100_000_000..5_000_000_000_u64;
    let wild = prop_oneof![1..=1_u64 << 62, Just(1_u64), Just(1 << 62), 1..1000_u64];
    let amount = prop_oneof![1..=u32::MAX, Just(1_u32), Just(u32::MAX)];
    let quota = |(amount, period, burst): (u32, u64, u32)| {
        Quota::new(amount, Duration::from_nanos(period)).burst(burst)
    };
    let most = |(amount, window): (u32, u64)| Quota::at_most(amount, Duration::from_nanos(window));
    prop_oneof![
        5 => (1..30_u32, period(), 1..8_u32).prop_map(quota),
        4 => (1..20_u32, period()).prop_map(most),
        1 => (amount.clone(), wild.clone(), 1..=u32::MAX).prop_map(quota),
        1 => (amount, wild).prop_map(most),
    ]
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let cost = || prop_oneof![30 => 0..6_u32, 1 => Just(u32::MAX), 1 => any::<u32>()];
    let costs = move || [cost(), cost(), cost(), cost()];
    let cheap = || prop_oneof![40 => [0..9_u32, 0..9_u32, 0..9_u32, 0..9_u32], 1 => costs()];
    let time = || prop_oneof![9 => 0..2_000_000_000_u64, 1 => any::<u64>(), 1 => 0..100_u64];
    let short = || 0..1_000_000_000_u64;
    let priority = || {
        prop_oneof![
            Just(Priority::Low),
            Just(Priority::Normal),
            Just(Priority::High)
        ]
    };
    prop_oneof![
        14 => (costs(), priority(), prop::option::weighted(0.2, time()))
            .prop_map(|(costs, priority, patience)| Op::Join { costs, priority, patience }),
        6 => (0..20_usize).prop_map(Op::Poll),
        12 => (0..20_usize).prop_map(Op::Send),
        3 => (0..20_usize).prop_map(Op::Cancel),
        8 => short().prop_map(Op::Advance),
        1 => time().prop_map(Op::Advance),
        1 => time().prop_map(Op::Back),
        3 => costs().prop_map(Op::Try),
        3 => (0..20_usize, any::<bool>(), 1..3_000_000_000_u64)
            .prop_map(|(flight, refused, wait)| Op::Answer { flight, refused, wait }),
        1 => time().prop_map(Op::Pause),
        1 => cheap().prop_map(Op::Charge),
        3 => (0..20_usize, cheap()).prop_map(|(index, real)| Op::Settle(index, real)),
        3 => (0..QUOTAS, quota()).prop_map(|(index, quota)| Op::SetQuota(index, quota)),
        1 => (prop::option::of(time()), time()).prop_map(|(wait, pause)| Op::SetPatience(wait, pause)),
        1 => Just(Op::Halt),
        2 => Just(Op::Resume),
        2 => prop::bool::weighted(0.3).prop_map(Op::Observe),
        1 => prop::bool::weighted(0.05)
            .prop_map(|close| if close { Op::Close } else { Op::Resume }),
    ]
}
