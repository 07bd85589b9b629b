//! Does each element that harms datagrams, or lets them overtake, do what it says, in numbers?

mod common;
use common::{HOST, SEEDS, datagram, drain, expected, send};
use core::net::SocketAddr;
use core::time::Duration;
use stayfast_sim::{Bleach, Datagram, Deviation, Ecn, Element, Path, PathSpec, Probability};
use stayfast_units::{Rate, Time};

const MS: Duration = Duration::from_millis(1);

/// Lengths of the gaps in the numbers of what came out.
fn bursts(out: &[(u64, Time)]) -> Vec<u64> {
    out.windows(2).map(|pair| pair[1].0 - pair[0].0 - 1).filter(|gap| *gap > 0).collect()
}

#[test]
fn bursts_have_the_mean_loss_and_the_mean_length() {
    for seed in SEEDS {
        for (ppm, length) in [(10_000, 1), (10_000, 4), (300_000, 2), (500, 30), (50_000, 10)] {
            let count = 200_000u64;
            let mut path = Path::new().burst_loss(Probability::ppm(ppm), length).seeded(seed, "bursts");
            let out = send(&mut path, count, Duration::from_micros(1));
            let (n, p) = (f64::from(length), f64::from(ppm) / 1e6);
            // Losses of a chain of two states are correlated by what remains of a state after one step.
            let kept = 1.0 - 1.0 / n - p / ((1.0 - p) * n);
            let deviation = (count as f64 * p * (1.0 - p) * (1.0 + kept) / (1.0 - kept)).sqrt();
            let lost = path.stats().lost as f64;
            assert_eq!(out.len() as u64 + path.stats().lost, count);
            assert!((lost - count as f64 * p).abs() < 5.0 * deviation, "{seed}: {lost} at {p} in bursts of {n}");

            let bursts = bursts(&out);
            let many = bursts.len() as f64;
            let mean = bursts.iter().sum::<u64>() as f64 / many;
            assert!((mean - n).abs() <= 5.0 * (n * (n - 1.0) / many).sqrt(), "{seed}: {mean} instead of {n}");
            // A geometric distribution: one in n ends at once.
            let short = bursts.iter().filter(|burst| **burst == 1).count() as f64;
            assert!((short - many / n).abs() <= 5.0 * (many / n).sqrt(), "{seed}: {short} of {many} bursts of {n}");
        }
    }
}

#[test]
fn burst_loss_of_nothing_loses_nothing_and_too_much_is_as_much_as_there_can_be() {
    let mut path = Path::new().burst_loss(Probability::ONE, 4);
    send(&mut path, 50_000, Duration::from_micros(1));
    assert!((39_000..41_000).contains(&path.stats().lost), "{:?}", path.stats());
    // In the midst of a burst.
    let mut path = Path::new().burst_loss(Probability::ppm(999_999), 1_000_000);
    send(&mut path, 10, MS);
    assert_eq!(path.stats().lost, 10);
    path.set(Time::ZERO, Element::BurstLoss(Probability::ZERO, 1_000_000));
    send(&mut path, 1_000, MS);
    assert_eq!(path.stats().lost, 10);
}

#[test]
fn the_next_ones_are_lost_and_no_more() {
    let mut path = Path::new().lose_next();
    let mut out = send(&mut path, 10, MS);
    assert!(path.set(Time::from_millis(10), Element::LoseNext(3)));
    out.extend(send(&mut path, 10, MS));
    assert_eq!(out.iter().map(|(n, _)| *n).collect::<Vec<_>>(), (0..10).chain(3..10).collect::<Vec<_>>());
    assert_eq!(path.stats().lost, 3);
}

#[test]
fn corruption_flips_one_bit_of_the_right_share_anywhere() {
    for seed in SEEDS {
        let mut path = Path::new().corrupt(Probability::percent(20)).seeded(seed, "corrupt");
        let mut flips = [0u64; 64];
        let original = 0xA5u8;
        for _ in 0..20_000 {
            let host: SocketAddr = HOST.parse().unwrap();
            path.push(Time::ZERO, Datagram::new(host, host, vec![original; 8]));
            let bytes = path.pop(Time::ZERO).unwrap().bytes;
            let differing: Vec<usize> =
                (0..64).filter(|bit| (bytes[bit / 8] ^ original) >> (bit % 8) & 1 == 1).collect();
            assert!(differing.len() <= 1, "{differing:?}");
            differing.iter().for_each(|bit| flips[*bit] += 1);
        }
        let flipped = flips.iter().sum::<u64>();
        assert_eq!(path.stats().corrupted, flipped);
        assert!(expected(20_000, Probability::percent(20)).contains(&flipped), "{flipped}");
        let bounds = expected(flipped, Probability::ppm(1_000_000 / 64));
        assert!(flips.iter().all(|n| bounds.contains(n)), "seed {seed}: {flips:?}");
    }
    let host: SocketAddr = HOST.parse().unwrap();
    let mut path = Path::new().corrupt(Probability::ONE);
    path.push(Time::ZERO, Datagram::new(host, host, Vec::new()));
    assert_eq!((path.stats().corrupted, path.in_flight()), (0, 1));
}

