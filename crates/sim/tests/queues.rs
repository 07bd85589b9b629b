//! Do queue disciplines keep to their specifications? Each law is computed here from the document alone.

use core::net::SocketAddr;
use core::time::Duration;
use stayfast_sim::{CoDel, Datagram, Discipline, Ecn, Element, Limit, Path, Probability, Red};
use stayfast_units::{Rate, Time};

const MS: Duration = Duration::from_millis(1);
/// A full-size datagram in a millisecond.
const RATE: Rate = Rate::from_bytes_per_sec(1_514_000);

fn datagram(flow: u16, ecn: Ecn, wire_size: usize) -> Datagram {
    let from = SocketAddr::from(([10, 0, 0, 1], flow));
    let mut datagram = Datagram::new(from, SocketAddr::from(([10, 0, 0, 2], 1)), vec![0; wire_size - 42]);
    datagram.ecn = ecn;
    datagram
}

fn bottleneck(limit: u32, discipline: Discipline) -> Path {
    Path::new().bottleneck(RATE, Limit::Packets(limit), discipline)
}

/// Sends full-size datagrams, one each `every` until `end`, and returns when the number that `count` reads grew.
fn times(path: &mut Path, ecn: Ecn, every: Duration, end: Time, count: fn(&Path) -> u64) -> Vec<Time> {
    let mut times = Vec::new();
    let mut next = Time::ZERO;
    while next < end {
        let now = path.next_timeout().map_or(next, |due| due.min(next));
        let before = count(path);
        drop(path.pop(now));
        if now == next {
            path.push(now, datagram(1, ecn, 1_514));
            next += every;
        }
        times.extend((before..count(path)).map(|_| now));
    }
    times
}

#[test]
fn codel_drops_after_the_interval_and_then_by_the_inverse_root() {
    let managed = |path: &Path| path.stats().managed;
    let marked = |path: &Path| path.stats().marked;
    let codel = CoDel::default();
    // Half as much again as the path carries, whatever it drops: the queue stands.
    let every = Duration::from_micros(667);
    let end = Time::from_millis(5_000);
    let drops = times(&mut bottleneck(100_000, Discipline::CoDel(codel)), Ecn::Ect0, every, end, managed);
    let marks =
        times(&mut bottleneck(100_000, Discipline::CoDel(CoDel { ecn: true, ..codel })), Ecn::Ect0, every, end, marked);
    for times in [drops, marks] {
        // Waits exceed 5 ms after 15 ms, and the interval begins.
        let first = times[0] - Time::ZERO;
        assert!((115 * MS..118 * MS).contains(&first), "{first:?}");
        assert!(times.len() > 300, "{}", times.len());
        for (n, pair) in times.windows(2).enumerate().take(300) {
            let gap = (pair[1] - pair[0]).as_secs_f64();
            let law = 0.1 / ((n + 1) as f64).sqrt();
            assert!((gap / law - 1.0).abs() < 0.2, "drop {n}: {gap} s instead of {law}");
        }
        // On the whole much closer: a drop waits for a departure, and the next one does not count from there.
        let law: f64 = (1..times.len()).map(|n| 0.1 / (n as f64).sqrt()).sum();
        let took = (times[times.len() - 1] - times[0]).as_secs_f64();
        assert!((took - law).abs() < 0.002, "{took} s instead of {law}");
    }
}

#[test]
fn codel_leaves_good_queues_alone() {
    let codel = Discipline::CoDel(CoDel::default());
    let managed = |path: &Path| path.stats().managed;
    // A standing queue of 4 ms.
    let mut path = bottleneck(1_000, codel);
    (0..4).for_each(|_| path.push(Time::ZERO, datagram(1, Ecn::NotEct, 1_514)));
    assert_eq!(times(&mut path, Ecn::NotEct, MS, Time::from_millis(2_000), managed), []);
    // A burst that takes 99 ms to leave.
    let mut path = bottleneck(1_000, codel);
    (0..100).for_each(|_| path.push(Time::ZERO, datagram(1, Ecn::NotEct, 1_514)));
    while let Some(due) = path.next_timeout() {
        drop(path.pop(due));
    }
    assert_eq!((path.stats().left, path.stats().managed), (100, 0));
}

