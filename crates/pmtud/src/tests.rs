use crate::fuzzing::{Op, Seen, check, run};
use crate::mutant::Mutant;
use crate::{BASE, CHECKS, MAX_IPV4, MAX_IPV6, RETRY, RETRY_LATER, Search};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use stayfast_testkit::{Ops, SplitMix, drawn};
use stayfast_units::Time;
use std::panic::catch_unwind;

#[test]
fn any_operations() {
    let (count, falls, rises) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    bolero::check!().with_arbitrary::<Ops<Op>>().with_max_len(2_048).with_iterations(2_000).for_each(|Ops(ops)| {
        let seen = run(ops, Search::new(Time::ZERO, BASE, MAX_IPV4), true);
        count.fetch_add(ops.len(), Ordering::Relaxed);
        falls.fetch_add(seen.falls as usize, Ordering::Relaxed);
        rises.fetch_add(seen.rises as usize, Ordering::Relaxed);
    });
    // A generator that gives up would make the test an empty one.
    assert!(count.into_inner() > 20_000 && rises.into_inner() > 1_000 && falls.into_inner() > 20);
}

#[test]
fn drawn_operations_find_every_mutant() {
    let mutants = [
        Mutant::LossAlone,
        Mutant::OneCheckDecides,
        Mutant::OneProbeDecides,
        Mutant::OldAckConvinces,
        Mutant::NeverFalls,
        Mutant::LateIsLost,
    ];
    let faulty = |mutant| {
        let mut search = Search::new(Time::ZERO, BASE, MAX_IPV4);
        search.mutant = Some(mutant);
        search
    };
    for mutant in mutants {
        let found = (0..4_000).find(|seed| {
            let ops: Vec<Op> = drawn(*seed, 400, 1);
            check(&ops);
            catch_unwind(|| run(&ops, faulty(mutant), true)).is_err()
        });
        assert!(found.is_some(), "{mutant:?} passes for right");
    }
}

/// A flow of one to four packets at a time on a path that never changes, with `percent` of its packets lost for good and
/// as many late by a tenth of a round trip to two: how often it was in doubt, and how often it fell.
fn hours_of_loss(percent: u64, seed: u64) -> Seen {
    let mut random = SplitMix(seed);
    let mut ops = Vec::new();
    let luck = |random: &mut SplitMix| if random.draw() % 100 < percent { 0 } else { 255 };
    for _ in 0..20_000 {
        for _ in 0..=random.draw() % 4 {
            let part = random.draw().is_multiple_of(4).then_some(random.draw() as u8);
            ops.push(Op::Send { part, luck: luck(&mut random) });
        }
        ops.push(Op::Probe { luck: luck(&mut random) });
        // What arrived of a flight is told by its last packet, as far as there is one: else the probe timeout fires.
        ops.push(Op::Wait(1));
        ops.push(if random.draw() % 100 < 85 {
            Op::Ack { which: 0, hasty: random.draw() % 100 < percent }
        } else {
            Op::Wait(1)
        });
        for _ in 0..random.draw() % 4 {
            ops.push(Op::Timeout { luck: luck(&mut random) });
        }
        ops.push(Op::Ack { which: 0, hasty: false });
        ops.extend([Op::Wait(1), Op::Late, Op::Gone]);
    }
    run(&ops, Search::new(Time::ZERO, BASE, MAX_IPV4), false)
}

#[test]
fn random_loss_and_late_packets_never_trip_it() {
    for percent in [10, 15] {
        let mut sum = Seen::default();
        for seed in 0..10 {
            let Seen { doubts, falls, .. } = hours_of_loss(percent, seed);
            (sum.doubts, sum.falls) = (sum.doubts + doubts, sum.falls + falls);
        }
        assert!(sum.doubts > 10_000, "{sum:?}: the test asks for nothing");
        assert_eq!(sum.falls, 0, "{percent} %: {sum:?}");
    }
}

/// Sends what is asked for until nothing is, on a path that takes `mtu`: the sizes of the probes.
fn round(search: &mut Search, now: &mut Time, mtu: u16) -> Vec<u16> {
    let mut sizes = Vec::new();
    while let Some(size) = search.probe(*now) {
        search.on_probe_sent(size);
        sizes.push(size);
        let sent = *now;
        *now += Duration::from_millis(20);
        if size <= mtu { search.on_probe_acked(*now, size, sent) } else { search.on_probe_lost(*now, size, sent) }
    }
    sizes
}

#[test]
fn the_ladder_is_walked_from_the_top() {
    let walk = |max, mtu| {
        let mut search = Search::new(Time::ZERO, BASE, max);
        (round(&mut search, &mut Time::from_millis(1), mtu), search.size())
    };
    assert_eq!(walk(MAX_IPV4, 9_000), ([1_472].to_vec(), 1_472), "one round trip on most paths");
    assert_eq!(walk(MAX_IPV6, 9_000), ([1_452].to_vec(), 1_452));
    assert_eq!(walk(MAX_IPV4, 1_392), ([1_472, 1_464, 1_452, 1_444, 1_412, 1_392].to_vec(), 1_392), "a tunnel");
    let all = [8_972, 8_952, 8_452, 1_472, 1_464, 1_452, 1_444, 1_412, 1_392, 1_372, 1_232];
    assert_eq!(walk(u16::MAX, 1_231), (all.to_vec(), BASE), "jumbo");
    for max in [0, 576, BASE, BASE + 31] {
        assert_eq!(walk(max, 9_000), (Vec::new(), BASE), "nothing to search");
    }
}

