//! An engine that is read from a text, as it was written or with something changed: it is refused, or it works.

use std::time::Duration;

use serde_json::{Value, json};
use tower_throttle::{
    Adapt, Learned, Quota, Spend,
    engine::{
        Ask, Backoff, Config, Costs, Decision, Departed, Engine, Flight, Priority, Step, TicketId,
        Time, Told, ToldReading,
    },
};

use super::bytes::Bytes;

/// What can be named in a step: tickets and requests of before, or any.
#[derive(Debug, Default)]
pub(crate) struct Known {
    tickets: Vec<TicketId>,
    departed: Vec<Departed>,
}

/// An engine in its life.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) engine: Engine,
    pub(crate) now: Time,
    known: Known,
}

/// Panics where an engine's own state is refused or does not go on as before, or where one that was changed panics.
pub(crate) fn check(mut bytes: Bytes<'_>) {
    let mut life = Life::new(&mut bytes);
    for _ in 0..bytes.byte() % 64 {
        let step = life.step(&mut bytes);
        life.tell(&step);
        assert_eq!(life.engine.validate(), Ok(()), "after {step:?}");
    }
    let mut state = serde_json::to_value(&life.engine).unwrap();
    let changes = bytes.byte() % 5;
    for _ in 0..changes {
        change(&mut state, &mut bytes);
    }
    let restored = serde_json::from_value::<Engine>(state);
    if changes == 0 {
        let mut restored = restored.expect("it is as it was written");
        assert_eq!(restored.validate(), Ok(()));
        while !bytes.is_empty() {
            let step = life.step(&mut bytes);
            let again = step.run(life.now, &mut restored);
            while restored.take_woken().is_some() {}
            assert_eq!(life.tell(&step), again);
            assert_eq!(life.engine.after(), restored.after());
        }
    } else if let Ok(restored) = restored
        && restored.validate().is_ok()
    {
        life.engine = restored;
        while !bytes.is_empty() {
            let step = life.step(&mut bytes);
            life.tell(&step);
        }
        life.engine.view(life.now);
    }
}

impl Life {
    pub(crate) fn new(bytes: &mut Bytes<'_>) -> Self {
        let config = config(bytes);
        let now = Time::from_nanos(bytes.wild() >> 8);
        Self {
            engine: Engine::new(config, now).expect("the values were put right"),
            now,
            known: Known::default(),
        }
    }

    /// Something to tell, a while later.
    pub(crate) fn step(&mut self, bytes: &mut Bytes<'_>) -> Step {
        let passed = match bytes.byte() {
            0..80 => 0,
            80..180 => u64::from(bytes.byte()) * 1_000_000,
            180..250 => bytes.number(2) * 1_000_000,
            250.. => bytes.wild(),
        };
        self.now = self.now.after(Duration::from_nanos(passed));
        step(bytes, &self.known)
    }

    pub(crate) fn tell(&mut self, step: &Step) -> Decision {
        let decision = step.run(self.now, &mut self.engine);
        while self.engine.take_woken().is_some() {}
        match &decision {
            Decision::Placed(ticket, _) => self.known.tickets.push(*ticket),
            Decision::Sent(leave) => self.known.departed.push(Departed {
                flight: leave.flight,
                costs: leave.costs,
                would_wait: leave.would_wait,
            }),
            _ => {}
        }
        decision
    }
}

fn config(bytes: &mut Bytes<'_>) -> Config {
    let flags = bytes.byte();
    let mut config = Config::new(quota(bytes));
    config.further = (0..flags & 3).map(|_| quota(bytes)).collect();
    config.observe = flags & 0x7c == 4;
    config.max_wait = bytes.maybe(duration);
    config.max_queue = bytes.maybe(|bytes| usize::from(bytes.byte() % 16));
    if flags & 32 != 0 {
        config.max_pause = duration(bytes);
    }
    config.spend = match bytes.byte() % 4 {
        0 => Spend::Evenly,
        1 => Spend::Freely,
        2 => Spend::default(),
        _ => Spend::Horizon(duration(bytes)),
    };
    config.adapt = [Adapt::On, Adapt::Off][usize::from(flags >> 6 & 1)];
    if flags & 128 != 0 {
        let base = duration(bytes).max(Duration::from_nanos(1));
        let cap = base.max(duration(bytes));
        config.backoff = Backoff {
            base: bytes.maybe(|_| base),
            cap,
        };
    }
    config.learned = bytes.maybe(|bytes| {
        let rate = f64::from_bits(bytes.wild()).abs();
        let sound = rate.is_finite() && rate > 0.0;
        Learned::from_per_second(if sound { rate } else { 7.3 })
    });
    config
}

