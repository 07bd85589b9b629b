//! Operations on a path, what must hold of it, and the check that fuzz targets and tests share.

mod model;

use crate::digest::Digest;
use crate::path::COPY;
pub use crate::tcp::fuzzing as tcp;
use crate::{
    Bleach, CoDel, Datagram, Deviation, Discipline, Ecn, Element, Limit, Path, PathSpec, Probability, Profile, Red,
};
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use arbitrary::{Arbitrary, Unstructured};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use stayfast_units::{Rate, Time};

/// One step of a test of a path.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub enum Op {
    /// Adds an element, before all other operations wherever it stands among them.
    Build(Part),
    /// Changes the parameters of an element.
    Change(Part),
    /// The bottlenecks follow a profile: a rate and a time, and a time without any, in units of 64 us.
    Follow(u16, u8, u8),
    /// Datagrams go in, at the same moment.
    Push {
        /// Bytes in each.
        len: u16,
        /// How many.
        count: u8,
    },
    /// Time passes.
    Wait {
        /// How much of it.
        micros: u16,
    },
}

/// An [`Element`] with parameters of a size at which something happens.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub enum Part {
    /// [`Element::Loss`], in thousandths.
    Loss(u8),
    /// [`Element::Duplicate`], in thousandths.
    Duplicate(u8),
    /// [`Element::Jitter`], in microseconds.
    Jitter(u16),
    /// [`Element::OrderedJitter`], in microseconds.
    OrderedJitter(u16),
    /// [`Element::Delay`], in microseconds.
    Delay(u16),
    /// [`Element::Rate`], in 999 B/s, with a limit in bytes.
    Rate(u16, u16),
    /// [`Element::Rate`], in 999 B/s, with a limit in datagrams.
    RatePackets(u16, u8),
    /// [`Element::Outage`], on for one number in eight.
    Outage(u8),
    /// [`Element::BurstLoss`], in thousandths.
    BurstLoss(u8, u8),
    /// [`Element::LoseNext`].
    LoseNext(u8),
    /// [`Element::Corrupt`], in thousandths.
    Corrupt(u8),
    /// [`Element::Mtu`].
    Mtu(u16),
    /// [`Element::Bleach`].
    Bleach(u8),
    /// [`Element::Policer`], in 999 B/s, with a burst in bytes.
    Policer(u16, u16),
    /// [`Element::Late`], in thousandths and microseconds.
    Late(u8, u16, u16),
    /// [`Element::Early`], in thousandths and microseconds.
    Early(u8, u16, u16),
    /// [`Element::Bottleneck`], in 999 B/s, with a limit in bytes.
    Bottleneck(u16, u16, Manner),
}

/// A [`Discipline`] with parameters at which something happens soon.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub enum Manner {
    /// [`Discipline::DropTail`].
    DropTail,
    /// [`Discipline::Red`]: least and most length, thousandths, weight.
    Red(u8, u8, u8, u8),
    /// [`Discipline::CoDel`]: target and interval, in units of 16 us.
    CoDel(u8, u8),
    /// [`Discipline::FqCoDel`]: target and interval, in units of 16 us.
    FqCoDel(u8, u8),
}

impl From<Manner> for Discipline {
    fn from(manner: Manner) -> Discipline {
        let codel = |target: u8, interval: u8| CoDel {
            target: Duration::from_micros(16 * u64::from(target)),
            interval: Duration::from_micros(16 * u64::from(interval)),
            ecn: interval.is_multiple_of(2),
        };
        match manner {
            Manner::DropTail => Discipline::DropTail,
            Manner::Red(min, max, thousandths, weight) => Discipline::Red(Red {
                min: u32::from(min % 8),
                max: u32::from(max % 16),
                probability: Probability::ppm(u32::from(thousandths) * 1_000),
                weight: u32::from(weight % 16),
                ecn: weight >= 128,
            }),
            Manner::CoDel(target, interval) => Discipline::CoDel(codel(target, interval)),
            Manner::FqCoDel(target, interval) => Discipline::FqCoDel(codel(target, interval)),
        }
    }
}