#[test]
fn codel_thinks_nothing_of_one_full_datagram_that_waits() {
    // Each takes 20 ms, so that whoever waits at all waits too long.
    let mut path = Path::new().bottleneck(
        Rate::from_bytes_per_sec(75_700),
        Limit::Packets(100),
        Discipline::CoDel(CoDel::default()),
    );
    let managed = |path: &Path| path.stats().managed;
    (0..2).for_each(|_| path.push(Time::ZERO, datagram(1, Ecn::NotEct, 1_514)));
    let every = Duration::from_millis(20);
    assert_eq!(times(&mut path, Ecn::NotEct, every, Time::from_millis(3_000), managed), []);
    assert_eq!(path.queued().0, 2);
    // With one byte more behind it, it acts.
    path.push(Time::from_millis(3_000), datagram(1, Ecn::NotEct, 42));
    assert_ne!(times(&mut path, Ecn::NotEct, every, Time::from_millis(6_000), managed), []);
}

#[test]
fn codel_begins_again_at_the_pace_at_which_it_stopped() {
    let managed = |path: &Path| path.stats().managed;
    let mut path = bottleneck(100_000, Discipline::CoDel(CoDel::default()));
    let end = Time::from_millis(1_500);
    let drops = times(&mut path, Ecn::NotEct, Duration::from_micros(667), end, managed).len();
    assert!(drops > 40, "{drops}");
    // It drains; then a second flood.
    let mut now = end;
    while let Some(due) = path.next_timeout() {
        now = due;
        drop(path.pop(now));
    }
    let before = path.stats().managed;
    let mut drops = Vec::new();
    for n in 0..900u32 {
        let at = now + n * Duration::from_micros(667);
        while let Some(due) = path.next_timeout().filter(|due| *due <= at) {
            drop(path.pop(due));
        }
        path.push(at, datagram(1, Ecn::NotEct, 1_514));
        drops.resize((path.stats().managed - before) as usize, at);
    }
    let gap = drops[1] - drops[0];
    assert!(gap < 25 * MS, "the second drop came after {gap:?}, not sooner than the first time");
}

#[test]
fn what_takes_no_part_in_ecn_is_dropped() {
    let end = Time::from_millis(1_000);
    let every = Duration::from_micros(667);
    for (ecn, marks) in [(Ecn::NotEct, false), (Ecn::Ect0, true), (Ecn::Ect1, true), (Ecn::Ce, true)] {
        for discipline in [
            Discipline::CoDel(CoDel { ecn: true, ..CoDel::default() }),
            Discipline::FqCoDel(CoDel { ecn: true, ..CoDel::default() }),
            Discipline::Red(Red { ecn: true, ..Red::default() }),
        ] {
            let mut path = bottleneck(100_000, discipline);
            times(&mut path, ecn, every, end, |_| 0);
            let stats = path.stats();
            assert_eq!((stats.marked > 0, stats.managed > 0), (marks, !marks), "{ecn:?} {discipline:?}: {stats:?}");
        }
    }
}

/// Arrivals between marks while the queue, and so its average, stands at nine.
fn red_gaps(seed: u64, probability: Probability, count: usize) -> Vec<usize> {
    let red = Red { min: 5, max: 15, probability, weight: 9, ecn: true };
    let mut path = bottleneck(100, Discipline::Red(red)).seeded(seed, "red");
    (0..11).for_each(|_| path.push(Time::ZERO, datagram(1, Ecn::Ect0, 1_514)));
    let mut gaps = Vec::new();
    let mut last = None;
    for n in 1.. {
        let now = Time::from_millis(n);
        drop(path.pop(now));
        assert_eq!(path.queued().0, 9);
        let before = path.stats().marked;
        path.push(now, datagram(1, Ecn::Ect0, 1_514));
        // 20 time constants until the average is there.
        if n > 20 * 512 && path.stats().marked > before {
            gaps.extend(last.replace(n).map(|last| (n - last) as usize));
            if gaps.len() == count {
                return gaps;
            }
        }
    }
    unreachable!()
}

