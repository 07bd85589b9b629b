use crate::account::{Account, Fate};
use crate::chance::Dice;
use crate::stage::{Stage, Verdict};
use crate::{Bleach, Datagram, Deviation, Discipline, Ecn, Element, Limit, Probability, Profile, Stats};
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use stayfast_units::{Rate, Time};

/// The most datagrams that a path holds at once; more are dropped and counted in [`Stats::overflowed`].
pub const HELD_MAX: usize = 1 << 18;

/// One direction of a way through a network: a chain of [`Element`]s, in the order a datagram meets them.
///
/// It is driven from outside and knows no clock: datagrams go in with [`Path::push`] and come out of
/// [`Path::pop`] once their time has come; [`Path::next_timeout`] says when to look again. Whoever looks late
/// gets the same datagrams in the same order: inside, everything happens at its own moment.
///
/// ```
/// use core::time::Duration;
/// use stayfast_sim::{Datagram, Limit, Path, Probability};
/// use stayfast_units::{Rate, Time};
///
/// let mut path = Path::new()
///     .loss(Probability::ZERO)
///     .delay(Duration::from_millis(10))
///     .rate(Rate::from_bits_per_sec(50_000_000), Limit::Bytes(125_000));
/// let (a, b) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
/// path.push(Time::ZERO, Datagram::new(a, b, vec![0; 1_208]));
///
/// // 1,250 B on the wire at 50 Mbit/s take 200 us, after the delay of 10 ms.
/// assert_eq!(path.next_timeout(), Some(Time::from_millis(10)));
/// assert!(path.pop(Time::from_millis(10)).is_none());
/// assert_eq!(path.next_timeout(), Some(Time::from_nanos(10_200_000)));
/// assert!(path.pop(Time::from_nanos(10_200_000)).is_some());
/// assert_eq!(path.stats().left, 1);
/// ```
#[derive(Debug, Default)]
pub struct Path {
    name: String,
    seed: u64,
    now: Time,
    stages: Vec<Stage>,
    /// When something happens in each of them; [`Time::MAX`] for never.
    due: Vec<Time>,
    /// The stage where something happens next, and when.
    next: Option<(Time, usize)>,
    ready: VecDeque<Datagram>,
    pub(crate) account: Account,
}

/// A datagram and its place in the order in which the path took them in. The dice look at that place.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) ordinal: u64,
    pub(crate) datagram: Datagram,
}

/// Copies count from here, so that a copy has a fate of its own.
pub(crate) const COPY: u64 = 1 << 63;

/// Building.
impl Path {
    /// A path that hands on what it is given, at once.
    #[must_use]
    pub fn new() -> Path {
        Path::default()
    }

    /// Adds an element behind the others.
    #[must_use]
    pub fn with(mut self, element: Element) -> Path {
        self.stages.push(Stage::new(element));
        self.due.push(Time::MAX);
        self.throw_dice();
        self
    }

    /// Adds [`Element::Loss`].
    #[must_use]
    pub fn loss(self, probability: Probability) -> Path {
        self.with(Element::Loss(probability))
    }

    /// Adds [`Element::BurstLoss`].
    #[must_use]
    pub fn burst_loss(self, probability: Probability, length: u32) -> Path {
        self.with(Element::BurstLoss(probability, length))
    }

    /// Adds [`Element::LoseNext`], with nothing to lose yet.
    #[must_use]
    pub fn lose_next(self) -> Path {
        self.with(Element::LoseNext(0))
    }

    /// Adds [`Element::Duplicate`].
    #[must_use]
    pub fn duplicate(self, probability: Probability) -> Path {
        self.with(Element::Duplicate(probability))
    }

    /// Adds [`Element::Corrupt`].
    #[must_use]
    pub fn corrupt(self, probability: Probability) -> Path {
        self.with(Element::Corrupt(probability))
    }

    /// Adds [`Element::Mtu`].
    #[must_use]
    pub fn mtu(self, bytes: u64) -> Path {
        self.with(Element::Mtu(bytes))
    }

    /// Adds [`Element::Bleach`].
    #[must_use]
    pub fn bleach(self, bleach: Bleach) -> Path {
        self.with(Element::Bleach(bleach))
    }