impl From<Part> for Element {
    fn from(part: Part) -> Element {
        let micros = |n| Duration::from_micros(u64::from(n));
        let thousandths = |n| Probability::ppm(u32::from(n) * 1_000);
        let deviation = |n, least, most| Deviation { share: thousandths(n), least: micros(least), most: micros(most) };
        // Half of them slow enough for queues to fill.
        let rate = |n: u16| Rate::from_bytes_per_sec(999 * u64::from(if n & 1 == 0 { n } else { n >> 6 }));
        match part {
            Part::Loss(n) => Element::Loss(thousandths(n)),
            Part::Duplicate(n) => Element::Duplicate(thousandths(n)),
            Part::Jitter(most) => Element::Jitter(micros(most)),
            Part::OrderedJitter(most) => Element::OrderedJitter(micros(most)),
            Part::Delay(delay) => Element::Delay(micros(delay)),
            Part::Rate(n, limit) => Element::Rate(rate(n), Limit::Bytes(u64::from(limit))),
            Part::RatePackets(n, limit) => Element::Rate(rate(n), Limit::Packets(u32::from(limit))),
            Part::Outage(n) => Element::Outage(n % 8 == 0),
            Part::BurstLoss(n, length) => Element::BurstLoss(thousandths(n), length.into()),
            Part::LoseNext(n) => Element::LoseNext(n.into()),
            Part::Corrupt(n) => Element::Corrupt(thousandths(n)),
            Part::Mtu(bytes) => Element::Mtu(u64::from(bytes % 2_048)),
            Part::Bleach(n) => Element::Bleach([Bleach::Off, Bleach::Clear, Bleach::Drop][usize::from(n % 3)]),
            Part::Policer(n, burst) => Element::Policer(rate(n), burst.into()),
            Part::Bottleneck(n, limit, manner) => {
                Element::Bottleneck(rate(n), Limit::Bytes(limit.into()), manner.into())
            }
            Part::Late(n, a, b) => Element::Late(deviation(n, a, b)),
            Part::Early(n, a, b) => Element::Early(deviation(n, a, b)),
        }
    }
}

/// Elements of a path under test; more are not added.
const ELEMENTS_MAX: usize = 6;

/// Operations up to the end of the input. (`Vec` would toss a coin before each one: one on average.)
pub fn ops(bytes: &[u8]) -> Vec<Op> {
    let mut input = Unstructured::new(bytes);
    core::iter::from_fn(|| if input.is_empty() { None } else { input.arbitrary().ok() }).collect()
}

/// Does what `ops` say to a path, without the changes and with them, and checks that
///
/// - every datagram is accounted for: delivered, dropped and counted, or in flight;
/// - what comes out is what went in, up to flipped bits and ECN, and no earlier than the delays allow;
/// - the order is kept, unless an element lets datagrams overtake;
/// - no more waits at a bottleneck than its limit allows;
/// - a second path that is looked at only now and then does the same: what happens in it happens in time;
/// - until its parameters change, the path does exactly what a calculation says, element by element (which knows no
///   queue discipline but drop-tail);
/// - in the end everything has left.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check(ops: &[Op]) {
    run(ops);
}

/// As [`check`], and returns a fingerprint of what came out when.
fn run(ops: &[Op]) -> u64 {
    let mut digest = Digest::new();
    let built = ops.iter().filter_map(|op| if let Op::Build(part) = op { Some(Element::from(*part)) } else { None });
    let elements: Vec<Element> = built.take(ELEMENTS_MAX).collect();
    for changes in [false, true] {
        let mut test = Test::new(&elements);
        for op in ops {
            match *op {
                Op::Change(part) if changes => test.change(part.into()),
                Op::Follow(n, on, off) if changes => test.follow(n, on, off),
                Op::Build(_) | Op::Change(_) | Op::Follow(..) => continue,
                Op::Push { len, count } => (0..=count % 8).for_each(|_| test.push(usize::from(len % 2_000))),
                Op::Wait { micros } => test.run_until(test.now + Duration::from_micros(u64::from(micros))),
            }
            test.account();
        }
        digest.word(test.finish());
    }
    digest.value()
}

/// Checks that a text parses or is refused, and that what parses prints and parses again as the same.
///
/// # Panics
///
/// If it does not.
pub fn check_text(text: &str) {
    if let Ok(spec) = text.parse::<PathSpec>() {
        assert_eq!(spec.to_string().parse(), Ok(spec), "{text:?} printed as {spec}");
        let (forward, back) = (spec.forward(), spec.back());
        assert_eq!((forward.in_flight(), back.in_flight()), (0, 0));
    }
}

