//! The line: a slab of tickets with two lists threaded through it, so that joining, leaving from the middle and granting are all O(1).

use super::{
    costs::{Costs, Sums},
    priority::Priority,
    sound::{Unsound, holds},
    time::Time,
};

/// Names one caller between its arrival and its end. Stale identifiers are recognised, never confused with a later caller.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TicketId {
    index: u32,
    generation: u32,
}

impl TicketId {
    /// The slot this ticket occupies; slots are reused, so it suits an array kept beside the engine.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.index as usize
    }
}

#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// In line.
    Waiting,
    /// Holds its tokens since `granted`, has not been sent.
    Held,
    /// Was granted and lost its tokens; stands at the front of the line again when it asks.
    Revoked,
    /// May be sent at any time and takes nothing: nothing is enforced.
    Passed,
    /// Will be told so when it asks next.
    Refused(Ejected),
}

/// Why a waiting ticket was taken out of the line.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ejected {
    Closed,
    Paused,
    /// A pause lasts longer than its patience.
    Hopeless,
    /// The burst has been lowered.
    TooExpensive {
        cost: u32,
        burst: u32,
    },
}

#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone)]
pub(super) struct Ticket {
    pub(super) seq: u64,
    /// Running sum of queued cost up to and including this one; only differences mean something.
    pub(super) queued_through: Sums,
    pub(super) arrived: Time,
    pub(super) granted: Time,
    /// When this caller will ask again at the latest, as it was told.
    pub(super) armed: Time,
    pub(super) deadline: Time,
    pub(super) costs: Costs,
    pub(super) priority: Priority,
    pub(super) state: State,
    /// It has been told to ask again and has not done so yet.
    pub(super) called: bool,
    /// It was granted from the line, which its class was charged for.
    pub(super) served: bool,
    generation: u32,
    prev: u32,
    next: u32,
}

const NONE: u32 = u32::MAX;

/// A list threaded through the slab.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    head: u32,
    tail: u32,
    len: usize,
}

impl List {
    pub(super) const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
        len: 0,
    };

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The slab.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Default)]
pub(super) struct Tickets {
    slots: Vec<Ticket>,
    free: Vec<u32>,
    generation: u32,
}

/// An empty slab larger than this gives its memory back.
const KEEP: usize = 1024;

impl Tickets {
    /// Those that are not free.
    pub(super) fn all(&self) -> impl Iterator<Item = &Ticket> {
        (self.slots.iter()).filter(|ticket| ticket.state != State::Free)
    }

    /// The tickets in a list, if its links hold together. They have an end then: a ticket has one before it, so none can be met twice.
    pub(super) fn members(&self, list: &List) -> Result<Vec<&Ticket>, Unsound> {
        const LINKED: &str = "a list's links hold together";
        let mut found = Vec::new();
        let (mut prev, mut at) = (NONE, list.head);
        while at != NONE {
            let ticket = (self.slots.get(at as usize)).ok_or(Unsound::new(LINKED))?;
            holds(ticket.prev == prev, LINKED)?;
            found.push(ticket);
            (prev, at) = (at, ticket.next);
        }
        holds(prev == list.tail && found.len() == list.len, LINKED)?;
        Ok(found)
    }

    pub(super) fn check_free(&self) -> Result<(), Unsound> {
        const ONCE: &str = "each free slot is listed once";
        let mut listed = vec![false; self.slots.len()];
        for &index in &self.free {
            let index = index as usize;
            let free = (self.slots.get(index)).is_some_and(|ticket| ticket.state == State::Free);
            holds(free && !std::mem::replace(&mut listed[index], true), ONCE)?;
        }
        let free = self.slots.len() - self.all().count();
        holds(free == self.free.len(), ONCE)
    }

