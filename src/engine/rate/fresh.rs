use super::{Rate, Time};

impl Rate {
    /// Whether nothing has been learnt that would still matter: never refused, or only in ways that were no evidence and are forgotten.
    ///
    /// How many requests were accepted does not count as learnt.
    pub(in crate::engine) fn is_fresh(&self, now: Time) -> bool {
        let learnt = self.episode.is_some() || self.guess.is_some() || self.known.is_some();
        !learnt && self.current == self.full && self.streak.is_forgotten(now)
    }
}