#[test]
fn a_size_that_fails_is_tried_after_a_second_three_times_in_all_and_then_every_ten_minutes() {
    let (mut search, mut now) = (Search::new(Time::ZERO, BASE, MAX_IPV4), Time::from_millis(1));
    assert_eq!(round(&mut search, &mut now, 1_452), [1_472, 1_464, 1_452]);
    for pause in [RETRY, RETRY, RETRY_LATER, RETRY_LATER] {
        let ended = now;
        now = ended + pause - Duration::from_millis(30);
        assert_eq!(search.probe(now), None);
        now = ended + pause;
        assert_eq!(round(&mut search, &mut now, 1_452), [1_472, 1_464]);
    }
    // The path has grown.
    now += RETRY_LATER;
    assert_eq!(round(&mut search, &mut now, 1_472), [1_472]);
    assert_eq!((search.size(), search.probe(now + RETRY_LATER)), (1_472, None));
}

fn at_the_top() -> (Search, Time) {
    let (mut search, mut now) = (Search::new(Time::ZERO, BASE, MAX_IPV4), Time::from_millis(1));
    round(&mut search, &mut now, MAX_IPV4);
    (search, now)
}

#[test]
fn from_the_second_probe_timeout_on_packets_are_small_and_the_path_is_asked_again() {
    let (mut search, mut now) = at_the_top();
    search.on_probe_timeout(now, 1);
    assert_eq!((search.limit(), search.probe(now)), (1_472, None));
    search.on_probe_timeout(now, 2);
    assert_eq!((search.limit(), search.size()), (BASE, 1_472));
    let mut outage = search.clone();
    assert_eq!(round(&mut outage, &mut now, 1_472), [1_472]);
    assert_eq!(outage.limit(), 1_472, "it was an outage");

    let mut walk = [1_472; CHECKS as usize].to_vec();
    walk.extend([1_464, 1_452, 1_444, 1_412, 1_392]);
    assert_eq!(round(&mut search, &mut now, 1_392), walk);
    assert_eq!((search.limit(), search.size()), (1_392, 1_392), "it was a black hole");
    now += RETRY;
    assert_eq!(round(&mut search, &mut now, 1_472), [1_472], "that has gone");
}

#[test]
fn large_packets_that_vanish_among_small_ones_are_noticed_without_a_timeout() {
    let (mut search, mut now) = at_the_top();
    for _ in 0..20 {
        let sent = now;
        now += Duration::from_millis(60);
        search.on_acked(1_300, sent);
        search.on_gone(now, 1_440, sent);
        search.on_gone(now, 900, sent);
    }
    assert_eq!(search.limit(), BASE);
    round(&mut search, &mut now, 1_392);
    assert_eq!(search.limit(), 1_392);
}

#[test]
fn fewer_than_ten_gone_since_one_of_full_size_arrived_raise_no_doubt() {
    let (mut search, mut now) = at_the_top();
    let mut lose = |search: &mut Search, count| {
        for _ in 0..count {
            now += Duration::from_millis(20);
            search.on_gone(now + Duration::from_millis(60), 1_472, now);
        }
        now
    };
    let sent = lose(&mut search, 9);
    search.on_acked(1_472, sent);
    lose(&mut search, 9);
    assert_eq!(search.limit(), 1_472);
    lose(&mut search, 1);
    assert_eq!(search.limit(), BASE);
}

#[test]
fn a_burst_of_losses_that_others_have_overtaken_raises_no_doubt() {
    let (mut search, mut now) = at_the_top();
    let burst = now;
    now += Duration::from_millis(20);
    search.on_acked(1_472, now);
    for _ in 0..100 {
        search.on_gone(now + Duration::from_millis(60), 1_472, burst);
    }
    assert_eq!(search.limit(), 1_472);
}

#[test]
fn what_passed_before_a_black_hole_says_nothing_about_the_path_after_it() {
    let (mut search, mut now) = at_the_top();
    search.on_probe_timeout(now, 2);
    let check = now;
    round(&mut search, &mut now, 1_392);
    search.on_probe_acked(now, 1_472, check);
    assert_eq!((search.size(), search.limit()), (1_392, 1_392));
}

#[test]
fn what_was_sent_on_another_path_says_nothing_about_this_one() {
    let (mut search, now) = at_the_top();
    let sent = now;
    let now = now + Duration::from_millis(20);
    search.on_path_changed(now, MAX_IPV6);
    search.on_probe_acked(now, 1_472, sent);
    assert_eq!((search.size(), search.probe(now)), (BASE, Some(1_452)));
}

#[test]
fn a_probe_that_never_left_is_due_again() {
    let mut search = Search::new(Time::ZERO, BASE, MAX_IPV4);
    search.on_probe_sent(1_472);
    search.on_probe_unsent();
    assert_eq!(search.probe(Time::ZERO), Some(1_472));
}
