use crate::delivery::Snapshot;
use alloc::collections::VecDeque;
use stayfast_units::{PacketNumber, Time};

/// A packet that was sent.
///
/// ```
/// use stayfast_recovery::{Config, Ledger};
/// use stayfast_units::{PacketNumber, Time};
/// let mut ledger = Ledger::new(Config::default());
/// ledger.sent(PacketNumber(4), Time::ZERO, 1200, true, false, 'x').unwrap();
/// let sent = ledger.outstanding().next().unwrap();
/// assert_eq!((sent.number, sent.bytes, sent.carried), (PacketNumber(4), 1200, 'x'));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent<C> {
    /// Its number.
    pub number: PacketNumber,
    /// When it was sent.
    pub time: Time,
    /// Its size: UDP payload, in bytes.
    pub bytes: u16,
    /// The peer must acknowledge it (RFC 9000, 13.2).
    pub eliciting: bool,
    /// It only asks whether the path takes its size: its loss is no sign of congestion.
    pub size_probe: bool,
    /// What the owner of the ledger remembers about what it carried.
    pub carried: C,
    pub(crate) limited: bool,
    pub(crate) snapshot: Snapshot,
}

/// What is known of a packet in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    InFlight,
    Lost {
        at: Time,
        episode: u64,
    },
    /// Acknowledged, in time or late.
    Arrived,
    /// Never left this machine.
    Unsent,
}

impl State {
    fn is_open(self) -> bool {
        matches!(self, State::InFlight | State::Lost { .. })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Slot<C> {
    pub(crate) sent: Sent<C>,
    pub(crate) state: State,
    /// Of a settled slot: no slot from this place up to this one is open. What lets an acknowledgement step
    /// over everything that earlier ones have already told.
    settled_from: u64,
}

/// The packets between the oldest open one (in flight, or lost and remembered) and the newest.
///
/// They stand in the order of their numbers. A *place* counts the slots ever appended, so that it keeps its
/// meaning while the ring moves. Losses are found oldest first, hence every lost slot stands before every
/// slot in flight, and before those that were lost later.
#[derive(Clone, Debug)]
pub(crate) struct Ring<C> {
    slots: VecDeque<Slot<C>>,
    /// Place of the first slot.
    base: u64,
    /// Place of the oldest slot in flight; the end if there is none.
    flight: u64,
    #[cfg(test)]
    pub(crate) steps: u64,
}

impl<C: Copy> Ring<C> {
    pub(crate) fn new() -> Ring<C> {
        Ring {
            slots: VecDeque::new(),
            base: 0,
            flight: 0,
            #[cfg(test)]
            steps: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    fn end(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    fn index(&self, place: u64) -> Option<usize> {
        usize::try_from(place.checked_sub(self.base)?).ok()
    }

    pub(crate) fn get(&self, place: u64) -> Option<&Slot<C>> {
        self.slots.get(self.index(place)?)
    }

    pub(crate) fn push(&mut self, sent: Sent<C>) {
        self.slots.push_back(Slot { sent, state: State::InFlight, settled_from: 0 });
    }

    /// Place of the first slot whose number is not below `number`.
    pub(crate) fn at_or_after(&self, number: PacketNumber) -> u64 {
        self.base + self.slots.partition_point(|slot| slot.sent.number < number) as u64
    }

    /// Place of the newest open slot before `end`, and not before `start`.
    ///
    /// Steps over settled slots by their `settled_from`, and shortens the way for the next time: over the life
    /// of a slot this costs a constant number of steps per packet, not one per packet and acknowledgement.
    pub(crate) fn newest_open(&mut self, start: u64, end: u64) -> Option<u64> {
        let (start, end) = (start.max(self.base), end.min(self.end()));
        let mut below = end;
        let found = loop {
            if below <= start {
                break None;
            }
            #[cfg(test)]
            {
                self.steps += 1;
            }
            let slot = self.get(below - 1)?;
            if slot.state.is_open() {
                break Some(below - 1);
            }
            below = slot.settled_from;
        };
        self.shorten(end, below);
        found
    }

    /// Lets every settled slot on the way from `below` down to `from` point to `from`.
    fn shorten(&mut self, mut below: u64, from: u64) {
        while below > from.max(self.base) {
            let Some(slot) = self.index(below - 1).and_then(|index| self.slots.get_mut(index)) else { return };
            below = slot.settled_from;
            slot.settled_from = from;
        }
    }

    /// Gives an open slot its new state.
    pub(crate) fn set(&mut self, place: u64, state: State) {
        if let Some(slot) = self.index(place).and_then(|index| self.slots.get_mut(index)) {
            slot.state = state;
            slot.settled_from = place;
        }
        if place == self.flight {
            self.advance_flight();
        }
    }

    /// The oldest packet in flight.
    pub(crate) fn oldest_in_flight(&self) -> Option<(u64, &Sent<C>)> {
        self.get(self.flight).map(|slot| (self.flight, &slot.sent))
    }

    /// All packets in flight, oldest first.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Sent<C>> {
        let from = self.index(self.flight).unwrap_or(0).min(self.slots.len());
        self.slots.range(from..).filter(|slot| slot.state == State::InFlight).map(|slot| &slot.sent)
    }

    pub(crate) fn front(&self) -> Option<&Slot<C>> {
        self.slots.front()
    }

    pub(crate) fn pop_front(&mut self) {
        if self.slots.pop_front().is_some() {
            self.base += 1;
            self.flight = self.flight.max(self.base);
        }
    }

    /// Takes back the newest slots, as far as they never left: they would only wait for older ones to settle.
    pub(crate) fn pop_unsent(&mut self) {
        while self.slots.back().is_some_and(|slot| slot.state == State::Unsent) {
            self.slots.pop_back();
        }
        self.flight = self.flight.min(self.end());
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.base = self.end();
        self.flight = self.base;
        self.slots.clear();
    }

    /// Every slot is passed once in its life.
    fn advance_flight(&mut self) {
        while self.get(self.flight).is_some_and(|slot| slot.state != State::InFlight) {
            self.flight += 1;
        }
    }
}
