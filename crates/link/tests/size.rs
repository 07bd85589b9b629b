//! The size of packets (docs/pmtud.md): a path is searched, shrinks, and grows, while records flow.

mod common;

use common::{Bench, Dice, MS, Plan, SECOND, at};
use stayfast_frame::{Header, Kind};
use stayfast_link::Config;
use stayfast_store::Outbox;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A sender whose outbox holds `count` records of `size` bytes when it begins.
fn backlog(seed: u64, a: Plan, count: u64, size: usize) -> Bench {
    let mut bench = Bench::new(seed, a, Plan::receiver());
    for body in bodies(count, size) {
        bench.a.outbox.append("log", &[&body]).expect("taken");
    }
    bench.a.restart(bench.now, |_| {});
    bench
}

fn bodies(count: u64, size: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| n.to_be_bytes().into_iter().cycle().take(size).collect()).collect()
}

/// A path that takes datagrams of up to so many bytes, from the sender to the receiver.
fn narrow(bench: &mut Bench) -> Rc<Cell<usize>> {
    let mtu = Rc::new(Cell::new(usize::MAX));
    let limit = mtu.clone();
    bench.passes = Box::new(move |flight| flight.to != at(2) || flight.bytes.len() <= limit.get());
    mtu
}

fn datagram(bench: &Bench) -> u16 {
    bench.a.node.status(bench.a.peer).expect("there").datagram
}

fn window(bench: &Bench) -> u64 {
    bench.a.node.status(bench.a.peer).expect("there").window
}

#[test]
fn the_first_probe_goes_alone_and_raises_the_size() {
    let mut bench = backlog(1, Plan::sender(), 2_000, 900);
    let large: Rc<RefCell<Vec<(usize, bool)>>> = Rc::default();
    let seen = large.clone();
    bench.passes = Box::new(move |flight| {
        if flight.bytes.len() > 1_200 {
            seen.borrow_mut().push((flight.bytes.len(), flight.alone));
        }
        true
    });
    assert!(bench.until(SECOND, |bench| datagram(bench) == 1_472));
    assert_eq!(large.borrow()[0], (1_472, true));
    assert!(bench.until(SECOND, |bench| bench.a.is_stored("log", 2_000)));
    assert!(large.borrow().iter().any(|(_, alone)| !alone), "data in batches of full size");
    assert_eq!(bench.stored("log"), bodies(2_000, 900));
}

#[test]
fn lost_probes_cost_no_window() {
    let mut bench = backlog(2, Plan::sender(), 4_000, 900);
    narrow(&mut bench).set(1_392);
    let mut before = 0;
    let mut shrank = false;
    let done = bench.until(10 * SECOND, |bench| {
        shrank |= window(bench) < before;
        before = window(bench);
        bench.a.is_stored("log", 4_000)
    });
    let status = bench.a.node.status(bench.a.peer).expect("there");
    assert!(done && !shrank, "{status:?}");
    assert_eq!((status.datagram, status.lost), (1_392, 5), "one for each larger step: {status:?}");
}

#[test]
fn a_path_that_shrinks_holds_the_flow_for_a_few_round_trips() {
    for (seed, mtu, size) in [(3, 1_392, 900), (4, 1_232, 900), (5, 1_200, 16_013), (6, 1_452, 40_000)] {
        let count = 10_000_000 / size as u64;
        // The wire has no rate, so the ledger bounds the window.
        let config = Config { ledger: 64, ..Config::default() };
        let mut bench = backlog(seed, Plan { config, ..Plan::sender() }, count, size);
        let limit = narrow(&mut bench);
        bench.run(300 * MS);
        assert_eq!(datagram(&bench), 1_472);
        limit.set(mtu);
        bench.run(20 * MS);
        let stored = |bench: &Bench| bench.stored("log").len();
        let (shrank, before) = (bench.now, stored(&bench));
        assert!(bench.until(SECOND, |bench| stored(bench) > before + 1));
        assert!(bench.now - shrank < 250 * MS, "{mtu}: {:?} until records arrive again", bench.now - shrank);
        assert!(bench.until(3 * SECOND, |bench| usize::from(datagram(bench)) == mtu), "{}", datagram(&bench));
        assert!(bench.until(60 * SECOND, |bench| bench.a.is_stored("log", count)), "{:?}", bench.a.events);
        assert_eq!(bench.stored("log"), bodies(count, size), "parts are cut anew");
    }
}

