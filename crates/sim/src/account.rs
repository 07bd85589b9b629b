use crate::datagram::{Datagram, Pool};

/// What became of the datagrams on a path. At any time
/// `entered + duplicated = left +` [`Stats::dropped`] `+` [`Path::in_flight`](crate::Path::in_flight).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Datagrams pushed into it.
    pub entered: u64,
    /// Copies made by [`Element::Duplicate`](crate::Element::Duplicate).
    pub duplicated: u64,
    /// Datagrams popped from it.
    pub left: u64,
    /// Dropped by chance or on demand: `Loss`, `BurstLoss`, `LoseNext`.
    pub lost: u64,
    /// Dropped because a queue, or the path as a whole, was full.
    pub overflowed: u64,
    /// Dropped by a [`Discipline`](crate::Discipline) though there was room.
    pub managed: u64,
    /// Dropped by [`Element::Policer`](crate::Element::Policer).
    pub policed: u64,
    /// Dropped by [`Element::Mtu`](crate::Element::Mtu).
    pub oversize: u64,
    /// Dropped because of their ECN bits, by [`Bleach::Drop`](crate::Bleach::Drop).
    pub refused: u64,
    /// Dropped by [`Element::Outage`](crate::Element::Outage).
    pub cut: u64,
    /// Of which [`Element::Corrupt`](crate::Element::Corrupt) has flipped a bit.
    pub corrupted: u64,
    /// Marked by a [`Discipline`](crate::Discipline) instead of dropped; twice, if two of them do.
    pub marked: u64,
    /// Of which [`Bleach::Clear`](crate::Bleach::Clear) has cleared the ECN bits.
    pub bleached: u64,
}

impl Stats {
    /// All that were dropped, for whatever reason.
    pub const fn dropped(&self) -> u64 {
        self.lost + self.overflowed + self.managed + self.policed + self.oversize + self.refused + self.cut
    }
}

/// Why a datagram is dropped. Each has its counter in [`Stats`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost,
    Overflowed,
    Managed,
    Policed,
    Oversize,
    Refused,
    Cut,
}

/// The books of a path, and the buffers of what it has dropped.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) stats: Stats,
    /// Datagrams that wait somewhere on the path.
    pub(crate) held: usize,
    pub(crate) pool: Pool,
}

impl Account {
    /// Drops a datagram that nothing holds.
    pub(crate) fn drop(&mut self, datagram: Datagram, fate: Fate) {
        let stats = &mut self.stats;
        *match fate {
            Fate::Lost => &mut stats.lost,
            Fate::Overflowed => &mut stats.overflowed,
            Fate::Managed => &mut stats.managed,
            Fate::Policed => &mut stats.policed,
            Fate::Oversize => &mut stats.oversize,
            Fate::Refused => &mut stats.refused,
            Fate::Cut => &mut stats.cut,
        } += 1;
        self.pool.put(datagram.bytes);
    }

    /// Drops a datagram that has been held.
    pub(crate) fn discard(&mut self, datagram: Datagram, fate: Fate) {
        self.held -= 1;
        self.drop(datagram, fate);
    }
}
