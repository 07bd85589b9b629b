//! Does each element do what it says, in numbers?

use core::net::SocketAddr;
use core::time::Duration;
use stayfast_sim::{Datagram, Element, HELD_MAX, Limit, Path, PathSpec, Probability, Profile};
use stayfast_units::{Rate, Time};

mod common;
use common::{HOST, SEEDS, datagram, drain, expected, send};

#[test]
fn a_busy_bottleneck_carries_its_rate_to_the_nanosecond() {
    for rate in [6_250_000, 1_000_003, 77_777_777] {
        let mut path = Path::new().rate(Rate::from_bytes_per_sec(rate), Limit::NONE);
        let sizes = [1_514, 60, 999, 1_311];
        let count = 10_000;
        (0..count).for_each(|n| path.push(Time::ZERO, datagram(n, sizes[n as usize % 4])));
        let mut out = Vec::new();
        drain(&mut path, Time::MAX, &mut out);
        let mut bytes = 0u128;
        for (n, time) in out {
            bytes += sizes[n as usize % 4] as u128;
            let exact = (bytes * 1_000_000_000).div_ceil(u128::from(rate));
            assert_eq!(u128::from(time.as_nanos()), exact, "datagram {n} at {rate} B/s");
        }
        assert_eq!(path.stats().left, count);
    }
}

#[test]
fn a_full_queue_drops_the_newest_and_bounds_the_wait() {
    let rate = Rate::from_bits_per_sec(50_000_000);
    let mut path = Path::new().rate(rate, Limit::Bytes(10_000));
    (0..100).for_each(|n| path.push(Time::ZERO, datagram(n, 1_000)));
    assert_eq!(path.queued(), (10, 10_000));
    assert_eq!(path.stats().overflowed, 89);
    let mut out = Vec::new();
    drain(&mut path, Time::MAX, &mut out);
    assert_eq!(out.iter().map(|(n, _)| *n).collect::<Vec<_>>(), (0..11).collect::<Vec<_>>());
    assert_eq!(out[10].1, Time::ZERO + rate.time_for(11_000));

    let mut path = Path::new().rate(rate, Limit::Packets(3));
    (0..100).for_each(|n| path.push(Time::ZERO, datagram(n, 60 + n as usize)));
    assert_eq!((path.queued().0, path.stats().overflowed), (3, 96));
}

#[test]
fn what_leaves_makes_room_for_what_arrives_at_the_same_moment() {
    let mut path = Path::new().rate(Rate::from_bytes_per_sec(1_000_000), Limit::Packets(1));
    path.push(Time::ZERO, datagram(0, 1_000));
    path.push(Time::ZERO, datagram(1, 1_000));
    path.push(Time::from_millis(1), datagram(2, 1_000));
    assert_eq!(path.stats().overflowed, 0);
    path.push(Time::from_millis(1), datagram(3, 1_000));
    assert_eq!(path.stats().overflowed, 1);

    // Also if it arrives from another element.
    let mut path =
        Path::new().delay(Duration::from_millis(5)).rate(Rate::from_bytes_per_sec(1_000_000), Limit::Packets(1));
    for (ms, n) in [(0, 0), (0, 1), (1, 2), (2, 3)] {
        path.push(Time::from_millis(ms), datagram(n, 1_000));
    }
    drain(&mut path, Time::MAX, &mut Vec::new());
    assert_eq!(path.stats().overflowed, 0);
}

#[test]
fn a_new_rate_holds_for_the_rest_of_the_datagram_on_the_wire() {
    let none = Limit::NONE;
    let mut path = Path::new().rate(Rate::from_bytes_per_sec(1_000), none);
    path.push(Time::ZERO, datagram(0, 1_000));
    path.set(Time::from_millis(500), Element::Rate(Rate::from_bytes_per_sec(5_000), none));
    assert_eq!(path.next_timeout(), Some(Time::from_millis(600)));
    path.set(Time::from_millis(550), Element::Rate(Rate::ZERO, none));
    assert_eq!(path.next_timeout(), None);
    assert!(path.pop(Time::from_millis(9_000)).is_none());
    path.set(Time::from_millis(9_000), Element::Rate(Rate::from_bytes_per_sec(1_000), none));
    assert_eq!(path.next_timeout(), Some(Time::from_millis(9_250)));
}

