//! Which packets of one run came, and when its next acknowledgement is due (RFC 9000, 13.2).

use core::time::Duration;
use stayfast_frame::{AckHeader, AckRange, EcnCounts, Full, Writer};
use stayfast_ranges::RangeSet;
use stayfast_units::{PacketNumber, Time};

/// Ranges remembered; an ACK names the newest 64 of them.
const RANGES: usize = 256;
/// Receive times remembered, by packet number modulo this.
const TIMES: usize = 256;
/// Ack-eliciting packets after which an acknowledgement does not wait for company.
const EVERY: u32 = 2;

#[derive(Debug)]
pub(crate) struct Acks {
    received: RangeSet,
    times: alloc::boxed::Box<[(u64, Time); TIMES]>,
    largest: Option<(PacketNumber, Time)>,
    /// Ack-eliciting packets not acknowledged yet.
    waiting: u32,
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
            waiting: 0,
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

    /// The packet just received asks for an acknowledgement.
    pub(crate) fn elicited(&mut self, now: Time, delay: Duration, immediate: bool) {
        self.waiting += 1;
        let due = if immediate || self.waiting >= EVERY { now } else { now + delay };
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

    /// The run knows that we have everything up to `largest`: no need to say it again.
    pub(crate) fn confirmed(&mut self, largest: u64) {
        if self.largest.is_some_and(|(newest, _)| newest.0 > largest) {
            self.received.remove_below(largest + 1);
        } else {
            // The largest itself stays, since every ACK names it.
            self.received.remove_below(largest);
        }
    }
}