    pub(super) fn insert(&mut self, mut ticket: Ticket) -> Option<TicketId> {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        ticket.generation = generation;
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = ticket;
            return Some(TicketId { index, generation });
        }
        let index = u32::try_from(self.slots.len())
            .ok()
            .filter(|&index| index != NONE)?;
        self.slots.push(ticket);
        Some(TicketId { index, generation })
    }

    /// Frees a ticket that is in no list.
    pub(super) fn remove(&mut self, id: TicketId) {
        self.slots[id.slot()].state = State::Free;
        self.free.push(id.index);
        if self.free.len() == self.slots.len() && self.slots.len() > KEEP {
            self.slots = Vec::new();
            self.free = Vec::new();
        }
    }

    /// How many slots there are, used or not.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn get(&self, id: TicketId) -> Option<&Ticket> {
        self.slots
            .get(id.slot())
            .filter(|ticket| ticket.generation == id.generation && ticket.state != State::Free)
    }

    pub(super) fn get_mut(&mut self, id: TicketId) -> Option<&mut Ticket> {
        self.slots
            .get_mut(id.slot())
            .filter(|ticket| ticket.generation == id.generation && ticket.state != State::Free)
    }

    pub(super) fn front(&self, list: &List) -> Option<TicketId> {
        self.id(list.head)
    }

    pub(super) fn back(&self, list: &List) -> Option<TicketId> {
        self.id(list.tail)
    }

    pub(super) fn next(&self, id: TicketId) -> Option<TicketId> {
        self.id(self.slots[id.slot()].next)
    }

    pub(super) fn push_back(&mut self, list: &mut List, id: TicketId) {
        self.link(list, list.tail, id.index, NONE);
    }

    /// Puts a ticket back where its number belongs; those that come back are few and near the front.
    ///
    /// The running sums keep growing along the line: those passed on the way give way by its cost.
    pub(super) fn insert_by_seq(&mut self, list: &mut List, id: TicketId) {
        let (seq, costs) = {
            let ticket = &self.slots[id.slot()];
            (ticket.seq, ticket.costs)
        };
        let mut next = list.head;
        while next != NONE && self.slots[next as usize].seq < seq {
            let ahead = &mut self.slots[next as usize];
            let through = ahead.queued_through;
            ahead.queued_through = through.minus(&costs);
            next = ahead.next;
            self.slots[id.slot()].queued_through = through;
        }
        let prev = if next == NONE {
            list.tail
        } else {
            self.slots[next as usize].prev
        };
        self.link(list, prev, id.index, next);
    }

    pub(super) fn unlink(&mut self, list: &mut List, id: TicketId) {
        let (prev, next) = {
            let ticket = &self.slots[id.slot()];
            (ticket.prev, ticket.next)
        };
        match prev {
            NONE => list.head = next,
            prev => self.slots[prev as usize].next = next,
        }
        match next {
            NONE => list.tail = prev,
            next => self.slots[next as usize].prev = prev,
        }
        list.len -= 1;
    }

    fn link(&mut self, list: &mut List, prev: u32, index: u32, next: u32) {
        let slot = &mut self.slots[index as usize];
        slot.prev = prev;
        slot.next = next;
        match prev {
            NONE => list.head = index,
            prev => self.slots[prev as usize].next = index,
        }
        match next {
            NONE => list.tail = index,
            next => self.slots[next as usize].prev = index,
        }
        list.len += 1;
    }

    fn id(&self, index: u32) -> Option<TicketId> {
        let generation = self.slots.get(index as usize)?.generation;
        Some(TicketId { index, generation })
    }
}

impl Ticket {
    pub(super) const fn new(
        seq: u64,
        costs: Costs,
        priority: Priority,
        arrived: Time,
        deadline: Time,
    ) -> Self {
        Self {
            seq,
            queued_through: Sums::NONE,
            arrived,
            granted: arrived,
            armed: Time::MAX,
            deadline,
            costs,
            priority,
            state: State::Waiting,
            called: false,
            served: false,
            generation: 0,
            prev: NONE,
            next: NONE,
        }
    }
}