fn quota(bytes: &mut Bytes<'_>) -> Quota {
    let shape = bytes.byte();
    let (amount, burst, period) = if shape & 1 == 0 {
        let period = bytes.number(2) % 5_000 * 1_000_000 + 1;
        (bytes.byte().into(), bytes.byte().into(), period)
    } else {
        (bytes.wild() as u32, bytes.wild() as u32, bytes.wild() >> 2)
    };
    let period = Duration::from_nanos(period.max(1));
    if shape & 2 == 0 {
        let quota = Quota::new(amount.max(1), period).burst(burst.max(1));
        match shape & 12 {
            12 => quota.initial(burst / 2),
            _ => quota,
        }
    } else {
        Quota::at_most(amount.max(1), period)
    }
}

fn step(bytes: &mut Bytes<'_>, known: &Known) -> Step {
    match bytes.byte() {
        0..16 => Step::Advance,
        16..64 => Step::Join(ask(bytes)),
        64..80 => Step::TrySend(ask(bytes)),
        80..92 => Step::Poll(ticket(bytes, known)),
        92..130 => Step::Send(ticket(bytes, known), !bytes.byte().is_multiple_of(4)),
        130..142 => Step::Cancel(ticket(bytes, known)),
        142..146 => Step::Hurry(ticket(bytes, known), Time::from_nanos(bytes.wild())),
        146..184 => Step::Answer(departed(bytes, known).flight, told(bytes)),
        184..192 => Step::AnswerSilent(departed(bytes, known).flight),
        192..198 => Step::Unanswered(departed(bytes, known).flight),
        198..202 => Step::Reconcile(told(bytes)),
        202..206 => Step::Penalize(duration(bytes)),
        206..212 => Step::Reprice(departed(bytes, known), costs(bytes)),
        212..220 => Step::Settle(departed(bytes, known), costs(bytes)),
        220..228 => Step::SetQuota(usize::from(bytes.byte() % 5), quota(bytes)),
        228..234 => {
            let queue = bytes.maybe(|bytes| usize::from(bytes.byte()));
            Step::SetPatience(bytes.maybe(duration), queue, duration(bytes))
        }
        234..240 => Step::Halt,
        240..248 => Step::Resume,
        248..254 => Step::SetObserve(bytes.byte().is_multiple_of(4)),
        254.. => Step::Close,
    }
}

fn ask(bytes: &mut Bytes<'_>) -> Ask {
    let flags = bytes.byte();
    Ask {
        costs: costs(bytes),
        patience: (flags & 1 != 0).then(|| duration(bytes)),
        max_queue: (flags & 6 == 6).then(|| usize::from(bytes.byte() % 16)),
        max_pause: (flags & 24 == 24).then(|| duration(bytes)),
        priority: [Priority::Low, Priority::Normal, Priority::High][usize::from(flags >> 5) % 3],
    }
}

fn costs(bytes: &mut Bytes<'_>) -> Costs {
    match bytes.byte() {
        0..100 => Costs::each(1),
        100..200 => Costs::each(u32::from(bytes.byte() % 8)),
        200..250 => (0..4).fold(Costs::NONE, |costs, index| {
            costs.with(index, u32::from(bytes.byte() % 8))
        }),
        250.. => (0..4).fold(Costs::NONE, |costs, index| {
            costs.with(index, bytes.wild() as u32)
        }),
    }
}

/// One of before, mostly one of the last.
fn recent<T: Copy>(bytes: &mut Bytes<'_>, known: &[T]) -> Option<T> {
    let back = usize::from(bytes.byte());
    (back < 250)
        .then(|| back.checked_rem(known.len()))
        .flatten()
        .map(|back| known[known.len() - 1 - back])
}

fn ticket(bytes: &mut Bytes<'_>, known: &Known) -> TicketId {
    recent(bytes, &known.tickets).unwrap_or_else(|| {
        let text = json!({ "index": bytes.wild() as u32, "generation": bytes.wild() as u32 });
        serde_json::from_value(text).unwrap()
    })
}

fn departed(bytes: &mut Bytes<'_>, known: &Known) -> Departed {
    recent(bytes, &known.departed).unwrap_or_else(|| {
        let text =
            json!({ "number": bytes.wild(), "sent": bytes.wild(), "cost": bytes.wild() as u32 });
        let flight: Flight = serde_json::from_value(text).unwrap();
        Departed {
            flight,
            costs: costs(bytes),
            would_wait: bytes.maybe(duration).unwrap_or_default(),
        }
    })
}

fn told(bytes: &mut Bytes<'_>) -> Told {
    let flags = bytes.byte();
    Told {
        refused: flags & 1 != 0,
        wait: (flags & 2 != 0).then(|| duration(bytes)),
        least_backoff: if flags & 28 == 28 {
            duration(bytes)
        } else {
            Duration::ZERO
        },
        shared: flags & 96 == 96,
        readings: (0..bytes.byte() % 4).map(|_| reading(bytes)).collect(),
    }
}