#[test]
fn a_black_hole_swallows_what_is_one_byte_too_large() {
    for (host, headers) in [(HOST, 28), ("[::1]:1", 48)] {
        let host: SocketAddr = host.parse().unwrap();
        let mut path = Path::new().mtu(1_280);
        path.push(Time::ZERO, Datagram::new(host, host, vec![0; 1_280 - headers]));
        path.push(Time::ZERO, Datagram::new(host, host, vec![0; 1_281 - headers]));
        assert_eq!((path.stats().oversize, path.in_flight()), (1, 1));
        path.set(Time::ZERO, Element::Mtu(1_281));
        path.push(Time::ZERO, Datagram::new(host, host, vec![0; 1_281 - headers]));
        assert_eq!((path.stats().oversize, path.in_flight()), (1, 2));
    }
}

#[test]
fn ecn_bits_are_cleared_or_cost_the_datagram() {
    let run = |bleach| {
        let mut path = Path::new().bleach(bleach);
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            let mut datagram = datagram(0, 100);
            datagram.ecn = ecn;
            path.push(Time::ZERO, datagram);
        }
        let out: Vec<Ecn> = core::iter::from_fn(|| path.pop(Time::ZERO)).map(|datagram| datagram.ecn).collect();
        (out, path.stats().bleached, path.stats().refused)
    };
    assert_eq!(run(Bleach::Off), (vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce], 0, 0));
    assert_eq!(run(Bleach::Clear), (vec![Ecn::NotEct; 4], 3, 0));
    assert_eq!(run(Bleach::Drop), (vec![Ecn::NotEct], 0, 3));
}

#[test]
fn a_policer_lets_its_burst_and_its_rate_pass_to_the_byte() {
    let rate = Rate::from_bytes_per_sec(1_000_003);
    for (size, burst) in [(1_000, 10_000), (999, 1_500), (60, 100)] {
        let mut path = Path::new().police(rate, burst);
        let mut now = Time::ZERO;
        let mut passed = 0;
        for n in 0..50_000 {
            path.push(now, datagram(n, size));
            passed += path.pop(now).map_or(0, |_| size as u64);
            let most = burst + rate.bytes_in(now - Time::ZERO);
            assert!(passed <= most, "{passed} B at {now:?}");
            now += Duration::from_nanos(20_011);
        }
        // It never has a whole datagram's worth to spare, because there is always one to take it.
        let most = burst + rate.bytes_in(now - Time::ZERO);
        assert!(passed + (size as u64) > most - 30, "{passed} B of {most}");
        assert_eq!(path.stats().policed, 50_000 - passed / size as u64);
    }
}

#[test]
fn a_policers_bucket_fills_again_and_has_a_size() {
    let rate = Rate::from_bytes_per_sec(1_000_000);
    let mut path = Path::new().police(rate, 5_000);
    let passes = |path: &mut Path, now: Time| {
        (0..20).for_each(|n| path.push(now, datagram(n, 1_000)));
        core::iter::from_fn(|| path.pop(now)).count()
    };
    assert_eq!(passes(&mut path, Time::ZERO), 5);
    assert_eq!(passes(&mut path, Time::from_nanos(2_999_999)), 2);
    assert_eq!(passes(&mut path, Time::from_nanos(3_000_000)), 1);
    assert_eq!(passes(&mut path, Time::from_millis(9_000)), 5);
    path.set(Time::from_millis(9_002), Element::Policer(Rate::from_bytes_per_sec(500_000), 3_000));
    assert_eq!(passes(&mut path, Time::from_millis(9_004)), 3);
    assert_eq!(passes(&mut path, Time::from_millis(9_006)), 1);
}

/// Waits of those that came at another time than all others, in nanoseconds, in order of the datagrams.
fn deviants(path: &mut Path, usual: u64) -> Vec<u64> {
    let mut out = send(path, 20_000, Duration::from_micros(50));
    out.sort();
    let waits = out.iter().map(|(n, time)| time.as_nanos() - n * 50_000);
    waits.filter(|wait| *wait != usual).collect()
}

