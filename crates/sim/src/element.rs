use crate::{Discipline, Probability};
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
    /// This share of datagrams is lost, in bursts of so many on average: a Gilbert-Elliott chain, one step for each
    /// datagram. Bursts of n cannot make up more than n / (n + 1) of all, because two have a datagram between them.
    BurstLoss(Probability, u32),
    /// The next so many datagrams are lost.
    LoseNext(u32),
    /// Each datagram is followed by a copy of itself with this probability.
    Duplicate(Probability),
    /// One bit of the contents is flipped with this probability, and no checksum notices.
    Corrupt(Probability),
    /// IP packets of more bytes than this are dropped, and nobody is told: a black hole.
    Mtu(u64),
    /// What happens to ECN bits.
    Bleach(Bleach),
    /// A token bucket without a queue: datagrams pass at once as long as it has bytes for them
    /// ([`Datagram::wire_size`](crate::Datagram::wire_size)), and are dropped when it has not. It fills at this rate
    /// up to this many bytes, and is full at first.
    Policer(Rate, u64),
    /// Some datagrams are late, and the others overtake them.
    Late(Deviation),
    /// Each datagram waits for the most of the deviation, and some leave early by it: they overtake the others.
    Early(Deviation),
    /// Each datagram waits for a time of its own, from zero to this and all equally likely: datagrams overtake.
    Jitter(Duration),
    /// Like [`Element::Jitter`], but nothing overtakes: a datagram also waits for those before it.
    OrderedJitter(Duration),
    /// Each datagram waits this long. Nothing overtakes, not even when the delay becomes shorter.
    Delay(Duration),
    /// A bottleneck: datagrams leave one after the other, each after its exact time on the wire; what finds the
    /// queue full is dropped (drop-tail). At [`Rate::ZERO`] nothing leaves. As a change it is for every bottleneck,
    /// and leaves the discipline as it is.
    Rate(Rate, Limit),
    /// A bottleneck with a discipline for its queue. As a change it is for the bottlenecks with that discipline.
    Bottleneck(Rate, Limit, Discipline),
    /// While true, every datagram that arrives is dropped.
    Outage(bool),
}

/// A share of datagrams that comes at another time than the rest, by a time between two, all equally likely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deviation {
    /// How many of them.
    pub share: Probability,
    /// By this time at least.
    pub least: Duration,
    /// By this time at most; never less than `least`.
    pub most: Duration,
}

/// What a path does to the ECN bits of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bleach {
    /// Nothing.
    #[default]
    Off,
    /// Sets them to [`Ecn::NotEct`](crate::Ecn::NotEct).
    Clear,
    /// Drops every datagram that has one set.
    Drop,
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