#[test]
fn a_rate_follows_its_profile_to_the_nanosecond() {
    let text = "8M:3ms,0:2ms,80M:1ms,1M:500us";
    let profile: Profile = text.parse().unwrap();
    // Bytes times 10^9 carried after so long, nanosecond for nanosecond.
    let steps = [(1_000_000, 3_000_000u64), (0, 2_000_000), (10_000_000, 1_000_000), (125_000, 500_000)];
    let period: u64 = steps.iter().map(|(_, nanos)| nanos).sum();
    let carried = |time: u64| {
        let whole: u64 = steps.iter().map(|(rate, nanos)| rate * nanos).sum();
        let mut left = time % period;
        let part = steps.map(|(rate, nanos)| {
            let now = left.min(nanos);
            left -= now;
            rate * now
        });
        u128::from(time / period * whole + part.iter().sum::<u64>())
    };
    let mut path = Path::new().rate(Rate::ZERO, Limit::NONE).following(&profile);
    let count = 2_000u64;
    (0..count).for_each(|n| path.push(Time::ZERO, datagram(n, 60 + n as usize % 1_400)));
    let mut out = Vec::new();
    drain(&mut path, Time::MAX, &mut out);
    assert_eq!(out.len() as u64, count);
    let mut work = 0;
    for (n, time) in out {
        work += u128::from(60 + n % 1_400) * 1_000_000_000;
        let (now, before) = (carried(time.as_nanos()), carried(time.as_nanos() - 1));
        assert!(now >= work && before < work, "datagram {n} at {time:?}");
    }
}

#[test]
fn what_a_datagram_leaves_of_its_last_nanosecond_is_kept_when_the_rate_changes_then() {
    let [fast, slow] = [3_000_000_000, 1_000_000_000].map(Rate::from_bytes_per_sec);
    let profile = Profile::new(&[(fast, Duration::from_nanos(34)), (slow, Duration::from_secs(1))]);
    let mut path = Path::new().rate(fast, Limit::NONE).following(&profile.unwrap());
    (0..2).for_each(|n| path.push(Time::ZERO, datagram(n, 100)));
    let mut out = Vec::new();
    drain(&mut path, Time::MAX, &mut out);
    // 34 ns carry 102 B; the other 98 B take 98 ns.
    assert_eq!(out, [(0, Time::from_nanos(34)), (1, Time::from_nanos(132))]);
}

#[test]
fn a_profile_goes_on_while_nothing_is_sent_and_can_end() {
    let ms = Time::from_millis;
    let mut path = Path::new().delay(Duration::ZERO).rate(Rate::ZERO, Limit::NONE);
    assert!(!Path::new().loss(Probability::ZERO).follow(Time::ZERO, None));
    let profile = Profile::new(&[
        (Rate::from_bytes_per_sec(1_000_000), Duration::from_millis(10)),
        (Rate::from_bytes_per_sec(100_000), Duration::from_millis(10)),
    ]);
    assert!(path.follow(ms(5), profile.as_ref()));
    assert_eq!(path.next_timeout(), None);
    // Half of it in the fast second step of a later round, the rest in the slow one.
    path.push(ms(5 + 40 + 9), datagram(0, 1_100));
    let mut out = Vec::new();
    drain(&mut path, Time::MAX, &mut out);
    assert_eq!(out, [(0, ms(5 + 40 + 11))]);
    // A rate that is set holds until the next step.
    path.set(ms(62), Element::Rate(Rate::from_bytes_per_sec(1_000), Limit::NONE));
    path.push(ms(62), datagram(1, 1_003));
    drain(&mut path, Time::MAX, &mut out);
    assert_eq!(out[1], (1, ms(66)));
    path.follow(ms(67), None);
    path.push(ms(90), datagram(2, 1_000));
    drain(&mut path, Time::MAX, &mut out);
    assert_eq!(out[2], (2, ms(91)));
}

#[test]
fn delay_is_exact_and_keeps_the_order_when_it_shrinks() {
    let mut path = Path::new().delay(Duration::from_millis(10));
    let out = send(&mut path, 1_000, Duration::from_micros(7));
    for (i, (n, time)) in out.iter().enumerate() {
        assert_eq!((*n, *time), (i as u64, Time::from_nanos(i as u64 * 7_000 + 10_000_000)));
    }
    let mut path = Path::new().delay(Duration::from_millis(10));
    path.push(Time::ZERO, datagram(0, 100));
    path.set(Time::from_millis(1), Element::Delay(Duration::from_millis(2)));
    path.push(Time::from_millis(1), datagram(1, 100));
    let mut out = Vec::new();
    drain(&mut path, Time::MAX, &mut out);
    assert_eq!(out, [(0, Time::from_millis(10)), (1, Time::from_millis(10))]);
}