/// Pearson's statistic and its degrees of freedom; rare gaps count as one.
fn chi_square(gaps: &[usize], law: &[f64]) -> (f64, f64) {
    let mut seen = vec![0.0; law.len()];
    gaps.iter().for_each(|gap| seen[(gap - 1).min(law.len() - 1)] += 1.0);
    let terms = seen.iter().zip(law).map(|(seen, p)| {
        let expected = p * gaps.len() as f64;
        (seen - expected).powi(2) / expected
    });
    (terms.sum(), law.len() as f64 - 1.0)
}

/// From each step's chance of a mark to the probability of each gap, up to the first that is certain.
fn gap_law(chance: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut left = 1.0;
    let mut law = Vec::new();
    for n in 1..200 {
        let p = chance(f64::from(n)).min(1.0);
        law.push(left * p);
        left *= 1.0 - p;
        if left * 1_000.0 < 1.0 {
            break;
        }
    }
    *law.last_mut().unwrap() += left;
    law
}

#[test]
fn red_marks_with_the_specified_distribution() {
    for ppm in [100_000, 75_000, 50_000] {
        // Figure 2 of the paper, in the middle between 5 and 15: p_b, and p_a after n datagrams without a mark.
        let base = f64::from(ppm) / 1e6 * (9.0 - 5.0) / (15.0 - 5.0);
        let specified = gap_law(|n| if n * base < 1.0 { base / (1.0 - n * base) } else { 1.0 });
        assert!((specified.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let without_count = gap_law(|_| base);
        for seed in 0..6 {
            let gaps = red_gaps(seed, Probability::ppm(ppm), 5_000);
            // 5 standard deviations of chi-square.
            let (x, freedom) = chi_square(&gaps, &specified);
            assert!(x < freedom + 5.0 * (2.0 * freedom).sqrt(), "seed {seed}, {ppm} ppm: {x} for {freedom}");
            let (x, freedom) = chi_square(&gaps, &without_count);
            assert!(x > freedom + 50.0 * (2.0 * freedom).sqrt(), "the test would not see a missing correction");
        }
    }
}

#[test]
fn red_follows_the_average_and_forgets_it_while_idle() {
    // Marks all from an average of 10 on, and nothing below.
    let red = Red { min: 10, max: 10, probability: Probability::ZERO, weight: 6, ecn: true };
    let mut path = bottleneck(100, Discipline::Red(red));
    let mut average = 0.0;
    let mut arrive = |path: &mut Path, now: Time, idle: f64| {
        drop(path.pop(now));
        let queued = path.queued().0 as f64;
        if idle > 0.0 {
            average *= (1.0f64 - 1.0 / 64.0).powf(idle)
        } else {
            average += (queued - average) / 64.0
        }
        let before = path.stats().marked;
        path.push(now, datagram(1, Ecn::Ect0, 1_514));
        if (average - 10.0f64).abs() > 1e-6 {
            assert_eq!(path.stats().marked > before, average > 10.0, "average {average} at {now:?}");
        }
    };
    for n in 0..20 {
        arrive(&mut path, Time::ZERO, f64::from(u8::from(n == 0)));
    }
    (1..200).for_each(|n| arrive(&mut path, Time::from_millis(n), 0.0));
    assert!((50..180).contains(&path.stats().marked), "{:?}", path.stats());
    // 20 datagrams leave; then 100 could have left.
    while let Some(due) = path.next_timeout() {
        drop(path.pop(due));
    }
    let marked = path.stats().marked;
    (0..60).for_each(|n| arrive(&mut path, Time::from_millis(319), if n == 0 { 100.0 } else { 0.0 }));
    assert!((10..50).contains(&(path.stats().marked - marked)));
}

#[test]
fn red_counts_from_nothing_when_the_average_enters_the_range() {
    // Without memory, the average is the queue: at 2 the count begins, at 3 the chance is 1/3 / (1 - 1/3).
    let red = Red { min: 2, max: 5, probability: Probability::ONE, weight: 0, ecn: true };
    let marked = (0..1_000).filter(|seed| {
        let mut path = bottleneck(100, Discipline::Red(red)).seeded(*seed, "red");
        (0..5).for_each(|_| path.push(Time::ZERO, datagram(1, Ecn::Ect0, 1_514)));
        path.stats().marked == 1
    });
    assert!((420..580).contains(&marked.count()));
}

#[test]
fn red_drops_all_above_its_maximum_and_none_below_its_minimum() {
    let red = Red { min: 30, max: 40, probability: Probability::percent(1), weight: 0, ecn: false };
    let mut path = bottleneck(1_000, Discipline::Red(red));
    (0..200).for_each(|_| path.push(Time::ZERO, datagram(1, Ecn::Ect0, 1_514)));
    assert!((30..=40).contains(&path.queued().0), "{:?}", path.queued());
    assert_eq!(path.stats().managed + path.queued().0 as u64 + 1, 200);
}

/// Sends for a flow: datagrams of this size, one each so often. Returns (bytes, longest time) that came of each.
fn compete(path: &mut Path, flows: &[(usize, Duration)], end: Time) -> Vec<(u64, Duration)> {
    let mut next = vec![Time::ZERO; flows.len()];
    let mut got = vec![(0, Duration::ZERO); flows.len()];
    loop {
        let flow = (0..flows.len()).min_by_key(|flow| next[*flow]).unwrap();
        let now = path.next_timeout().map_or(next[flow], |due| due.min(next[flow]));
        if now >= end {
            return got;
        }
        if let Some(datagram) = path.pop(now) {
            let sent = Time::from_nanos(u64::from_le_bytes(*datagram.bytes.first_chunk().unwrap()));
            let (bytes, longest) = &mut got[usize::from(datagram.from.port())];
            *bytes += datagram.wire_size();
            *longest = (now - sent).max(*longest);
        } else if now == next[flow] {
            let mut datagram = datagram(flow as u16, Ecn::NotEct, flows[flow].0);
            datagram.bytes[..8].copy_from_slice(&now.as_nanos().to_le_bytes());
            path.push(now, datagram);
            next[flow] += flows[flow].1;
        }
    }
}

#[test]
fn a_small_flow_beside_a_flood_keeps_its_share_and_its_delay() {
    let end = Time::from_millis(10_000);
    // 200 B each 10 ms are 1.3% of the path; the flood is three times what it carries.
    let flows = [(200, 10 * MS), (1_514, Duration::from_micros(331))];
    let fq = compete(&mut bottleneck(1_000, Discipline::FqCoDel(CoDel::default())), &flows, end);
    assert_eq!(fq[0].0, 200_000);
    // At worst it waits for one datagram on the wire, and takes a little time itself.
    assert!(fq[0].1 <= MS + Duration::from_micros(134), "{:?}", fq[0].1);
    assert!(fq[1].0 + fq[0].0 > 15_100_000, "{fq:?}");
    let tail = compete(&mut bottleneck(1_000, Discipline::DropTail), &flows, end);
    assert!(tail[0].0 < 100_000 && tail[0].1 > 900 * MS, "{tail:?}");
}

#[test]
fn floods_get_equal_bytes_whatever_the_size_of_their_datagrams() {
    let flows = [(1_514, MS / 2), (300, MS / 10), (700, MS / 5), (1_000, MS / 3)];
    let mut path = bottleneck(1_000, Discipline::FqCoDel(CoDel::default()));
    let got = compete(&mut path, &flows, Time::from_millis(20_000));
    let all: u64 = got.iter().map(|(bytes, _)| bytes).sum();
    assert!(all > 30_200_000, "{got:?}");
    assert!(got.iter().all(|(bytes, _)| bytes.abs_diff(all / 4) < all / 100), "{got:?}");
    assert!(path.stats().managed > 100 && path.stats().overflowed > 1_000, "{:?}", path.stats());
}

#[test]
fn flows_that_run_dry_each_time_are_not_new_each_time() {
    // Three that ask for 30% each, one datagram after the other has gone, beside one that asks for all.
    let micros = Duration::from_micros;
    let flows = [(300, micros(659)), (300, micros(660)), (300, micros(661)), (1_514, micros(331))];
    let mut path = bottleneck(1_000, Discipline::FqCoDel(CoDel::default()));
    let got = compete(&mut path, &flows, Time::from_millis(10_000));
    let quarter = 15_140_000 / 4;
    assert!(got.iter().all(|(bytes, _)| bytes.abs_diff(quarter) < quarter / 10), "{got:?}");
}

#[test]
fn in_a_full_fair_queue_the_longest_gives_up_half_from_its_head() {
    let numbered = |flow, n: u8| {
        let mut datagram = datagram(flow, Ecn::NotEct, 500);
        datagram.bytes[0] = n;
        datagram
    };
    let mut path = bottleneck(10, Discipline::FqCoDel(CoDel::default()));
    // One on the wire and ten that wait; then there is no room for the other flow.
    (0..11).for_each(|n| path.push(Time::ZERO, numbered(1, n)));
    assert_eq!((path.queued(), path.stats().overflowed), ((10, 5_000), 0));
    (0..3).for_each(|n| path.push(Time::ZERO, numbered(2, n)));
    assert_eq!((path.queued(), path.stats().overflowed), ((8, 4_000), 5));
    let mut out = [Vec::new(), Vec::new()];
    while let Some(due) = path.next_timeout() {
        if let Some(datagram) = path.pop(due) {
            out[usize::from(datagram.from.port() - 1)].push(datagram.bytes[0]);
        }
    }
    assert_eq!(out, [vec![0, 6, 7, 8, 9, 10], vec![0, 1, 2]]);

    // Half, but no more than 64, and no less than one.
    for (limit, given_up) in [(200, 64), (128, 64), (127, 64), (125, 63), (1, 1), (0, 1)] {
        let mut path = bottleneck(limit, Discipline::FqCoDel(CoDel::default()));
        (0..limit + 2).for_each(|_| path.push(Time::ZERO, datagram(1, Ecn::NotEct, 500)));
        assert_eq!(path.stats().overflowed, given_up, "limit {limit}");
    }
}

#[test]
fn a_new_rate_leaves_the_discipline_and_another_discipline_is_refused() {
    let codel = Discipline::CoDel(CoDel::default());
    let mut path = bottleneck(10, codel);
    let limit = Limit::Packets(10);
    assert!(path.set(Time::ZERO, Element::Rate(Rate::ZERO, limit)));
    path.push(Time::ZERO, datagram(1, Ecn::NotEct, 1_514));
    assert_eq!(path.next_timeout(), None);
    assert!(!path.set(Time::ZERO, Element::Bottleneck(RATE, limit, Discipline::DropTail)));
    assert_eq!(path.next_timeout(), None);
    let eager = CoDel { target: Duration::ZERO, interval: MS, ecn: false };
    assert!(path.set(Time::ZERO, Element::Bottleneck(RATE, limit, Discipline::CoDel(eager))));
    (0..10).for_each(|_| path.push(Time::ZERO, datagram(1, Ecn::NotEct, 1_514)));
    while let Some(due) = path.next_timeout() {
        drop(path.pop(due));
    }
    assert!(path.stats().managed > 2, "{:?}", path.stats());
}