#[test]
fn the_right_share_is_late_or_early_by_a_uniform_time() {
    let share = Probability::percent(10);
    for seed in SEEDS {
        let late = deviants(&mut Path::new().late(share, 2 * MS, 10 * MS).seeded(seed, "late"), 0);
        let early = deviants(&mut Path::new().early(share, 2 * MS, 10 * MS).seeded(seed, "early"), 10_000_000);
        let early: Vec<u64> = early.iter().map(|wait| 10_000_000 - wait).collect();
        assert_ne!(late, early);
        for by in [late, early] {
            assert!(expected(20_000, share).contains(&(by.len() as u64)), "seed {seed}: {}", by.len());
            let mut quarters = [0u64; 4];
            for time in &by {
                assert!((2_000_000..=10_000_000).contains(time), "{time}");
                quarters[((time - 2_000_000) / 2_000_001) as usize] += 1;
            }
            let bounds = expected(by.len() as u64, Probability::percent(25));
            assert!(quarters.iter().all(|n| bounds.contains(n)), "seed {seed}: {quarters:?}");
        }
    }
}

#[test]
fn the_rest_overtake_the_late_and_not_each_other() {
    let mut path = Path::new().late(Probability::percent(10), MS, 5 * MS);
    let out = send(&mut path, 10_000, Duration::from_micros(100));
    let on_time: Vec<_> = out.iter().filter(|(n, time)| time.as_nanos() == n * 100_000).collect();
    assert!(on_time.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(out.windows(2).filter(|pair| pair[0].0 > pair[1].0).count() > 500);
}

#[test]
fn a_deviation_can_be_switched_on_and_off() {
    let late = Deviation { share: Probability::ONE, least: MS, most: MS };
    let mut path = Path::new().with(Element::Late(Deviation::default())).with(Element::Early(Deviation::default()));
    path.push(Time::ZERO, datagram(0, 100));
    assert!(path.set(Time::ZERO, Element::Late(late)));
    path.push(Time::ZERO, datagram(1, 100));
    assert!(path.set(Time::ZERO, Element::Late(Deviation::default())));
    // All wait for 3 ms, and all are early by 3 ms.
    assert!(path.set(Time::ZERO, Element::Early(Deviation { share: Probability::ONE, least: 3 * MS, most: 3 * MS })));
    path.push(Time::ZERO, datagram(2, 100));
    path.set(Time::ZERO, Element::Early(Deviation { share: Probability::ZERO, least: MS, most: 2 * MS }));
    path.push(Time::ZERO, datagram(3, 100));
    let mut out = Vec::new();
    drain(&mut path, Time::MAX, &mut out);
    // Number 1 meets the early element after its own lateness.
    assert_eq!(out, [(0, 0), (2, 0), (3, 2), (1, 3)].map(|(n, ms)| (n, Time::from_millis(ms))));
}

#[test]
fn what_harms_some_leaves_the_others_as_they_were() {
    let share = Probability::percent(5);
    let jitter = 3 * MS;
    let run = |path: Path| send(&mut path.jitter(jitter).seeded(5, "a>b"), 5_000, Duration::from_micros(200));
    let plain = run(Path::new());
    for harm in [
        Path::new().burst_loss(share, 4),
        Path::new().corrupt(Probability::ZERO).lose_next(),
        Path::new().police(Rate::from_bytes_per_sec(450_000), 3_000),
        Path::new().bleach(Bleach::Drop).mtu(1_500),
    ] {
        let harmed = run(harm);
        assert!(harmed.len() > 4_000 && harmed.iter().all(|arrival| plain.contains(arrival)));
    }
    let late = run(Path::new().late(share, jitter, jitter));
    assert!(late.iter().filter(|arrival| plain.contains(arrival)).count() > 4_500);
}

/// A path that becomes another in mid-flow does to later datagrams what it would have done had it been the other one
/// from the beginning: nobody's dice are shifted.
#[test]
fn a_path_becomes_another_without_a_shift_in_chance() {
    let specs = ["rtt=20ms jitter=3ms loss=1%", "rtt=20ms jitter=3ms loss=9% dup=2% mtu=1280"];
    let [before, after] = specs.map(|spec| spec.parse::<PathSpec>().unwrap());
    let run = |first: PathSpec, change: Option<PathSpec>| {
        let mut path = first.forward().seeded(5, "there");
        let mut out = Vec::new();
        for n in 0..4_000 {
            let now = Time::from_millis(n);
            if let Some(spec) = change.filter(|_| n == 2_000) {
                assert!(spec.forward_elements().into_iter().all(|element| path.set(now, element)));
            }
            path.push(now, datagram(n, 100));
            drain(&mut path, now, &mut out);
        }
        drain(&mut path, Time::MAX, &mut out);
        out
    };
    let half =
        |out: &[(u64, Time)], late| -> Vec<_> { out.iter().copied().filter(|(n, _)| (*n >= 2_000) == late).collect() };
    let (one, other, changed) = (run(before, None), run(after, None), run(before, Some(after)));
    assert_eq!(half(&changed, false), half(&one, false));
    assert_eq!(half(&changed, true), half(&other, true));
    assert_ne!(half(&one, true), half(&other, true));
}
