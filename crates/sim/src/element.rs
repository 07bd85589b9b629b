use crate::Probability;
use core::time::Duration;
use stayfast_units::Rate;

/// One thing that a path does to datagrams, with its parameters. A path is a chain of them, and
/// [`Path::set`](crate::Path::set) changes the parameters at any time.
///
/// ```
/// use core::time::Duration;
/// use stayfast_sim::{Element, Path};
/// use stayfast_units::Time;
///
/// let mut path = Path::new().with(Element::Delay(Duration::from_millis(10)));
/// assert!(path.set(Time::ZERO, Element::Delay(Duration::from_millis(50))));
/// assert!(!path.set(Time::ZERO, Element::Outage(true)), "there is no such switch on this path");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Each datagram is lost with this probability, whatever happened to the others.
    Loss(Probability),
    /// Each datagram is followed by a copy of itself with this probability.
    Duplicate(Probability),
    /// Each datagram waits for a time of its own, from zero to this and all equally likely: datagrams overtake.
    Jitter(Duration),
    /// Like [`Element::Jitter`], but nothing overtakes: a datagram also waits for those before it.
    OrderedJitter(Duration),
    /// Each datagram waits this long. Nothing overtakes, not even when the delay becomes shorter.
    Delay(Duration),
    /// A bottleneck: datagrams leave one after the other, each after its exact time on the wire; what finds the
    /// queue full is dropped (drop-tail). At [`Rate::ZERO`] nothing leaves.
    Rate(Rate, Limit),
    /// While true, every datagram that arrives is dropped.
    Outage(bool),
}

/// How much may wait at a bottleneck, beside the datagram that is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many bytes, as they are on the wire ([`Datagram::wire_size`](crate::Datagram::wire_size)).
    Bytes(u64),
    /// So many datagrams.
    Packets(u32),
}

impl Limit {
    /// No limit of its own: the path's bound on all it holds ([`HELD_MAX`](crate::HELD_MAX)) remains.
    pub const NONE: Limit = Limit::Bytes(u64::MAX);

    /// May this much wait?
    pub(crate) fn allows(self, packets: usize, bytes: u64) -> bool {
        match self {
            Limit::Bytes(limit) => bytes <= limit,
            Limit::Packets(limit) => packets <= limit as usize,
        }
    }
}
