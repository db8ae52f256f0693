use std::{sync::Arc, time::Duration};

use super::{pause::PauseForAll, permit::Above};
use crate::{
    audit,
    engine::{Cause, Flight, Pause},
    feedback::{Feedback, Scope},
    limiter::{Limiter, Shared, observe},
};

/// Where an answer that concerns more than its key goes, besides the key's limiter.
#[derive(Debug, Clone)]
pub(crate) struct Wider {
    pub(super) all: Arc<PauseForAll>,
    pub(super) above: Option<Limiter>,
}

impl Wider {
    /// Applies what an answer said to the limiter of its key and, if the server says that it concerns everybody ([`Scope::Global`]), to
    /// all keys: whatever pause it brings is for all, and what there is to learn is learnt by the limiter above them instead of the key's.
    pub(crate) fn observe(
        &self,
        key: &Shared,
        seq: Option<u64>,
        flight: Option<Flight>,
        above: Option<Above>,
        feedback: &Feedback,
    ) -> (audit::Answered, Duration) {
        if feedback.scope != Scope::Global {
            return observe(key, seq, flight, feedback);
        }
        let mut to_key = feedback.clone();
        // A limit for all says nothing about the rate of this key.
        to_key.scope = Scope::Shared;
        let (answered, elapsed) = observe(key, seq, flight, &to_key);
        self.spread(feedback, answered.correction.paused);
        self.tell_above(above, feedback);
        (answered, elapsed)
    }

    /// The same where there is no limiter for the key.
    pub(super) fn observe_above(&self, feedback: &Feedback) {
        self.spread(feedback, None);
        self.tell_above(None, feedback);
    }

    fn tell_above(&self, above: Option<Above>, feedback: &Feedback) {
        if let Some(limiter) = &self.above {
            let (seq, flight) = above.map(|above| (above.seq, above.flight)).unzip();
            observe(limiter.shared(), seq, flight, feedback);
        }
    }

    fn spread(&self, feedback: &Feedback, paused: Option<Pause>) {
        let held = feedback.hold.map(|hold| hold.wait);
        let asked = (held.filter(|wait| !wait.is_zero()))
            .or_else(|| feedback.reset_on_refusal())
            .filter(|wait| feedback.refused && !wait.is_zero());
        // What the server asks for counts for all even where a longer pause of this key hides it.
        if let Some(wait) = asked {
            let pause = Pause {
                until: self.all.after(wait),
                cause: Cause::Server,
            };
            let field = feedback.hold.as_ref().map(|hold| hold.field);
            self.all.extend(pause, asked, field);
        } else if let Some(pause) = paused {
            self.all.extend(pause, None, None);
        }
    }
}
