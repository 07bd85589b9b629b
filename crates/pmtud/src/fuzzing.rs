//! Operations, oracle and check, for tests and fuzz targets. The oracle is the network: it knows what it takes, and what
//! became of every packet.

use crate::{BASE, CHECKS, LADDER, MAX_IPV4, RETRY, RETRY_LATER, ROUNDS, Search};
use alloc::vec::Vec;
use arbitrary::Arbitrary;
use core::time::Duration;
use stayfast_units::Time;

/// One thing that happens to a search.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub enum Op {
    /// A data packet leaves.
    Send {
        /// Of full size, or this much of what lies between the base and it, in 1/256.
        part: Option<u8>,
        /// Lost at random if below 15 % of 256.
        luck: u8,
    },
    /// The owner asks for a probe, and sends it.
    Probe {
        /// Lost at random if below 15 % of 256.
        luck: u8,
    },
    /// A packet is acknowledged, and with it those before it that arrived; the rest of those is lost.
    Ack {
        /// Which of the packets that arrived: mostly the newest.
        which: u8,
        /// Those before it are lost too although they arrived: they are acknowledged late, or never.
        hasty: bool,
    },
    /// What was lost and arrived is acknowledged late.
    Late,
    /// What is lost and not acknowledged yet is waited for no longer.
    Gone,
    /// The probe timeout fires, and a packet is sent.
    Timeout {
        /// Lost at random if below 15 % of 256.
        luck: u8,
    },
    /// Round trips in which chance takes nothing.
    RoundTrips {
        /// How many, modulo 16.
        count: u8,
    },
    /// Time passes, in steps of 32 ms.
    Wait(u8),
    /// What happens to the path itself.
    Path(Change),
}

/// What may happen to a path.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub enum Change {
    /// It shrinks or grows.
    Mtu {
        /// To a step of the ladder, counted from the top,
        step: u8,
        /// less this, modulo 16.
        less: u8,
    },
    /// The next packets are lost.
    Outage {
        /// How many, modulo 32.
        packets: u8,
    },
    /// It is another one: rarely, or nothing could go on.
    Other {
        /// Below 64.
        sure: u8,
    },
}

/// Operations to the end of the input.
pub type Ops = stayfast_testkit::Ops<Op>;

/// Runs the operations against a path whose limit is known, and lets everything come to its end.
///
/// # Panics
/// If the search falls although the path takes what it took, if it does not fall or rise to what the path takes, or if
/// it probes too often.
pub fn check(ops: &[Op]) {
    run(ops, Search::new(Time::ZERO, BASE, MAX_IPV4), true);
}

/// How often things happened, for tests of the tests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub doubts: u32,
    pub falls: u32,
    pub rises: u32,
}

/// `fair`: chance never takes so many checks in a row that the search would be right to give up.
pub(crate) fn run(ops: &[Op], search: Search, fair: bool) -> Seen {
    let mut world = World {
        search,
        fair,
        now: Time::ZERO,
        mtu: MAX_IPV4,
        outage: 0,
        packets: Vec::new(),
        timeouts: 0,
        size: BASE,
        doubted: None,
        unlucky: 0,
        unfit: 0,
        probed: Vec::new(),
        seen: Seen::default(),
    };
    for op in ops {
        world.apply(*op);
        world.compare();
    }
    world.settle();
    world.seen
}

const LOST_AT_RANDOM: u8 = 38;
/// With this many packets, the settled ones are forgotten.
const MANY: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    InFlight,
    Lost,
    Settled,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    size: u16,
    sent: Time,
    probe: bool,
    /// It asked whether the path still takes what it took.
    check: bool,
    fits: bool,
    arrived: bool,
    told: Told,
}

/// Path, peer, and the owner of the search.
struct World {
    search: Search,
    fair: bool,
    now: Time,
    mtu: u16,
    /// Packets that will be lost whatever happens.
    outage: u8,
    packets: Vec<Packet>,
    timeouts: u32,
    /// The size when it was compared last.
    size: u16,
    /// When the last doubt began.
    doubted: Option<Time>,
    /// Checks in a row that were given up although they fitted.
    unlucky: u8,
    /// Checks that did not fit, since a packet of full size was acknowledged.
    unfit: u32,
    /// Probes of sizes not known to pass, since the last start or fall.
    probed: Vec<(u16, Time)>,
    seen: Seen,
}

