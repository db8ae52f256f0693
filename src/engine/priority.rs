use super::{
    costs::{Costs, Sums},
    tickets::List,
};

/// The class of a caller.
///
/// Within a class it is first come, first served. While several classes wait, each is served in proportion to its weight: 16, 4 and 1.
/// So a class is never starved, by a higher one or a lower one, and what a class does not use the others have.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Priority {
    /// At least 1 of 21 units.
    Low,
    /// At least 4 of 21 units. Who says nothing is of this class.
    #[default]
    Normal,
    /// At least 16 of 21 units.
    High,
}

const CLASSES: usize = 3;

/// What one unit of cost takes of a class's turn: the less, the higher its weight.
const STRIDES: [u64; CLASSES] = [16, 4, 1];

/// Those who wait, by class. The highest class comes last.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone)]
pub(super) struct Line {
    classes: [Class; CLASSES],
    /// The turn of the class that was served last; a class that comes back gets no turns for the time it was away.
    turn: u64,
}

#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    pub(super) list: List,
    /// What all in it cost.
    pub(super) cost: Sums,
    /// It is served when no other class has an earlier turn.
    turn: u64,
}

impl Line {
    pub(super) const EMPTY: Self = Self {
        classes: [Class {
            list: List::EMPTY,
            cost: Sums::NONE,
            turn: 0,
        }; CLASSES],
        turn: 0,
    };

    pub(super) const fn is_empty(&self) -> bool {
        let [low, normal, high] = &self.classes;
        low.list.is_empty() && normal.list.is_empty() && high.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.classes.iter().map(|class| class.list.len()).sum()
    }

    pub(super) const fn class(&self, priority: Priority) -> &Class {
        &self.classes[priority as usize]
    }

    pub(super) const fn class_mut(&mut self, priority: Priority) -> &mut Class {
        &mut self.classes[priority as usize]
    }

    /// The classes in which somebody waits.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Priority> + use<> {
        let [low, normal, high] = &self.classes;
        let waits = [low, normal, high].map(|class| !class.list.is_empty());
        (ALL.into_iter()).filter(move |&priority| waits[priority as usize])
    }

    /// The class whose turn it is.
    pub(super) fn next(&self) -> Option<Priority> {
        if self.is_empty() {
            return None;
        }
        // Of two with the same turn the higher one, which comes last.
        self.waiting()
            .min_by_key(|&priority| (self.class(priority).turn, std::cmp::Reverse(priority)))
    }

    /// Somebody is about to join a class.
    pub(super) const fn joining(&mut self, priority: Priority) {
        let turn = self.turn;
        let class = self.class_mut(priority);
        if class.list.is_empty() && class.turn < turn {
            class.turn = turn;
        }
    }

    /// Somebody of a class was served.
    pub(super) fn served(&mut self, priority: Priority, costs: &Costs) {
        let class = self.class_mut(priority);
        let turn = class.turn;
        let cost = u64::from(costs.first().max(1));
        class.turn = turn.saturating_add(cost * STRIDES[priority as usize]);
        self.turn = self.turn.max(turn);
    }

    /// Somebody of a class was served and did not leave.
    pub(super) fn unserved(&mut self, priority: Priority, costs: &Costs) {
        let cost = u64::from(costs.first().max(1));
        let class = self.class_mut(priority);
        class.turn = class.turn.saturating_sub(cost * STRIDES[priority as usize]);
    }

    /// What is served before one who joins a class now, as far as can be known: its class, and of the others their share until then.
    pub(super) fn ahead(&self, priority: Priority) -> Sums {
        let class = self.class(priority);
        let first = if class.list.is_empty() {
            class.turn.max(self.turn)
        } else {
            class.turn
        };
        let turn = first.saturating_add(class.amount().saturating_mul(STRIDES[priority as usize]));
        (ALL.into_iter())
            .filter(|&other| other != priority)
            .map(|other| (self.class(other), STRIDES[other as usize]))
            .fold(class.cost, |sums, (other, stride)| {
                let share = turn.saturating_sub(other.turn) / stride;
                sums.add(other.cost.part(share, other.amount()))
            })
    }

    /// Nobody waits any more.
    pub(super) fn clear(&mut self) {
        for class in &mut self.classes {
            class.cost = Sums::NONE;
        }
    }
}

impl Class {
    /// What takes turns.
    fn amount(&self) -> u64 {
        // Those that cost nothing take one each.
        self.cost.of(0).max(self.list.len() as u64)
    }
}

const ALL: [Priority; CLASSES] = [Priority::Low, Priority::Normal, Priority::High];
