//! The real machines in virtual time.

use stayfast_seal::Identity;
use stayfast_sim::{Element, Limit, Path, Probability, World};
use stayfast_store::{Memory, Outbox};
use stayfast_tests::{Entropy, Machine, Pair, Part, RECEIVER};
use stayfast_units::{Rate, RecordNumber, Time};
use std::net::SocketAddr;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Both directions of a path of 50 Mbit/s with a queue of one round trip; jitter and loss each way.
fn path(rtt: Duration, jitter: Duration, percent: u32) -> (Path, Path) {
    let rate = Rate::from_bits_per_sec(50_000_000);
    let loss = Probability::ppm(percent * 10_000);
    let bottleneck = Path::new().loss(loss).jitter(jitter).delay(rtt / 2);
    let back = Path::new().loss(loss).jitter(jitter).delay(rtt / 2);
    (bottleneck.rate(rate, Limit::Bytes(rate.bytes_in(rtt))), back)
}

fn mbit(count: u64, size: usize, took: Time) -> f64 {
    count as f64 * size as f64 * 8_000.0 / took.as_nanos() as f64
}

#[test]
fn one_record_arrives_and_is_known_to_be_stored() {
    let (there, back) = path(20 * MS, Duration::ZERO, 0);
    let mut pair = Pair::new(1, there, back);
    pair.sending().append("orders", &[b"order 1"]);
    let at = pair.run_until_stored("orders", RecordNumber(1), Time::from_millis(1_000));
    assert!(at.is_some_and(|at| at < Time::from_millis(21)), "stored after {at:?}, {:?}", pair.sending().status());
    assert_eq!(pair.stored("orders"), [Some(b"order 1".to_vec())]);
}

#[test]
fn a_backlog_drains_at_the_rate_of_the_path() {
    let mut pair = Pair::with_backlog(1, path(20 * MS, Duration::ZERO, 0), 30_000, 1_013);
    let at = pair.run_until_stored("log", RecordNumber(30_000), Time::from_millis(20_000)).expect("all is stored");
    let mbit = mbit(30_000, 1_013, at);
    assert!(mbit >= 46.0, "{mbit:.2} Mbit/s, {:?}", pair.sending().status());
    pair.assert_whole(30_000);
}

#[test]
fn jitter_loss_and_both() {
    for (jitter, loss, count, least) in [(3, 0, 20_000, 40.0), (0, 1, 5_000, 4.5), (3, 1, 5_000, 4.5)] {
        let mut pair = Pair::with_backlog(1, path(20 * MS, jitter * MS, loss), count, 1_013);
        let at = pair.run_until_stored("log", RecordNumber(count), Time::from_millis(60_000));
        let status = pair.sending().status();
        let at = at.unwrap_or_else(|| panic!("jitter {jitter}, loss {loss}: {status:?}"));
        let mbit = mbit(count, 1_013, at);
        assert!(mbit >= least, "jitter {jitter}, loss {loss}: {mbit:.2} Mbit/s, {status:?}");
        pair.assert_whole(count);
    }
}

#[test]
fn long_records_and_empty_ones_arrive() {
    for size in [8, 61, 16_013, 1_000_000] {
        let count = if size > 100_000 { 20 } else { 400 };
        let mut pair = Pair::with_backlog(3, path(20 * MS, 3 * MS, 1), count, size);
        let at = pair.run_until_stored("log", RecordNumber(count), Time::from_millis(200_000));
        assert!(at.is_some(), "{size}: {:?} {:?}", pair.sending().status(), pair.sending().events);
        pair.assert_whole(count);
    }
    let (there, back) = path(20 * MS, Duration::ZERO, 0);
    let mut pair = Pair::with_outbox(1, there, back, |outbox| {
        for _ in 0..100 {
            outbox.append("log", &[&b""[..]; 50]).expect("memory");
        }
    });
    assert!(pair.run_until_stored("log", RecordNumber(5_000), Time::from_millis(10_000)).is_some());
    assert_eq!(pair.stored("log"), vec![Some(Vec::new()); 5_000]);
}

#[test]
fn either_end_is_killed_again_and_again() {
    for seed in 0..6 {
        let mut pair = Pair::with_backlog(seed, path(40 * MS, 3 * MS, 1), 3_000, 1_013);
        for round in 0..20 {
            let until = pair.world.now() + 150 * MS;
            pair.run_until_stored("log", RecordNumber(3_000), until);
            if (seed + round).is_multiple_of(2) { pair.kill_receiver() } else { pair.kill_sender() }
        }
        let at = pair.run_until_stored("log", RecordNumber(3_000), Time::from_millis(60_000));
        assert!(at.is_some(), "seed {seed}: {:?} {:?}", pair.sending().status(), pair.sending().events);
        assert_eq!(
            pair.sending()
                .events
                .iter()
                .filter(|e| !matches!(
                    e,
                    stayfast_link::Event::RunChanged | stayfast_link::Event::Address(_) | stayfast_link::Event::Resolve
                ))
                .count(),
            0,
            "seed {seed}: {:?}",
            pair.sending().events
        );
        pair.assert_whole(3_000);
    }
}

#[test]
fn a_killed_receiver_stores_the_next_record_within_a_few_round_trips() {
    let mut waits = Vec::new();
    for seed in 0..10 {
        let mut pair = Pair::with_backlog(seed, path(40 * MS, 3 * MS, 1), 20_000, 1_013);
        for _ in 0..10 {
            let until = pair.world.now() + 70 * MS;
            pair.world.run_until(until);
            pair.kill_receiver();
            let (killed, before) = (pair.world.now(), pair.stored_count("log"));
            while pair.stored_count("log") == before && pair.world.now() < killed + 5_000 * MS {
                let until = pair.world.now() + MS;
                pair.world.run_until(until);
            }
            waits.push(pair.world.now() - killed);
        }
    }
    waits.sort();
    assert!(waits[waits.len() / 2] < 170 * MS, "median {:?}", waits[waits.len() / 2]);
    assert!(waits[waits.len() - 1] < 1_000 * MS, "maximum {:?}", waits[waits.len() - 1]);
}