impl World {
    fn is_in_doubt(&self) -> bool {
        self.search.limit() < self.search.size()
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Send { part, luck } => {
                let room = u32::from(self.search.limit());
                let size = part.map_or(room, |part| 100 + (room - 100) * u32::from(part) / 256);
                self.send(size as u16, false, luck);
            }
            Op::Probe { luck } => self.probe(luck),
            Op::Ack { which, hasty } => self.ack(which.into(), hasty),
            Op::Late => self.each_lost(|packet| packet.arrived, World::arrived),
            Op::Gone => self.each_lost(|_| true, World::gone),
            Op::Timeout { luck } => self.timeout(luck),
            Op::Wait(steps) => self.now += Duration::from_millis(32) * steps.into(),
            Op::Path(Change::Mtu { step, less }) => {
                let steps = LADDER.into_iter().filter(|step| *step <= MAX_IPV4);
                let step = steps.cycle().nth(step.into()).unwrap_or(BASE);
                self.mtu = (step - u16::from(less % 16)).max(BASE);
            }
            Op::Path(Change::Outage { packets }) => self.outage = packets % 32,
            Op::RoundTrips { count } => (0..count % 16).for_each(|_| self.round_trip(Duration::from_millis(20))),
            Op::Path(Change::Other { sure: 64.. }) => {}
            Op::Path(Change::Other { .. }) => {
                self.search.on_path_changed(self.now, MAX_IPV4);
                (self.unfit, self.unlucky) = (0, 0);
                self.probed.clear();
            }
        }
    }

    /// No two packets leave at the same instant.
    fn send(&mut self, size: u16, probe: bool, luck: u8) {
        self.now += Duration::from_micros(10);
        let check = probe && size == self.search.size();
        let fits = size <= self.mtu;
        let spared = check && fits && self.fair && self.unlucky + 1 >= CHECKS;
        let arrived = fits && (spared || (luck >= LOST_AT_RANDOM && self.outage == 0));
        self.outage = self.outage.saturating_sub(1);
        if self.packets.len() >= MANY {
            self.packets.retain(|packet| packet.told != Told::Settled);
        }
        self.packets.push(Packet { size, sent: self.now, probe, check, fits, arrived, told: Told::InFlight });
    }

    fn probe(&mut self, luck: u8) {
        let Some(size) = self.search.probe(self.now) else { return };
        self.send(size, true, luck);
        self.search.on_probe_sent(size);
        assert_eq!(self.search.probe(self.now), None, "one at a time");
        let Some(probe) = self.packets.last().filter(|packet| !packet.check) else { return };
        assert!(size > self.search.size() && size <= MAX_IPV4 && LADDER.contains(&size));
        let before: Vec<Time> = self.probed.iter().filter(|(s, _)| *s == size).map(|(_, at)| *at).collect();
        if let Some(last) = before.last() {
            // The walk after a fall comes before the first full round.
            let rests = before.len() > usize::from(ROUNDS);
            assert!(probe.sent - *last >= if rests { RETRY_LATER } else { RETRY }, "probed too soon");
        }
        self.probed.push((size, probe.sent));
    }

    fn ack(&mut self, which: usize, hasty: bool) {
        let open: Vec<usize> = (0..self.packets.len()).filter(|&i| self.packets[i].told != Told::Settled).collect();
        let arrived: Vec<usize> = open.iter().copied().filter(|&i| self.packets[i].arrived).collect();
        let Some(newest) = arrived.len().checked_sub(1 + which / 64 % arrived.len().max(1)) else { return };
        let newest = arrived[newest];
        self.timeouts = 0;
        self.arrived(newest);
        for i in open.into_iter().take_while(|i| *i < newest) {
            let Packet { arrived, check, told, .. } = self.packets[i];
            if told != Told::InFlight {
                continue;
            }
            let spared = check && self.fair && self.unlucky + 1 >= CHECKS;
            if arrived && (!hasty || spared) { self.arrived(i) } else { self.lost(i) }
        }
    }

    fn arrived(&mut self, i: usize) {
        self.packets[i].told = Told::Settled;
        let Packet { size, sent, probe, .. } = self.packets[i];
        let (before, doubted) = (self.search.size(), self.is_in_doubt());
        match probe {
            true => self.search.on_probe_acked(self.now, size, sent),
            false => self.search.on_acked(size, sent),
        }
        if size > BASE && size >= before && !self.is_in_doubt() {
            (self.unlucky, self.unfit) = (0, 0);
        }
        let convincing = self.doubted.is_some_and(|since| size >= before && sent >= since);
        assert!(!doubted || self.is_in_doubt() || convincing, "{size} B convince of {before} B");
        let believed = self.search.size() >= size || !self.probed.contains(&(size, sent));
        assert!(believed, "a probe of {size} B arrived and was not believed");
        self.seen.rises += u32::from(self.search.size() > before);
    }

    fn lost(&mut self, i: usize) {
        self.packets[i].told = Told::Lost;
        let Packet { size, sent, probe, check, fits, .. } = self.packets[i];
        if check {
            self.unfit += u32::from(!fits);
            self.unlucky += u8::from(fits);
        }
        if probe {
            self.search.on_probe_lost(self.now, size, sent);
        }
    }

    fn gone(&mut self, i: usize) {
        self.packets[i].told = Told::Settled;
        let Packet { size, sent, probe, .. } = self.packets[i];
        if !probe {
            let doubted = self.is_in_doubt();
            self.search.on_gone(self.now, size, sent);
            self.note_doubt(doubted);
        }
    }

    fn each_lost(&mut self, which: impl Fn(&Packet) -> bool, tell: impl Fn(&mut World, usize)) {
        for i in 0..self.packets.len() {
            if self.packets[i].told == Told::Lost && which(&self.packets[i]) {
                tell(self, i);
            }
        }
    }

    fn timeout(&mut self, luck: u8) {
        if self.packets.iter().any(|packet| packet.told == Told::InFlight) {
            self.timeouts += 1;
            let doubted = self.is_in_doubt();
            self.search.on_probe_timeout(self.now, self.timeouts);
            self.note_doubt(doubted);
            assert!(self.timeouts < 2 || self.search.limit() == BASE, "a probe that may be too large");
            self.send(self.search.limit(), false, luck);
        }
    }

    fn note_doubt(&mut self, before: bool) {
        if self.is_in_doubt() && !before {
            self.doubted = Some(self.now);
            self.seen.doubts += 1;
        }
    }

    /// What must hold at any time.
    fn compare(&mut self) {
        let (size, limit) = (self.search.size(), self.search.limit());
        let before = core::mem::replace(&mut self.size, size);
        assert!(LADDER.contains(&size) && BASE <= limit && limit <= size && size <= MAX_IPV4);
        if size < before && !self.probed.is_empty() {
            assert!(self.unfit > 0 || !self.fair, "{before} B are given up although the path takes them");
            self.seen.falls += 1;
            (self.unfit, self.unlucky) = (0, 0);
            self.probed.clear();
        }
        let under_way = self.packets.iter().any(|packet| packet.probe && packet.told == Told::InFlight);
        if !under_way && self.search.probe(self.now + RETRY).is_none() {
            let untried = LADDER
                .into_iter()
                .filter(|step| (size + 1..=MAX_IPV4).contains(step))
                .find(|step| self.probed.iter().filter(|(probed, _)| probed == step).count() < usize::from(ROUNDS));
            assert_eq!(untried, None, "at rest too early");
        }
    }

    /// Some data leaves, and whatever is asked for.
    fn round_trip(&mut self, time: Duration) {
        self.send(self.search.limit(), false, 255);
        self.probe(255);
        if self.packets.last().is_none_or(|packet| !packet.arrived) {
            self.timeout(255);
            self.timeout(255);
        }
        // It tells what became of the others.
        self.send(100, false, 255);
        self.now += time;
        self.ack(0, false);
        self.each_lost(|_| true, World::gone);
        self.compare();
    }

    /// Chance has its end, and the path stays as it is.
    fn settle(&mut self) {
        self.outage = 0;
        let fits = LADDER.into_iter().find(|step| *step <= self.mtu).unwrap_or(BASE);
        let end = self.now + RETRY_LATER * 2 + RETRY * 10;
        let (mut swallowed, mut round_trips) = (0, 0);
        while self.now < end {
            swallowed += u32::from(self.search.limit() > self.mtu);
            let busy = self.search.size() != fits || self.is_in_doubt();
            self.round_trip(if busy && round_trips < 100 { Duration::from_millis(20) } else { RETRY * 10 });
            round_trips += 1;
            assert!(round_trips < 40 || self.search.size() <= self.mtu, "{} B in {}", self.search.size(), self.mtu);
        }
        assert!(swallowed <= 2, "{swallowed} packets of data were too large");
        assert_eq!(self.search.size(), fits, "a path of {} B", self.mtu);
    }
}