    /// Adds [`Element::Policer`].
    #[must_use]
    pub fn police(self, rate: Rate, burst: u64) -> Path {
        self.with(Element::Policer(rate, burst))
    }

    /// Adds [`Element::Late`].
    #[must_use]
    pub fn late(self, share: Probability, least: Duration, most: Duration) -> Path {
        self.with(Element::Late(Deviation { share, least, most }))
    }

    /// Adds [`Element::Early`].
    #[must_use]
    pub fn early(self, share: Probability, least: Duration, most: Duration) -> Path {
        self.with(Element::Early(Deviation { share, least, most }))
    }

    /// Adds [`Element::Jitter`].
    #[must_use]
    pub fn jitter(self, most: Duration) -> Path {
        self.with(Element::Jitter(most))
    }

    /// Adds [`Element::OrderedJitter`].
    #[must_use]
    pub fn ordered_jitter(self, most: Duration) -> Path {
        self.with(Element::OrderedJitter(most))
    }

    /// Adds [`Element::Delay`].
    #[must_use]
    pub fn delay(self, delay: Duration) -> Path {
        self.with(Element::Delay(delay))
    }

    /// Adds [`Element::Rate`].
    #[must_use]
    pub fn rate(self, rate: Rate, limit: Limit) -> Path {
        self.with(Element::Rate(rate, limit))
    }

    /// Adds [`Element::Bottleneck`].
    #[must_use]
    pub fn bottleneck(self, rate: Rate, limit: Limit, discipline: Discipline) -> Path {
        self.with(Element::Bottleneck(rate, limit, discipline))
    }

    /// The rate of the bottlenecks added so far follows a profile, which begins at [`Time::ZERO`].
    #[must_use]
    pub fn following(mut self, profile: &Profile) -> Path {
        self.follow(Time::ZERO, Some(profile));
        self
    }

    /// Adds [`Element::Outage`], switched off.
    #[must_use]
    pub fn outage(self) -> Path {
        self.with(Element::Outage(false))
    }

    /// Sets the seed and the name from which the dice of its elements come. A [`World`](crate::World) does it for the paths it
    /// is given.
    #[must_use]
    pub fn seeded(mut self, seed: u64, name: &str) -> Path {
        self.seed = seed;
        self.name = String::from(name);
        self.throw_dice();
        self
    }

    /// Gives each stage its dice, by its kind and how many of the kind come before it.
    fn throw_dice(&mut self) {
        for i in 0..self.stages.len() {
            let kind = self.stages[i].name();
            let nth = self.stages[..i].iter().filter(|stage| stage.name() == kind).count();
            self.stages[i].throws(Dice::new(self.seed, &self.name, kind, nth));
        }
    }
}

/// Driving.
impl Path {
    /// Takes a datagram in at `now`. A `now` before that of an earlier call counts as that one.
    pub fn push(&mut self, now: Time, datagram: Datagram) {
        self.advance(now);
        let ordinal = self.account.stats.entered;
        self.account.stats.entered += 1;
        self.enter(0, self.now, Packet { ordinal, datagram });
    }

    /// The next datagram that has come out by `now`.
    pub fn pop(&mut self, now: Time) -> Option<Datagram> {
        self.advance(now);
        let datagram = self.ready.pop_front()?;
        self.account.held -= 1;
        self.account.stats.left += 1;
        Some(datagram)
    }

