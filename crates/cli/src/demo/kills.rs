//! Who is killed when.

use super::random::Random;
use std::fmt;
use std::time::Duration;

/// One of the two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It has the outbox.
    Sender,
    /// It has the inbox.
    Receiver,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
        })
    }
}

/// A SIGKILL to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    /// Whom.
    pub side: Side,
    /// As soon as this many records are stored...
    pub stored: u64,
    /// ...and then this much later, so that it can hit anything.
    pub delay: Duration,
    /// Whether or not what was killed before has found its feet again.
    pub at_once: bool,
}

/// `count` kills, spread at random over a transfer of `total` records, the same for the same seed. By progress and not
/// by time, so that all of them happen while there is something to disturb, however fast the machine is.
pub fn plan(seed: u64, count: u32, total: u64) -> Vec<Kill> {
    let mut random = Random::new(seed, u64::from_be_bytes(*b"the kill"));
    let mut at: Vec<u64> = (0..count).map(|_| random.below(total * 19 / 20)).collect();
    at.sort_unstable();
    let kill = |stored| Kill {
        side: if random.below(2) == 0 { Side::Sender } else { Side::Receiver },
        stored,
        delay: Duration::from_micros(random.below(50_000)),
        at_once: random.below(4) == 0,
    };
    at.into_iter().map(kill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_come_from_the_seed_and_hit_both_sides() {
        let kills = plan(7, 24, 30_000);
        assert_eq!(kills, plan(7, 24, 30_000));
        assert_ne!(kills, plan(8, 24, 30_000));
        assert_eq!(kills.len(), 24);
        assert!(kills.is_sorted_by_key(|kill| kill.stored) && kills.iter().all(|kill| kill.stored < 28_500));
        let senders = kills.iter().filter(|kill| kill.side == Side::Sender).count();
        assert!((4..=20).contains(&senders), "{senders}");
        assert!(kills.iter().any(|kill| kill.at_once) && kills.iter().any(|kill| !kill.at_once));
    }

    #[test]
    fn there_is_a_plan_for_nothing() {
        assert_eq!(plan(7, 2, 0).len(), 2);
    }
}
