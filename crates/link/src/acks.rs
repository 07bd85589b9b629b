//! Which packets of one run came, and when its next acknowledgement is due (RFC 9000, 13.2).

use alloc::collections::VecDeque;
use core::time::Duration;
use stayfast_frame::{AckHeader, AckRange, EcnCounts, Full, Writer};
use stayfast_ranges::RangeSet;
use stayfast_units::{PacketNumber, Time};

/// Ranges remembered; an ACK names the newest 64 of them.
const RANGES: usize = 256;
/// Receive times remembered, by packet number modulo this.
const TIMES: usize = 256;
/// Packets that came behind a later one and may not have been acknowledged, at most. Each may be a range of its own, and
/// the largest is one.
const BEHIND: usize = RANGES - 1;
/// Ack-eliciting packets after which an acknowledgement does not wait for company.
const EVERY: u32 = 2;
/// The first with records are answered each: a slow start has to see the queue as it forms, and on a short path that is a
/// matter of a few packets.
const FIRST: u32 = 256;

#[derive(Debug)]
pub(crate) struct Acks {
    received: RangeSet,
    times: alloc::boxed::Box<[(u64, Time); TIMES]>,
    largest: Option<(PacketNumber, Time)>,
    /// What came behind a later packet, and when, in order of time.
    behind: VecDeque<(u64, Time)>,
    /// Ack-eliciting packets not acknowledged yet.
    waiting: u32,
    /// How many with records have come, up to [`FIRST`].
    asked: u32,
    due: Option<Time>,
    out_of_order: bool,
    ecn: EcnCounts,
}

impl Acks {
    pub(crate) fn new() -> Acks {
        Acks {
            received: RangeSet::new(RANGES),
            times: alloc::boxed::Box::new([(u64::MAX, Time::ZERO); TIMES]),
            largest: None,
            behind: VecDeque::with_capacity(BEHIND),
            waiting: 0,
            asked: 0,
            due: None,
            out_of_order: false,
            ecn: EcnCounts::default(),
        }
    }

    /// Packet `number` came and was taken whole.
    pub(crate) fn received(&mut self, now: Time, number: PacketNumber, ecn: u8) {
        if self.received.insert(number.0).is_err() {
            // Too many gaps: the oldest range is the one its sender has long decided about.
            self.received.evict_oldest();
            let _ = self.received.insert(number.0);
        }
        self.times[number.0 as usize % TIMES] = (number.0, now);
        let in_order = self.largest.is_none_or(|(largest, _)| number == largest.next());
        if self.largest.is_none_or(|(largest, _)| number > largest) {
            self.largest = Some((number, now));
        } else {
            if self.behind.len() == BEHIND {
                self.behind.pop_front();
            }
            self.behind.push_back((number.0, now));
        }
        match ecn {
            1 => self.ecn.ect1 += 1,
            2 => self.ecn.ect0 += 1,
            3 => self.ecn.ce += 1,
            _ => {}
        }
        // The first packet out of order is told at once, as is a CE mark; the next ones in pairs.
        if (!in_order && !self.out_of_order) || ecn == 3 {
            self.due = Some(now);
        }
        self.out_of_order = !in_order;
    }

    /// The packet just received asks for an acknowledgement; `records`: it carries some.
    pub(crate) fn elicited(&mut self, now: Time, delay: Duration, immediate: bool, records: bool) {
        self.waiting += 1;
        let first = records && self.asked < FIRST;
        self.asked += u32::from(first);
        let due = if immediate || first || self.waiting >= EVERY { now } else { now + delay };
        self.due = Some(self.due.map_or(due, |old| old.min(due)));
    }