#[test]
fn a_slow_store_holds_credit_and_nothing_is_lost() {
    let mut pair = Pair::with_backlog(5, path(20 * MS, Duration::ZERO, 0), 20_000, 1_013);
    pair.receiving().store_delay = 300 * MS;
    let at = pair.run_until_stored("log", RecordNumber(20_000), Time::from_millis(100_000));
    assert!(at.is_some(), "{:?}", pair.sending().status());
    pair.assert_whole(20_000);
}

/// More runs under one key than the receiver keeps apart: who is forgotten asks, and is told.
#[test]
fn a_dozen_stores_under_one_key() {
    const STORES: u8 = 12;
    const COUNT: u64 = 3_000;
    let (ours, theirs) = (Identity::generate(&mut Entropy::new(1, 1)), Identity::generate(&mut Entropy::new(1, 2)));
    let mut world = World::new(1);
    let inbox = Memory::new(1);
    let part = Part::Receiver(None);
    let receiver = Machine::new(Time::ZERO, part, (&theirs, ours.public()), inbox, Entropy::new(1, 3));
    let receiver = world.add("hub", RECEIVER, receiver);
    world.node_mut(receiver).expect("it runs").store_delay = 2 * MS;
    let senders: Vec<_> = (0..STORES)
        .map(|i| {
            let mut outbox = Memory::new(100 + u64::from(i));
            for _ in 0..COUNT {
                outbox.append("log", &[&[7; 5]]).expect("memory");
            }
            let entropy = Entropy::new(1, 10 + u64::from(i));
            let machine = Machine::new(Time::ZERO, Part::Sender(RECEIVER), (&ours, theirs.public()), outbox, entropy);
            let sender = world.add("edge", SocketAddr::from(([10, 0, 1, i], 4711)), machine);
            let line = || Path::new().delay(MS / 20);
            let (there, back) = (line(), line());
            world.connect(sender, receiver, there);
            world.connect(receiver, sender, back);
            sender
        })
        .collect();
    world.run_until(Time::from_millis(60_000));
    for (i, sender) in senders.into_iter().enumerate() {
        let machine = world.node(sender).expect("it runs");
        assert_eq!(machine.stored.get("log"), Some(&RecordNumber(COUNT)), "store {i}: {:?}", machine.status());
    }
}

/// Headers of IPv4 and UDP.
const IP_UDP: u64 = 28;

/// The path's MTU shrinks in mid-flow (quinn 1540).
#[test]
fn a_path_that_shrinks_is_back_within_a_few_round_trips() {
    // PPPoE, tunnels, the least of IPv6, and less than anything that was probed.
    for takes in [1_464, 1_444, 1_392, 1_372, 1_232, 1_200] {
        let (there, back) = path(20 * MS, 3 * MS, 0);
        let mut pair = Pair::with_backlog(6, (there.mtu(1_500), back), 30_000, 1_013);
        pair.world.run_until(Time::from_millis(1_500));
        assert_eq!(pair.sending().status().datagram, 1_472);
        assert!(pair.world.set(pair.paths[0], Element::Mtu(takes + IP_UDP)));
        let (shrank, mut rates) = (pair.world.now(), Vec::new());
        for _ in 0..30 {
            let (before, until) = (pair.stored_count("log"), pair.world.now() + 50 * MS);
            pair.world.run_until(until);
            let stored = pair.stored_count("log") - before;
            rates.push(stored * 1_013 * 8 / 50_000);
        }
        // Two probe timeouts, and what was lost counts as lost: 0.7 of the window is left.
        let back = rates.windows(4).position(|rates| rates.iter().sum::<u64>() >= 4 * 30);
        assert!(back.is_some_and(|row| row <= 5), "{takes}: {rates:?} Mbit/s each 50 ms since {shrank:?}");
        assert_eq!(u64::from(pair.sending().status().datagram), takes);
        assert!(pair.run_until_stored("log", RecordNumber(30_000), Time::from_millis(20_000)).is_some());
        pair.assert_whole(30_000);
    }
}

/// The cell `mtu shrink` of `tests/plans/cells.toml`, record by record.
#[test]
fn two_seconds_after_the_mtu_shrank_nine_tenths_of_the_goodput_are_back_and_nothing_is_lost() {
    let (there, back) = path(20 * MS, Duration::ZERO, 0);
    let mut pair = Pair::with_backlog(1, (there.mtu(1_500), back.mtu(1_500)), 40_000, 1_013);
    let stored_in = |pair: &mut Pair, time: Duration| {
        let (before, until) = (pair.stored_count("log"), pair.world.now() + time);
        pair.world.run_until(until);
        pair.stored_count("log") - before
    };
    pair.world.run_until(Time::from_millis(3_000));
    let usual = stored_in(&mut pair, 2_000 * MS) / 2;
    for path in pair.paths {
        assert!(pair.world.set(path, Element::Mtu(1_280)));
    }
    stored_in(&mut pair, 1_000 * MS);
    let second = stored_in(&mut pair, 1_000 * MS);
    assert!(10 * second >= 9 * usual, "{second} records in the second second, {usual} in each before");
    assert!(pair.world.path(pair.paths[0]).is_some_and(|path| path.stats().oversize > 0));
    assert!(pair.run_until_stored("log", RecordNumber(40_000), Time::from_millis(20_000)).is_some());
    pair.assert_whole(40_000);
}