#[test]
fn jitter_is_uniform_independent_and_reorders() {
    let every = Duration::from_micros(100);
    for seed in SEEDS {
        let mut path = Path::new().jitter(Duration::from_millis(4)).seeded(seed, "jitter");
        let out = send(&mut path, 10_000, every);
        let mut tenths = [0u64; 10];
        let mut sum = [0i64; 2];
        let mut waits = vec![0i64; 10_000];
        for (n, time) in &out {
            let wait = time.as_nanos() - n * 100_000;
            assert!(wait <= 4_000_000);
            tenths[(wait / 400_001) as usize] += 1;
            waits[*n as usize] = wait as i64 / 1_000 - 2_000;
            sum[0] += waits[*n as usize];
        }
        for pair in waits.windows(2) {
            sum[1] += pair[0] * pair[1];
        }
        let bounds = expected(10_000, Probability::percent(10));
        assert!(tenths.iter().all(|n| bounds.contains(n)), "seed {seed}: {tenths:?}");
        // Mean of 0 with a deviation of 11.5 us, covariance of 0 with a deviation of 1.3% of the variance.
        assert!((sum[0] / 10_000).abs() < 58, "seed {seed}: mean {} us", sum[0] / 10_000);
        assert!((sum[1] / 10_000).abs() < 89_000, "seed {seed}: covariance {}", sum[1] / 10_000);
        let overtaken = out.windows(2).filter(|pair| pair[0].0 > pair[1].0).count();
        assert!((3_000..5_500).contains(&overtaken), "seed {seed}: {overtaken}");
    }
}

#[test]
fn ordered_jitter_varies_and_does_not_reorder() {
    let mut path = Path::new().ordered_jitter(Duration::from_millis(4)).seeded(1, "jitter");
    let out = send(&mut path, 10_000, Duration::from_micros(100));
    assert!(out.windows(2).all(|pair| pair[0].0 < pair[1].0));
    let waits = out.iter().map(|(n, time)| time.as_nanos() - n * 100_000);
    assert!(waits.clone().all(|wait| wait <= 4_000_000));
    assert!(waits.clone().min() < Some(3_000_000) && waits.max() > Some(3_900_000));
}

#[test]
fn loss_and_duplication_are_within_their_binomial_bounds() {
    for seed in SEEDS {
        for probability in [Probability::ppm(300), Probability::percent(1), Probability::percent(50)] {
            let count = 50_000;
            let mut path = Path::new().loss(probability).seeded(seed, "loss");
            let out = send(&mut path, count, Duration::from_micros(1));
            assert_eq!(out.len() as u64 + path.stats().lost, count);
            assert!(expected(count, probability).contains(&path.stats().lost), "seed {seed}: {:?}", path.stats());

            let mut path = Path::new().duplicate(probability).seeded(seed, "duplicate");
            let out = send(&mut path, count, Duration::from_micros(1));
            assert_eq!(out.len() as u64, count + path.stats().duplicated);
            assert!(expected(count, probability).contains(&path.stats().duplicated), "seed {seed}");
            let twice = out.windows(2).filter(|pair| pair[0].0 == pair[1].0).count();
            assert_eq!(twice as u64, path.stats().duplicated, "a copy follows its original");
        }
    }
}

#[test]
fn a_copy_has_a_jitter_of_its_own() {
    let mut path = Path::new().duplicate(Probability::ONE).jitter(Duration::from_millis(1));
    let mut out = send(&mut path, 1_000, Duration::from_millis(2));
    out.sort();
    let gaps = out.chunks(2).map(|pair| pair[0].1.max(pair[1].1) - pair[0].1.min(pair[1].1));
    assert!(gaps.filter(|gap| *gap > Duration::from_micros(10)).count() > 950);
}

#[test]
fn an_outage_drops_what_arrives_and_not_what_is_under_way() {
    let mut path = Path::new().outage().delay(Duration::from_millis(10));
    path.push(Time::ZERO, datagram(0, 100));
    assert!(path.set(Time::from_millis(1), Element::Outage(true)));
    path.push(Time::from_millis(2), datagram(1, 100));
    assert!(path.set(Time::from_millis(3), Element::Outage(false)));
    path.push(Time::from_millis(4), datagram(2, 100));
    let mut out = Vec::new();
    drain(&mut path, Time::MAX, &mut out);
    assert_eq!(out, [(0, Time::from_millis(10)), (2, Time::from_millis(14))]);
    assert_eq!(path.stats().cut, 1);
}