/// What becomes of an element that is told to be another; none if it is not its kind.
fn changed(old: &Element, new: Element) -> Option<Element> {
    use core::mem::discriminant;
    match (old, new) {
        (Element::Bottleneck(_, _, discipline), Element::Rate(rate, limit)) => {
            Some(Element::Bottleneck(rate, limit, *discipline))
        }
        (Element::Rate(..), Element::Bottleneck(rate, limit, Discipline::DropTail)) => Some(Element::Rate(rate, limit)),
        (Element::Bottleneck(_, _, a), Element::Bottleneck(_, _, b)) if discriminant(a) != discriminant(&b) => None,
        _ => (discriminant(old) == discriminant(&new)).then_some(new),
    }
}

struct Test {
    now: Time,
    built: Vec<Element>,
    /// With the parameters that hold now.
    elements: Vec<Element>,
    /// Has the rate a profile?
    following: bool,
    /// When parameters first changed.
    changed: Time,
    /// Looked at whenever it asks for it.
    prompt: Path,
    /// Looked at after each operation.
    late: Path,
    pushed: Vec<(Time, Datagram)>,
    popped: Vec<(Time, Datagram)>,
    popped_late: usize,
    /// For each element, the least delay it has had.
    delays: Vec<Duration>,
    /// For each element, the most bytes it may have let wait; none if it once counted datagrams.
    limits: Vec<Option<u64>>,
}

/// Datagrams are numbered from flow to flow.
const FLOWS: u16 = 3;

const HOST: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

impl Test {
    fn new(elements: &[Element]) -> Test {
        let build = || elements.iter().fold(Path::new(), |path, element| path.with(*element)).seeded(1, "test");
        let mut test = Test {
            now: Time::ZERO,
            built: elements.to_vec(),
            elements: elements.to_vec(),
            following: false,
            changed: Time::MAX,
            prompt: build(),
            late: build(),
            pushed: Vec::new(),
            popped: Vec::new(),
            popped_late: 0,
            delays: vec![Duration::MAX; elements.len()],
            limits: vec![Some(0); elements.len()],
        };
        test.note_bounds();
        test
    }

    /// Widens the bounds to what the parameters now allow.
    fn note_bounds(&mut self) {
        for (element, (delay, limit)) in self.elements.iter().zip(self.delays.iter_mut().zip(&mut self.limits)) {
            let (now, most) = match element {
                Element::Delay(delay) => (*delay, Some(0)),
                Element::Rate(_, Limit::Bytes(bytes)) | Element::Bottleneck(_, Limit::Bytes(bytes), _) => {
                    (Duration::ZERO, Some(*bytes))
                }
                Element::Rate(..) | Element::Bottleneck(..) => (Duration::ZERO, None),
                _ => (Duration::ZERO, Some(0)),
            };
            *delay = now.min(*delay);
            *limit = limit.zip(most).map(|(old, new)| old.max(new));
        }
    }

    fn change(&mut self, element: Element) {
        self.changed = self.changed.min(self.now);
        let mut expected = false;
        for old in &mut self.elements {
            if let Some(new) = changed(old, element) {
                (*old, expected) = (new, true);
            }
        }
        self.note_bounds();
        assert_eq!(self.prompt.set(self.now, element), expected);
        assert_eq!(self.late.set(self.now, element), expected);
    }

    fn follow(&mut self, n: u16, on: u8, off: u8) {
        self.changed = self.changed.min(self.now);
        let time = |n: u8| Duration::from_micros(64 * (u64::from(n) + 1));
        let rate = Rate::from_bytes_per_sec(1_000 * (u64::from(n) + 1));
        let profile = Profile::new(&[(rate, time(on)), (Rate::ZERO, time(off))]);
        let expected = self.elements.iter().any(|e| matches!(e, Element::Rate(..) | Element::Bottleneck(..)));
        assert_eq!(self.prompt.follow(self.now, profile.as_ref()), expected);
        assert_eq!(self.late.follow(self.now, profile.as_ref()), expected);
        self.following |= expected;
    }

    fn push(&mut self, len: usize) {
        let ordinal = self.pushed.len();
        let mut datagram = Datagram::new(HOST, HOST, vec![ordinal as u8; len]);
        datagram.from.set_port(ordinal as u16 % FLOWS);
        datagram.ecn = Ecn::from_bits(ordinal as u8);
        // The name by which it is known again, whatever happens to its contents.
        datagram.route = ordinal as u32;
        self.prompt.push(self.now, datagram.clone());
        self.late.push(self.now, datagram.clone());
        self.pushed.push((self.now, datagram));
        self.run_until(self.now);
    }

