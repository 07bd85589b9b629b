//! Explicit congestion notification: whether packets are marked, and what the counts that come back say of the path
//! (RFC 9000, 13.4 and A.4).

use crate::carried::Carried;
use core::fmt;
use core::time::Duration;
use stayfast_frame::EcnCounts;
use stayfast_recovery::{Outcome, Sent};
use stayfast_units::{PacketNumber, Time};

/// The two bits of a packet that takes part: ECT(0).
pub(crate) const ECT0: u8 = 0b10;
/// Those of one that does not.
pub(crate) const NOT_ECT: u8 = 0b00;

/// Packets of a test (RFC 9000, 13.4.2: "only the first ten outgoing packets").
const TEST: u32 = 10;
/// So many lost, and none arrived: the mark is to blame. Fewer may be chance.
const BLAMED: u32 = 3;
/// A path that has failed is tested again after this; as often as larger packets are looked for.
const AGAIN: Duration = Duration::from_secs(600);

/// Whether a path tells of congestion by marks instead of losses (RFC 3168).
///
/// ```
/// assert_eq!(stayfast_link::Ecn::InUse.to_string(), "in use");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not known: nothing was sent, or no answer has come yet.
    #[default]
    Untested,
    /// Packets are marked, and the marks arrive.
    InUse,
    /// Something on the path drops marked packets, or changes the marks: none are sent.
    Unusable,
}

impl fmt::Display for Ecn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ecn::Untested => "being tested",
            Ecn::InUse => "in use",
            Ecn::Unusable => "not usable on this path",
        })
    }
}

/// RFC 9000, A.4, figure 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first packets are marked.
    Testing,
    /// Enough are, and what becomes of them is awaited without a mark.
    Unknown,
    Capable,
    Failed {
        since: Time,
    },
}

/// The marks of one direction. A test concerns the packets from number `from` on.
#[derive(Debug)]
pub(crate) struct Validation {
    state: State,
    /// Packets marked, in all.
    sent: u64,
    /// The number after the newest of them.
    next: u64,
    from: u64,
    /// Of the test: marked while testing, lost, arrived.
    tested: u32,
    lost: u32,
    acked: u64,
    /// The highest counts that the peer's run has told, and those when the test began.
    told: EcnCounts,
    base: EcnCounts,
    /// CE marks that were believed.
    marks: u64,
}

impl Validation {
    pub(crate) fn new() -> Validation {
        Validation {
            state: State::Testing,
            sent: 0,
            next: 0,
            from: 0,
            tested: 0,
            lost: 0,
            acked: 0,
            told: EcnCounts::default(),
            base: EcnCounts::default(),
            marks: 0,
        }
    }

    /// In words.
    pub(crate) fn is(&self) -> Ecn {
        match self.state {
            State::Testing | State::Unknown => Ecn::Untested,
            State::Capable => Ecn::InUse,
            State::Failed { .. } => Ecn::Unusable,
        }
    }

    /// The bits of the next packet with data.
    pub(crate) fn mark(&mut self, now: Time) -> u8 {
        if matches!(self.state, State::Failed { since } if now >= since + AGAIN) {
            self.restart();
        }
        if matches!(self.state, State::Testing | State::Capable) { ECT0 } else { NOT_ECT }
    }

    /// A packet leaves with a mark.
    pub(crate) fn sent(&mut self, number: PacketNumber) {
        self.sent += 1;
        self.next = number.next().0;
        if self.state == State::Testing {
            self.tested += 1;
            if self.tested >= TEST {
                self.state = State::Unknown;
            }
        }
    }

    /// A packet never left.
    pub(crate) fn unsent(&mut self, now: Time, sent: &Sent<Carried>) {
        if self.is_of_test(sent) && self.is() == Ecn::Untested {
            self.tested = self.tested.saturating_sub(1);
            self.judge_losses(now);
        }
    }

    fn is_of_test(&self, sent: &Sent<Carried>) -> bool {
        sent.carried.marked && sent.number.0 >= self.from
    }

    /// What became of a packet.
    pub(crate) fn settled(&mut self, now: Time, outcome: Outcome, sent: &Sent<Carried>) {
        if !self.is_of_test(sent) {
            return;
        }
        match outcome {
            Outcome::Acked => self.acked += 1,
            Outcome::Late => {
                self.acked += 1;
                self.lost = self.lost.saturating_sub(1);
            }
            Outcome::Lost => {
                self.lost = self.lost.saturating_add(1);
                self.judge_losses(now);
            }
            Outcome::Gone => {}
        }
    }

    /// RFC 9000, 13.4.2: "The endpoint monitors whether all packets sent with an ECT codepoint are eventually deemed
    /// lost".
    fn judge_losses(&mut self, now: Time) {
        if self.is() == Ecn::Untested && self.acked == 0 && self.lost == self.tested {
            self.state = if self.lost >= BLAMED { State::Failed { since: now } } else { State::Testing };
        }
    }

    /// An acknowledgement of new packets has come, of which [`settled`](Self::settled) was told before. True if packets
    /// were marked CE since the last one.
    ///
    /// RFC 9000, 13.4.2.1, in sums instead of steps: at any time as many marked packets must have been counted as were
    /// acknowledged. Sums hold whatever the order in which acknowledgements arrive.
    pub(crate) fn on_ack(&mut self, now: Time, counts: Option<EcnCounts>) -> bool {
        let counts = counts.unwrap_or_default();
        let before = self.told.ce;
        self.told = EcnCounts {
            ect0: self.told.ect0.max(counts.ect0),
            ect1: self.told.ect1.max(counts.ect1),
            ce: self.told.ce.max(counts.ce),
        };
        if matches!(self.state, State::Failed { .. }) {
            return false;
        }
        let (ect0, ce) = (self.told.ect0 - self.base.ect0, self.told.ce - self.base.ce);
        let bleached = ect0 + ce < self.acked;
        // Nobody here sends ECT(1), and a mark on what had none says that somebody writes marks at will.
        let remarked = self.told.ect1 > self.base.ect1 || self.told.ect0 + self.told.ce > self.sent;
        let everything_is_ce = ect0 == 0 && self.acked >= u64::from(TEST);
        if bleached || remarked || everything_is_ce {
            self.state = State::Failed { since: now };
            return false;
        }
        if ect0 > 0 && self.acked > 0 {
            self.state = State::Capable;
        }
        self.marks += self.told.ce - before;
        self.told.ce > before
    }

    /// Nothing is heard, and the mark may be why: what is under test goes on without it, and a path in use is tested
    /// again. Probes are never marked.
    pub(crate) fn on_probe_timeout(&mut self, now: Time) {
        match self.state {
            State::Testing if self.tested > 0 => {
                self.state = State::Unknown;
                self.judge_losses(now);
            }
            State::Capable => self.restart(),
            _ => {}
        }
    }

    /// The path is another one, or its test is to be done again.
    pub(crate) fn restart(&mut self) {
        self.state = State::Testing;
        self.forgotten();
    }

    /// What becomes of the packets in flight will never be known.
    pub(crate) fn forgotten(&mut self) {
        if self.state == State::Unknown {
            self.state = State::Testing;
        }
        (self.from, self.base) = (self.next, self.told);
        (self.tested, self.lost, self.acked) = (0, 0, 0);
    }

    /// Another run of the peer answers, which counts from nothing.
    pub(crate) fn run_changed(&mut self) {
        self.told = EcnCounts::default();
        self.forgotten();
    }

    /// Packets that arrived with a CE mark.
    pub(crate) fn marks(&self) -> u64 {
        self.marks
    }
}

#[cfg(test)]
mod tests;
