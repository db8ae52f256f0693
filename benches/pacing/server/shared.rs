use super::{At, Bucket, Decision, Plan, Rule};
use crate::rng::Rng;

/// The stranger comes and goes each minute.
const TURN: u64 = 60;

/// A bucket with a stranger on the same key, who asks for a part of the rate in every second minute, whatever the answers. What the
/// stranger got is not ours: the rule allows the rest.
#[derive(Debug)]
pub(crate) struct Shared {
    bucket: Bucket,
    part: f64,
    next: At,
    rng: Rng,
    asked: u32,
    /// What the stranger got, by tenths of a second.
    taken: Vec<u32>,
}

impl Shared {
    pub(crate) fn new(rate: f64, burst: f64, part: f64, rng: Rng) -> Self {
        Self {
            bucket: Bucket::new(Plan::steady(rate), burst),
            part: rate * part,
            next: At::from_secs(TURN),
            rng,
            asked: 0,
            taken: Vec::new(),
        }
    }
}

impl Rule for Shared {
    fn decide(&mut self, now: At) -> Decision {
        while self.next <= now {
            let at = self.next;
            let cell = (at.as_millis() / 100) as usize;
            self.taken.resize(self.taken.len().max(cell + 1), 0);
            self.taken[cell] += u32::from(self.bucket.decide(at).accepted);
            self.asked += 1;
            // Roughly even, as of a client that is paced too.
            let gap = (0.5 + self.rng.unit()) / self.part;
            self.next = at + At::from_secs_f64(gap);
            let turn = self.next.as_secs() / TURN;
            if turn.is_multiple_of(2) {
                self.next = At::from_secs((turn + 1) * TURN);
            }
        }
        self.bucket.decide(now)
    }

    fn limit(&self, at: At) -> f64 {
        let cell = (at.as_millis() / 100) as usize;
        let taken = self.taken.get(cell).copied().unwrap_or(0);
        self.bucket.limit(at) - 10.0 * f64::from(taken)
    }

    fn note(&self) -> String {
        let got: u32 = self.taken.iter().sum();
        let got = f64::from(got) / f64::from(self.asked.max(1));
        format!("the stranger got {got:.2} of its wish")
    }
}