#[test]
fn one_elements_chance_does_not_shift_that_of_another() {
    let jitter = Duration::from_millis(3);
    let run = |path: Path| send(&mut path.seeded(5, "a>b"), 5_000, Duration::from_micros(200));
    let plain = run(Path::new().jitter(jitter));
    let lossy = run(Path::new().loss(Probability::percent(5)).jitter(jitter));
    let doubled = run(Path::new().duplicate(Probability::percent(5)).jitter(jitter));
    assert!(lossy.len() < plain.len() && doubled.len() > plain.len());
    assert!(lossy.iter().all(|arrival| plain.contains(arrival)), "those that came through came at another time");
    assert!(plain.iter().all(|arrival| doubled.contains(arrival)), "the originals came at another time");
}

#[test]
fn time_does_not_go_back() {
    let mut path = Path::new().delay(Duration::from_millis(10));
    assert!(path.pop(Time::from_millis(5)).is_none());
    path.push(Time::from_millis(3), datagram(0, 100));
    assert_eq!(path.next_timeout(), Some(Time::from_millis(15)));
}

#[test]
fn all_that_a_path_holds_is_bounded() {
    let host: SocketAddr = HOST.parse().unwrap();
    for mut path in [
        Path::new(),
        Path::new().delay(Duration::from_secs(1)),
        Path::new().jitter(Duration::from_secs(1)),
        Path::new().rate(Rate::from_bytes_per_sec(1), Limit::NONE),
    ] {
        (0..HELD_MAX + 7).for_each(|_| path.push(Time::ZERO, Datagram::new(host, host, Vec::new())));
        assert_eq!((path.in_flight(), path.stats().overflowed), (HELD_MAX, 7));
    }
}

#[test]
fn a_path_from_text_delays_by_half_the_rtt_give_or_take_the_jitter() {
    for (text, least, most) in [("rtt=40ms jitter=3ms", 17, 23), ("rtt=4ms jitter=3ms", 0, 5), ("rtt=40ms", 20, 20)] {
        let spec: PathSpec = text.parse().unwrap();
        for mut path in [spec.forward(), spec.back()] {
            let out = send(&mut path, 2_000, Duration::from_millis(50));
            let waits = out.iter().map(|(n, time)| time.as_nanos() - n * 50_000_000);
            let (low, high) = (waits.clone().min().unwrap(), waits.max().unwrap());
            let near = if least == most { 0 } else { 50_000 };
            assert!((least * 1_000_000..=least * 1_000_000 + near).contains(&low), "{text}: {low}");
            assert!((most * 1_000_000 - near..=most * 1_000_000).contains(&high), "{text}: {high}");
        }
    }
}

#[test]
fn a_path_from_text_is_late_early_and_lossy_both_ways() {
    for (text, least, most) in [
        ("rtt=40ms late=100%:2ms-10ms", 22, 30),
        ("rtt=40ms early=100%:2ms-10ms", 10, 18),
        ("rtt=40ms jitter=3ms early=50%:10ms", 7, 23),
        ("rtt=8ms early=50%:10ms", 0, 4),
        ("rtt=40ms late=50%:3ms early=50%:5ms", 15, 23),
    ] {
        let spec: PathSpec = text.parse().unwrap();
        for mut path in [spec.forward(), spec.back()] {
            let out = send(&mut path, 4_000, Duration::from_millis(50));
            let waits = out.iter().map(|(n, time)| time.as_nanos() - n * 50_000_000);
            let (low, high) = (waits.clone().min().unwrap(), waits.max().unwrap());
            assert!((least * 1_000_000..=least * 1_000_000 + 50_000).contains(&low), "{text}: {low}");
            assert!((most * 1_000_000 - 50_000..=most * 1_000_000).contains(&high), "{text}: {high}");
        }
    }
    let spec: PathSpec = "loss=20% burst=4 corrupt=10% mtu=80 police=100k:9kB".parse().unwrap();
    let stats = [spec.forward(), spec.back()].map(|mut path| {
        // A packet of 86 B, which is too large, and then smaller ones.
        path.push(Time::ZERO, datagram(0, 100));
        for n in 0..10_000 {
            path.push(Time::from_millis(n), datagram(n, 80));
        }
        path.stats()
    });
    for stats in stats {
        assert_eq!(stats.oversize, 1);
        assert!((1_600..2_400).contains(&stats.lost) && (600..1_000).contains(&stats.corrupted), "{stats:?}");
    }
    assert!(stats[0].policed > 6_000 && stats[1].policed == 0, "{stats:?}");
}
