//! The operations, and the oracle that knows the truth: what the property test, the fuzz target and the
//! replay of the corpus share.
//!
//! The oracle plays the network and the peer, so it knows which packets arrived. It repeats every rule in
//! its simplest form, over all packets ever sent, and compares after each operation. It also keeps the state of a
//! congestion controller as the list of reductions in force, and demands that no undo ever takes back one that
//! answers a packet that did not arrive, a CE mark, or persistent congestion.

mod controller;
mod episode;
mod world;

use crate::{Config, Ledger, Stats};
use arbitrary::Arbitrary;
use core::time::Duration;
use world::World;

/// Places in the ring: few, so that it gets full.
pub(crate) const CAPACITY: usize = 48;

/// What may happen to a ledger.
///
/// ```
/// use stayfast_recovery::fuzzing::{Op, check};
/// check(&[Op::Send { count: 3, bytes: 1200, limited: false }, Op::Arrive { which: 2 }, Op::Ack { delay: 0 }]);
/// ```
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Up to 16 packets are sent at once.
    Send {
        /// How many, modulo 16, and one more.
        count: u8,
        /// The size of each.
        bytes: u16,
        /// Nothing more to send.
        limited: bool,
    },
    /// A recorded packet that elicits no acknowledgement is sent.
    SendQuiet,
    /// A probe of the path's size is sent.
    SendSizeProbe {
        /// Its size.
        bytes: u16,
    },
    /// A number is used and not recorded.
    SendUnrecorded,
    /// A packet arrives at the peer.
    Arrive {
        /// Which of those under way.
        which: u8,
    },
    /// All packets under way arrive.
    ArriveAll,
    /// A packet is truly lost.
    Drop {
        /// Which of those under way.
        which: u8,
    },
    /// The peer acknowledges all that arrived, and the acknowledgement arrives at once.
    Ack {
        /// What it says it waited, in microseconds.
        delay: u16,
    },
    /// An earlier acknowledgement arrives once more.
    AckAgain {
        /// Which of the last few.
        which: u8,
    },
    /// Time passes, and every deadline in it is met.
    Wait {
        /// In steps of 32 microseconds.
        steps: u8,
    },
    /// Time passes, and nobody looks at deadlines.
    Oversleep {
        /// In steps of 32 microseconds.
        steps: u8,
    },
    /// What ends most of what goes on, and must not happen all the time if anything is to go on.
    Rarely(Rare),
}

/// What happens more rarely than the rest.
///
/// ```
/// use stayfast_recovery::fuzzing::{Op, Rare, check};
/// check(&[Op::SendQuiet, Op::Rarely(Rare::Abandon)]);
/// ```
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rare {
    /// The newest packets turn out not to have left.
    Unsend {
        /// How many, modulo 4, and one more.
        count: u8,
    },
    /// A CE mark comes back, for the newest packet.
    Mark,
    /// A long time passes, and every deadline in it is met.
    Idle {
        /// Seconds.
        seconds: u8,
    },
    /// The peer claims to have received a range of packets. From now on, that is the truth.
    Claim {
        /// How far the last is behind the newest.
        behind: u8,
        /// How many more.
        more: u8,
    },
    /// The peer acknowledges a number that was never used.
    AckUnused {
        /// How far beyond the newest, less one.
        beyond: u8,
    },
    /// The peer's run ended.
    Abandon,
    /// The path changed.
    PathChanged,
}

/// Runs `ops` and panics where the ledger and the truth disagree.
pub fn check(ops: &[Op]) {
    run(ops, ledger());
}

/// As [`check`], of a ledger with a fault.
#[cfg(any(test, feature = "mutants"))]
pub fn check_mutant(ops: &[Op], mutant: crate::Mutant) {
    run(ops, ledger().with_mutant(mutant));
}

pub(crate) fn ledger() -> Ledger<u64> {
    Ledger::new(Config { capacity: CAPACITY, initial_rtt: Duration::from_millis(10), ..Config::default() })
}

/// Gives the final counts, so that a test can see what the operations reach.
pub(crate) fn run(ops: &[Op], ledger: Ledger<u64>) -> Stats {
    let mut world = World::new(ledger);
    for op in ops {
        world.apply(*op);
        world.compare();
    }
    world.settle()
}