    fn run_until(&mut self, end: Time) {
        while let Some(due) = self.prompt.next_timeout().filter(|due| *due <= end) {
            assert!(due >= self.now, "a deadline has been missed");
            self.now = due;
            while let Some(datagram) = self.prompt.pop(due) {
                self.pop(datagram);
            }
        }
        self.now = end;
        while let Some(datagram) = self.late.pop(end) {
            assert_eq!(Some(&datagram), self.popped.get(self.popped_late).map(|(_, datagram)| datagram));
            self.popped_late += 1;
        }
        assert_eq!(self.popped_late, self.popped.len());
        assert_eq!(self.late.next_timeout(), self.prompt.next_timeout(), "it matters when one looks");
    }

    /// A datagram has come out.
    fn pop(&mut self, datagram: Datagram) {
        let ordinal = datagram.route as usize;
        let (entered, original) = &self.pushed[ordinal];
        self.compare(original, &datagram);
        assert!(self.now >= *entered + self.delays.iter().sum(), "earlier than the delay");
        let overtakes =
            |element: &Element| matches!(element, Element::Jitter(_) | Element::Late(_) | Element::Early(_));
        let by_flow = self.elements.iter().any(|e| matches!(e, Element::Bottleneck(_, _, Discipline::FqCoDel(_))));
        let mut before = self.popped.iter().rev().map(|(_, last)| last);
        if let Some(last) = before.find(|last| !by_flow || last.from == datagram.from) {
            let in_order = last.route as usize <= ordinal;
            assert!(in_order || self.elements.iter().any(overtakes), "overtaken without jitter");
        }
        self.popped.push((self.now, datagram));
    }

    /// What came out differs from what went in only as the elements may change it.
    fn compare(&self, original: &Datagram, datagram: &Datagram) {
        assert_eq!((original.from, original.to), (datagram.from, datagram.to));
        let count = |is: fn(&Element) -> bool| self.elements.iter().filter(|element| is(element)).count();
        let bits = original.bytes.iter().zip(&datagram.bytes).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>() as usize;
        assert_eq!(original.bytes.len(), datagram.bytes.len());
        assert!(bits <= count(|element| matches!(element, Element::Corrupt(_))), "{bits} bits differ");
        let marking = |element: &Element| match element {
            Element::Bottleneck(_, _, Discipline::Red(red)) => red.ecn,
            Element::Bottleneck(_, _, Discipline::CoDel(codel) | Discipline::FqCoDel(codel)) => codel.ecn,
            _ => false,
        };
        // It may have been marked before a change.
        let may_mark = self.changed < Time::MAX || self.elements.iter().any(marking);
        let explained = match datagram.ecn {
            Ecn::NotEct => count(|element| matches!(element, Element::Bleach(_))) > 0,
            Ecn::Ce => original.ecn.is_capable() && may_mark,
            _ => false,
        };
        assert!(original.ecn == datagram.ecn || explained, "{:?} became {:?}", original.ecn, datagram.ecn);
    }

    fn account(&self) {
        for path in [&self.prompt, &self.late] {
            let stats = path.stats();
            let out = stats.left + stats.dropped() + path.in_flight() as u64;
            assert_eq!(stats.entered + stats.duplicated, out, "{stats:?}");
            assert_eq!(stats.entered, self.pushed.len() as u64);
        }
        assert_eq!(self.prompt.stats().left, self.popped.len() as u64);
        let (packets, bytes) = self.prompt.queued();
        let limit = self.limits.iter().try_fold(0u64, |sum, limit| limit.map(|limit| sum.saturating_add(limit)));
        assert!(limit.is_none_or(|limit| bytes <= limit), "{packets} datagrams of {bytes} B wait");
    }