    /// When the acknowledgement must leave on its own.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due.filter(|_| self.waiting > 0)
    }

    /// Packets wait to be acknowledged, be it due or not.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Writes the ACK. Returns the largest packet it names.
    pub(crate) fn write(&mut self, now: Time, w: &mut Writer<'_>) -> Result<PacketNumber, Full> {
        let Some((largest, at)) = self.largest else { return Err(Full) };
        let marked = self.ecn.ect0 + self.ecn.ect1 + self.ecn.ce > 0;
        let header = AckHeader { delay: now - at, ecn: marked.then_some(self.ecn) };
        let times = &self.times;
        let ranges = self.received.iter().rev().map(|range| {
            let (number, time) = times[*range.end() as usize % TIMES];
            let received = if number == *range.end() { time } else { at };
            AckRange { first: PacketNumber(*range.start()), last: PacketNumber(*range.end()), received }
        });
        w.ack(header, ranges)?;
        self.waiting = 0;
        self.due = None;
        Ok(largest)
    }

    /// The run has an acknowledgement that was written at `written` and named everything up to `largest` that had come
    /// by then: no need to say that again. What came later, behind `largest`, was not in it.
    pub(crate) fn confirmed(&mut self, largest: u64, written: Time) {
        // The largest of all stays, since every ACK names it.
        let is_largest = self.largest.is_some_and(|(newest, _)| newest.0 <= largest);
        self.received.remove_below(if is_largest { largest } else { largest.saturating_add(1) });
        while self.behind.front().is_some_and(|(_, came)| *came < written) {
            self.behind.pop_front();
        }
        for &(number, _) in self.behind.iter().filter(|(number, _)| *number <= largest) {
            // There is room: fewer are behind than ranges are remembered.
            let _ = self.received.insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn acked(acks: &Acks) -> alloc::vec::Vec<u64> {
        acks.received.iter().flat_map(|range| range.clone()).collect()
    }

    /// How long after each of these packets (number, ECN bits, last of its flight) the acknowledgement leaves; one that is
    /// due leaves at once.
    fn waits(packets: &[(u64, u8, bool)]) -> alloc::vec::Vec<Duration> {
        waits_of(Acks { asked: FIRST, ..Acks::new() }, packets)
    }

    fn waits_of(mut acks: Acks, packets: &[(u64, u8, bool)]) -> alloc::vec::Vec<Duration> {
        let mut now = Time::ZERO;
        let one = |&(number, ecn, last): &(u64, u8, bool)| {
            now += MS / 10;
            acks.received(now, PacketNumber(number), ecn);
            acks.elicited(now, 5 * MS, last, true);
            let wait = acks.due().unwrap() - now;
            if wait.is_zero() {
                acks.write(now, &mut Writer::new(&mut [0; 100])).unwrap();
            }
            wait
        };
        packets.iter().map(one).collect()
    }

    #[test]
    fn every_second_packet_is_acknowledged_and_a_lone_one_after_a_while() {
        let packets = [(0, 0, false), (1, 0, false), (2, 0, false), (3, 0, false), (4, 0, false)];
        assert_eq!(waits(&packets), [5 * MS, Duration::ZERO, 5 * MS, Duration::ZERO, 5 * MS]);
    }

    #[test]
    fn the_first_of_a_run_are_acknowledged_each() {
        let packets: alloc::vec::Vec<_> = (0..260).map(|number| (number, 0, false)).collect();
        let waits = waits_of(Acks::new(), &packets);
        assert!(waits[..256].iter().all(Duration::is_zero));
        assert_eq!(waits[256..], [5 * MS, Duration::ZERO, 5 * MS, Duration::ZERO]);
    }

    #[test]
    fn the_first_packet_out_of_order_is_told_at_once_and_those_after_it_in_pairs() {
        // Packet 2 is late: 3 shows the gap, 4 goes on from there, and 2 itself is out of order again.
        let packets = [(0, 0, false), (1, 0, false), (3, 0, false), (4, 0, false), (2, 0, false), (5, 0, false)];
        let zero = Duration::ZERO;
        assert_eq!(waits(&packets), [5 * MS, zero, zero, 5 * MS, zero, 5 * MS]);
        // A row of them, each behind the one before.
        let packets = [(9, 0, true), (8, 0, false), (7, 0, false), (6, 0, false), (5, 0, false)];
        assert_eq!(waits(&packets), [zero, zero, 5 * MS, zero, 5 * MS]);
    }

    #[test]
    fn a_mark_of_congestion_and_the_last_of_a_flight_are_told_at_once() {
        let packets = [(0, 0b11, false), (1, 0b10, false), (2, 0b11, false), (3, 0b10, true), (4, 0b10, false)];
        let zero = Duration::ZERO;
        assert_eq!(waits(&packets), [zero, 5 * MS, zero, zero, 5 * MS]);
    }

    fn received(acks: &mut Acks, ms: u32, number: u64) {
        acks.received(Time::ZERO + MS * ms, PacketNumber(number), 0);
    }

    #[test]
    fn what_came_behind_after_an_acknowledgement_was_written_is_not_confirmed_by_it() {
        let mut acks = Acks::new();
        for (ms, number) in [(1, 0), (2, 5), (4, 3), (6, 4), (7, 8)] {
            received(&mut acks, ms, number);
        }
        // It was written after the fourth packet.
        acks.confirmed(5, Time::ZERO + MS * 5);
        assert_eq!(acked(&acks), [4, 8]);
        acks.confirmed(8, Time::ZERO + MS * 8);
        assert_eq!(acked(&acks), [8], "the largest stays");
    }

    #[test]
    fn of_many_that_come_behind_the_newest_are_remembered() {
        let mut acks = Acks::new();
        received(&mut acks, 0, 10_000);
        (0..600).for_each(|n| received(&mut acks, 1, 2 * n));
        acks.confirmed(10_000, Time::ZERO);
        let left: alloc::vec::Vec<u64> = (600 - BEHIND as u64..600).map(|n| 2 * n).chain([10_000]).collect();
        assert_eq!(acked(&acks), left);
    }
}