#[test]
fn a_path_that_grows_is_used_ten_minutes_later() {
    // A window of a few packets, so that there is something to send for as long as a round takes.
    let config = Config { ledger: 64, ..Config::default() };
    let mut bench = backlog(7, Plan { config, ..Plan::sender() }, 3_000, 900);
    let limit = narrow(&mut bench);
    limit.set(1_412);
    let more = bodies(3_000, 900);
    let more: Vec<&[u8]> = more.iter().map(Vec::as_slice).collect();
    let flow = |bench: &mut Bench| {
        bench.a.append(bench.now, "log", &more);
        bench.run(2 * SECOND);
        datagram(bench)
    };
    // The three rounds come while there is something to send.
    assert_eq!([(); 3].map(|()| flow(&mut bench)), [1_412; 3]);
    limit.set(1_500);
    bench.run(300 * SECOND);
    assert_eq!(flow(&mut bench), 1_412);
    bench.run(300 * SECOND);
    assert_eq!(flow(&mut bench), 1_472);
}

#[test]
fn nobody_probes_who_has_nothing_that_needs_it() {
    let mut bench = backlog(8, Plan::sender(), 1, 100);
    assert!(bench.until(SECOND, |bench| bench.a.is_stored("log", 1)));
    for _ in 0..20 {
        bench.run(SECOND);
        bench.a.append(bench.now, "log", &[b"small"]);
    }
    bench.run(SECOND);
    assert!(bench.seen.iter().all(|bytes| bytes.len() <= 300));
}

#[test]
fn the_search_can_be_turned_off() {
    let config = Config { max_datagram: 0, ..Config::default() };
    let mut bench = backlog(9, Plan { config, ..Plan::sender() }, 2_000, 900);
    assert!(bench.until(SECOND, |bench| bench.a.is_stored("log", 2_000)));
    assert_eq!(bench.seen.iter().map(Vec::len).max(), Some(1_200));
}

#[test]
fn packets_that_leave_the_path_are_small() {
    let mut bench = backlog(10, Plan::sender(), 20_000, 900);
    let mut dice = Dice(10);
    let largest: Rc<Cell<usize>> = Rc::default();
    let seen = largest.clone();
    bench.passes = Box::new(move |flight| {
        if Header::parse(&flight.bytes).is_ok_and(|header| header.kind() == Kind::Init) {
            seen.set(seen.get().max(flight.bytes.len()));
        }
        !dice.draw().is_multiple_of(20)
    });
    for _ in 0..10 {
        bench.run(200 * MS);
        bench.b.restart(bench.now, |_| {});
    }
    assert!(bench.until(60 * SECOND, |bench| bench.a.is_stored("log", 20_000)));
    assert!((1_000..=1_200).contains(&largest.get()), "{}", largest.get());
    assert_eq!(bench.stored("log").len(), 20_000);
}

#[test]
fn a_probe_that_could_not_be_sent_is_due_again() {
    let mut bench = backlog(11, Plan::sender(), 2_000, 900);
    narrow(&mut bench).set(1_200);
    assert!(bench.until(10 * SECOND, |bench| bench.a.is_stored("log", 2_000)));
    bench.run(1_000 * SECOND);
    let more = bodies(100, 900);
    bench.a.append(bench.now, "log", &more.iter().map(Vec::as_slice).collect::<Vec<_>>());
    bench.a.work(bench.now);
    let mut buf = [0; 4 * 1_472];
    let data = bench.a.node.poll_transmit(bench.now, &mut buf, 4).expect("much to send");
    assert_eq!((data.len, data.segment), (4 * 1_200, 1_200));
    for _ in 0..3 {
        let probe = bench.a.node.poll_transmit(bench.now, &mut buf, 4).expect("due");
        assert!(probe.len > 1_200 && probe.len == probe.segment && probe.first == probe.last, "{probe:?}");
        bench.a.node.send_failed(bench.now, &probe);
        assert_eq!(bench.a.node.status(bench.a.peer).expect("there").in_flight, 4 * 1_200);
    }
}

#[test]
fn random_loss_keeps_the_size() {
    for seed in 20..24 {
        let mut bench = backlog(seed, Plan::sender(), 3_000, 900);
        assert!(bench.until(SECOND, |bench| datagram(bench) == 1_472));
        let mut dice = Dice(seed);
        let small: Rc<Cell<u32>> = Rc::default();
        let seen = small.clone();
        bench.passes = Box::new(move |flight| {
            let ladder = [1_464, 1_452, 1_444, 1_412, 1_392, 1_372, 1_232];
            // A walk down the ladder would send nearly every step, alone.
            seen.set(seen.get() + u32::from(flight.alone && ladder.contains(&flight.bytes.len())));
            dice.draw() % 100 >= 15
        });
        assert!(bench.until(600 * SECOND, |bench| bench.a.is_stored("log", 3_000)), "{:?}", bench.a.events);
        assert!(small.get() < 4, "{}", small.get());
        assert_eq!(bench.stored("log"), bodies(3_000, 900));
    }
}
