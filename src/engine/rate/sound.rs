use super::{Episode, Rate};
use crate::engine::{
    config::Config,
    sound::{Unsound, holds, is_near},
};

impl Rate {
    /// Whether it is one that refusals can have made, where `full` is the configured rate.
    pub(in crate::engine) fn check(&self, config: &Config, full: u64) -> Result<(), Unsound> {
        let made_for =
            self.adapt == config.adapt && self.streak.is_of(config.backoff, config.adapt);
        holds(
            self.full == full && made_for,
            "the rate is that of the configuration",
        )?;
        let within = |rate: u64| (1..=full).contains(&rate);
        let before = |episode: &Episode| episode.before <= full;
        holds(
            within(self.current)
                && self.known.is_none_or(within)
                && self.episode.as_ref().is_none_or(before)
                && (self.guess.as_ref()).is_none_or(|guess| {
                    within(guess.limit) && guess.unsure <= full && before(&guess.cost)
                }),
            "no rate is above the configured one, or zero",
        )?;
        holds(
            self.agreed <= 2,
            "at most two measurements are remembered to agree",
        )?;
        let accepted = |episode: &Episode| is_near(episode.accepted());
        holds(
            (self.episode.as_ref()).is_none_or(accepted),
            "a flight's answers can have been counted",
        )?;
        let Some(guess) = &self.guess else {
            return Ok(());
        };
        holds(
            is_near(guess.progress)
                && (guess.fast.as_ref()).is_none_or(|fast| fast.began <= guess.progress),
            "a step of a probe began before it went on",
        )
    }
}