fn reading(bytes: &mut Bytes<'_>) -> ToldReading {
    let (flags, name) = (bytes.byte(), bytes.byte());
    ToldReading {
        name: (flags & 1 != 0).then(|| ["a", "b", "c", "d"][usize::from(name % 4)].into()),
        partition: (name & 224 == 224).then(|| Box::from([name])),
        limit: (flags & 2 != 0).then(|| amount(bytes)),
        remaining: (flags & 4 == 0).then(|| amount(bytes)),
        reset: (flags & 8 == 0).then(|| duration(bytes)),
        window: (flags & 16 != 0).then(|| duration(bytes)),
        paces: flags & 96 != 96,
    }
}

fn amount(bytes: &mut Bytes<'_>) -> u64 {
    match bytes.byte() {
        0..240 => u64::from(bytes.byte()),
        240.. => bytes.wild(),
    }
}

fn duration(bytes: &mut Bytes<'_>) -> Duration {
    match bytes.byte() {
        0..120 => Duration::from_millis(bytes.number(2)),
        120..200 => Duration::from_secs(bytes.byte().into()),
        200..250 => Duration::from_nanos(bytes.wild()),
        250.. => Duration::new(bytes.wild(), bytes.number(4) as u32 % 1_000_000_000),
    }
}

/// Changes one thing somewhere in a value.
pub(crate) fn change(state: &mut Value, bytes: &mut Bytes<'_>) {
    let count = nodes(state);
    let mut place = bytes.number(2) as usize % count;
    let mut other = bytes.number(2) as usize % count;
    if bytes.byte() < 24 {
        // Of two places of one kind the one is as the other.
        let copied = node(state, &mut other).map(|node| node.clone());
        if let (Some(to), Some(copied)) = (node(state, &mut place), copied) {
            *to = copied;
        }
    } else if let Some(node) = node(state, &mut place) {
        change_node(node, bytes);
    }
}

fn change_node(node: &mut Value, bytes: &mut Bytes<'_>) {
    let (one, two) = (usize::from(bytes.byte()), usize::from(bytes.byte()));
    match node {
        Value::Number(number) => *node = json!(other(number.as_u64().unwrap_or(0), one, bytes)),
        Value::String(text) => {
            let huge = [i128::MAX, i128::MIN, i128::MAX / 4, 1 << 126, 0, -1, 1];
            let number = text.parse::<i128>().unwrap_or(0);
            *node = json!(match one % 10 {
                8 => number.saturating_add(bytes.wild().into()).to_string(),
                9 => number.saturating_sub(bytes.wild().into()).to_string(),
                7 => "waiting".to_owned(),
                index => huge[index].to_string(),
            });
        }
        Value::Bool(so) => *so = !*so,
        Value::Null => *node = json!(bytes.wild()),
        Value::Array(list) if list.is_empty() => list.push(json!(one)),
        Value::Array(list) => {
            let (one, two) = (one % list.len(), two % list.len());
            match bytes.byte() % 4 {
                0 => drop(list.remove(one)),
                1 => list.insert(two, list[one].clone()),
                2 => list.swap(one, two),
                _ => list.clear(),
            }
        }
        Value::Object(fields) if fields.is_empty() => *node = Value::Null,
        Value::Object(fields) => {
            let names: Vec<_> = fields.keys().cloned().collect();
            let (one, two) = (&names[one % names.len()], &names[two % names.len()]);
            match bytes.byte() % 8 {
                0 => drop(fields.remove(one)),
                1 => *node = Value::Null,
                _ => {
                    let (here, there) = (fields[one].clone(), fields[two].clone());
                    fields[one] = there;
                    fields[two] = here;
                }
            }
        }
    }
}

fn other(number: u64, how: usize, bytes: &mut Bytes<'_>) -> u64 {
    match how % 12 {
        0 => 0,
        1 => u64::MAX,
        2 => u64::MAX - 1,
        3 => u32::MAX.into(),
        4 => 1 << 62,
        5 => 1 << 63,
        6 => number.saturating_add(1),
        7 => number.saturating_sub(1),
        8 => u64::from(bytes.byte() % 8),
        9 => number.wrapping_mul(2),
        10 => number / 2,
        _ => bytes.wild(),
    }
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(nodes).sum(),
        Value::Object(fields) => fields.values().map(nodes).sum(),
        _ => 0,
    }
}

/// The one at this place, counted from the root.
fn node<'a>(value: &'a mut Value, place: &mut usize) -> Option<&'a mut Value> {
    if *place == 0 {
        return Some(value);
    }
    *place -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|value| node(value, place)),
        Value::Object(fields) => fields.values_mut().find_map(|value| node(value, place)),
        _ => None,
    }
}