    /// When something happens next: a datagram comes out, or moves on inside.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.ready.is_empty() { self.next.map(|(due, _)| due) } else { Some(self.now) }
    }

    /// Changes the parameters of every element of this kind from `now` on. Datagrams that already wait in a
    /// delay or jitter keep their time. False if the path has no such element.
    pub fn set(&mut self, now: Time, element: Element) -> bool {
        self.advance(now);
        let mut found = false;
        for stage in &mut self.stages {
            found |= stage.set(self.now, element);
        }
        self.look_again();
        found
    }

    /// From `now` on the rate of every bottleneck follows this profile from its beginning; without one it stays as
    /// it is. A rate that is set meanwhile holds until the profile's next step. False if there is no bottleneck.
    pub fn follow(&mut self, now: Time, profile: Option<&Profile>) -> bool {
        self.advance(now);
        let mut found = false;
        for stage in &mut self.stages {
            found |= stage.follow(self.now, profile);
        }
        self.look_again();
        found
    }

    /// What became of the datagrams so far.
    pub fn stats(&self) -> Stats {
        self.account.stats
    }

    /// Datagrams in it now.
    pub fn in_flight(&self) -> usize {
        self.account.held
    }

    /// Datagrams and bytes that wait at its bottlenecks, without those on the wire.
    pub fn queued(&self) -> (usize, u64) {
        self.stages.iter().map(Stage::queued).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// An empty buffer for the next datagram: one that was used before, if there is one.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.account.pool.take()
    }

    /// Gives back the buffer of a datagram that has been popped and dealt with.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.account.pool.put(buffer);
    }

    /// Something has changed at this stage. At the same moment the last one goes first: what leaves a queue makes room
    /// for what arrives.
    fn look_at(&mut self, i: usize) {
        let due = self.stages[i].due();
        self.due[i] = due;
        match self.next {
            // It was the next one: now it may be any.
            Some((_, next)) if next == i => {
                let stages = self.due.iter().enumerate().rev().map(|(i, due)| (*due, i));
                self.next = stages.min_by_key(|(due, _)| *due).filter(|(due, _)| *due < Time::MAX);
            }
            Some((at, next)) if due > at || due == at && i < next => {}
            _ => self.next = Some((due, i)).filter(|(due, _)| *due < Time::MAX),
        }
    }

    /// After a change that concerns any of the stages.
    fn look_again(&mut self) {
        (0..self.stages.len()).for_each(|i| self.look_at(i));
    }

    /// Lets everything happen that is due by `now`, each at its own moment.
    fn advance(&mut self, now: Time) {
        while let Some((due, i)) = self.next.filter(|(due, _)| *due <= now) {
            let packet = self.stages[i].pop(&mut self.account);
            self.look_at(i);
            if let Some(packet) = packet {
                self.account.held -= 1;
                self.enter(i + 1, due, packet);
            }
        }
        self.now = self.now.max(now);
    }

    /// Takes a packet through the stages from `first` on, until one holds it or it has come out.
    fn enter(&mut self, first: usize, now: Time, mut packet: Packet) {
        let account = &mut self.account;
        for (i, stage) in self.stages.iter_mut().enumerate().skip(first) {
            match stage.meet(now, &mut packet, account) {
                Verdict::Pass => {}
                Verdict::Drop(fate) => return account.drop(packet.datagram, fate),
                Verdict::Copy => {
                    let copy = packet.copy(account.pool.take());
                    account.stats.duplicated += 1;
                    self.enter(i + 1, now, packet);
                    return self.enter(i + 1, now, copy);
                }
                Verdict::Hold if account.held < HELD_MAX => {
                    stage.hold(now, packet, account);
                    return self.look_at(i);
                }
                Verdict::Hold => return account.drop(packet.datagram, Fate::Overflowed),
            }
        }
        if account.held >= HELD_MAX {
            return account.drop(packet.datagram, Fate::Overflowed);
        }
        account.held += 1;
        self.ready.push_back(packet.datagram);
    }
}

impl Packet {
    /// Tells of congestion without a drop: sets CE, if `ecn` says so and the transport takes part (RFC 3168, 5).
    pub(crate) fn mark(&mut self, ecn: bool, account: &mut Account) -> bool {
        let marks = ecn && self.datagram.ecn.is_capable();
        if marks {
            self.datagram.ecn = Ecn::Ce;
            account.stats.marked += 1;
        }
        marks
    }

    /// The same datagram again, in `buffer`.
    fn copy(&self, mut buffer: Vec<u8>) -> Packet {
        buffer.extend_from_slice(&self.datagram.bytes);
        let Datagram { from, to, ecn, route, hops, whole, .. } = self.datagram;
        Packet { ordinal: self.ordinal | COPY, datagram: Datagram { from, to, ecn, bytes: buffer, route, hops, whole } }
    }
}