    fn finish(mut self) -> u64 {
        let stuck = |e: &Element| matches!(e, Element::Rate(Rate::ZERO, _) | Element::Bottleneck(Rate::ZERO, ..));
        if self.following || self.elements.iter().any(stuck) {
            assert_eq!(self.prompt.follow(self.now, None), self.late.follow(self.now, None));
            self.change(Element::Rate(Rate::from_bytes_per_sec(1_000), Limit::NONE));
        }
        while let Some(due) = self.prompt.next_timeout() {
            self.run_until(due);
        }
        self.account();
        assert_eq!(self.prompt.in_flight(), 0);
        assert_eq!(self.late.stats(), self.prompt.stats());
        if let Some(calculated) = model::calculated(&self.built, &self.pushed) {
            let before_changes = |(time, _): &(Time, u64)| *time < self.changed;
            let popped = self.popped.iter().map(|(time, datagram)| (*time, u64::from(datagram.route)));
            let calculated = calculated.into_iter().map(|item| (item.time, item.ordinal & !COPY));
            assert!(popped.filter(before_changes).eq(calculated.filter(before_changes)), "not as calculated");
        }
        let mut digest = Digest::new();
        for (time, datagram) in &self.popped {
            digest.word(time.as_nanos());
            digest.word(u64::from(datagram.ecn.bits()));
            digest.bytes(&datagram.bytes);
        }
        digest.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::string::String;

    #[test]
    fn any_operations() {
        let count = AtomicUsize::new(0);
        let bytes = bolero::produce::<Vec<u8>>().with().len(0..1_024usize);
        bolero::check!().with_iterations(1_000).with_generator(bytes).for_each(|bytes: &Vec<u8>| {
            let ops = ops(bytes);
            if count.fetch_add(ops.len(), Relaxed).is_multiple_of(8) {
                assert_eq!(run(&ops), run(&ops));
            }
            check(&ops);
        });
        // A generator that gives up would make the test an empty one.
        assert!(count.into_inner() > 50_000);
    }

    /// Texts made of the right words, mostly.
    #[test]
    fn any_text() {
        const WORDS: [&str; 41] = [
            "rate=", "rtt=", "jitter=", "loss=", "dup=", "queue=", "seed=", "both", "ordered", "=", ".", " ", " ", " ",
            "0", "5", "12", "999", "k", "M", "G", "s", "ms", "us", "%", "bdp", "kB", "p", "burst=", "corrupt=",
            "late=", "early=", "mtu=", "police=", ":", "-", "aqm=", "red", "codel", "fq_codel", "ecn",
        ];
        let count = AtomicUsize::new(0);
        let bytes = bolero::produce::<Vec<u8>>().with().len(0..24usize);
        bolero::check!().with_iterations(20_000).with_generator(bytes).for_each(|bytes: &Vec<u8>| {
            let text: String = bytes.iter().map(|byte| WORDS[usize::from(*byte) % WORDS.len()]).collect();
            count.fetch_add(text.parse::<PathSpec>().is_ok().into(), Relaxed);
            check_text(&text);
            check_text(&String::from_utf8_lossy(bytes));
        });
        assert!(count.into_inner() > 50);
    }

    /// Found by fuzzing: in the end each of them has the largest limit there is.
    #[test]
    fn two_bottlenecks_that_stand_still() {
        let push = Op::Push { len: 0, count: 0 };
        check(&[Op::Build(Part::Rate(0, 0)), Op::Build(Part::RatePackets(0, 0)), push]);
        check(&[Op::Build(Part::Rate(0, 0)), Op::Build(Part::Rate(0, 0)), push]);
    }

    /// An original that is late by nothing is still before its copy.
    #[test]
    fn late_by_nothing() {
        let mut ops = vec![
            Op::Build(Part::Duplicate(255)),
            Op::Build(Part::Late(128, 0, 0)),
            Op::Build(Part::OrderedJitter(9_999)),
        ];
        ops.extend(
            (0..200).map(|n| if n % 2 == 0 { Op::Push { len: n, count: 0 } } else { Op::Wait { micros: 40_000 } }),
        );
        check(&ops);
    }

    /// Long busy times, which random operations seldom make.
    #[test]
    fn a_busy_bottleneck_is_exact() {
        for rate in [2, 14, 1_250, 6_250, u16::MAX - 1] {
            for part in [Part::Rate(rate, 20_000), Part::RatePackets(rate, 10)] {
                let mut ops = vec![Op::Build(Part::Delay(300)), Op::Build(part), Op::Build(Part::Delay(9))];
                for n in 0..500u16 {
                    ops.push(Op::Push { len: n * 7, count: 0 });
                    ops.push(Op::Wait { micros: n % 400 });
                }
                check(&ops);
            }
        }
    }
}
