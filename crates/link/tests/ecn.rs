//! Explicit congestion notification (docs/link.md), between two nodes: who is marked, and what a path makes of it.

mod common;

use common::{Bench, MS, Plan, SECOND, at};
use stayfast_link::{Ecn, Status};
use stayfast_store::Outbox;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

const ECT0: u8 = 0b10;
const CE: u8 = 0b11;

/// A sender whose outbox holds `count` records when it begins.
fn backlog(seed: u64, count: u64) -> Bench {
    let mut bench = Bench::new(seed, Plan::sender(), Plan::receiver());
    for n in 0..count {
        bench.a.outbox.append("log", &[&n.to_be_bytes().repeat(100)]).expect("taken");
    }
    bench.a.restart(bench.now, |_| {});
    bench
}

fn status(bench: &Bench) -> Status {
    bench.a.node.status(bench.a.peer).expect("there")
}

/// What the middle of the path makes of the bits of what goes to the receiver; `None`: it is dropped.
fn through(bench: &mut Bench, mut middle: impl FnMut(u8) -> Option<u8> + 'static) {
    bench.passes = Box::new(move |flight| {
        if flight.to != at(2) {
            assert_eq!(flight.ecn, 0, "who only answers marks nothing");
            return true;
        }
        middle(flight.ecn).is_some_and(|bits| {
            flight.ecn = bits;
            true
        })
    });
}

#[test]
fn data_is_marked_from_the_first_answer_on() {
    let mut bench = backlog(1, 3_000);
    let seen: Rc<RefCell<BTreeMap<u8, u32>>> = Rc::default();
    let counts = seen.clone();
    through(&mut bench, move |bits| {
        *counts.borrow_mut().entry(bits).or_default() += 1;
        Some(bits)
    });
    assert_eq!(status(&bench).ecn, Ecn::Untested);
    bench.run(15 * MS);
    assert_eq!(seen.borrow().get(&ECT0), None, "the first flight must get through, come what may");
    assert!(bench.until(5 * SECOND, |bench| bench.a.is_stored("log", 3_000)));
    assert_eq!((status(&bench).ecn, status(&bench).marks), (Ecn::InUse, 0));
    let (plain, marked) = (seen.borrow()[&0], seen.borrow()[&ECT0]);
    assert!(marked > 10 * plain, "{marked} of {}", marked + plain);
}

#[test]
fn a_path_that_clears_or_changes_marks_or_writes_them_itself_costs_nothing() {
    let middles: [fn(u8) -> u8; 4] =
        [|_| 0, |bits| if bits == ECT0 { 1 } else { bits }, |bits| if bits == 0 { CE } else { bits }, |_| 1];
    for middle in middles {
        let mut bench = backlog(2, 3_000);
        through(&mut bench, move |bits| Some(middle(bits)));
        let begun = bench.now;
        assert!(bench.until(5 * SECOND, |bench| bench.a.is_stored("log", 3_000)));
        let (status, took) = (status(&bench), bench.now - begun);
        assert_eq!((status.ecn, status.marks, status.lost), (Ecn::Unusable, 0, 0), "{status:?}");
        assert!(took < 400 * MS, "{took:?}");
    }
}

#[test]
fn a_path_that_drops_marked_packets_holds_a_flow_for_two_round_trips() {
    let mut bench = backlog(3, 3_000);
    through(&mut bench, |bits| Some(bits).filter(|bits| *bits == 0));
    assert!(bench.until(10 * SECOND, |bench| bench.a.is_stored("log", 3_000)), "{:?}", status(&bench));
    let status = status(&bench);
    assert_eq!((status.ecn, status.lost, status.late), (Ecn::Unusable, 10, 0), "{status:?}");
}

/// One record a second, each alone in flight: no record waits for more than a probe timeout, and only three do.
#[test]
fn sparse_records_on_a_path_that_drops_marked_packets_are_late_three_times() {
    let mut bench = Bench::new(4, Plan::sender(), Plan::receiver());
    through(&mut bench, |bits| Some(bits).filter(|bits| *bits == 0));
    let mut waits = Vec::new();
    for n in 1..=20_u64 {
        bench.a.append(bench.now, "log", &[b"a reading"]);
        let begun = bench.now;
        assert!(bench.until(SECOND, |bench| bench.a.is_stored("log", n)), "{n}: {:?}", status(&bench));
        waits.push(bench.now - begun);
        bench.run(SECOND);
    }
    assert_eq!(status(&bench).ecn, Ecn::Unusable);
    assert!(waits.iter().all(|wait| *wait < 150 * MS), "{waits:?}");
    assert_eq!(waits.iter().filter(|wait| **wait > 30 * MS).count(), 3, "{waits:?}");
}

/// The route changes in mid-flow to one that drops what is marked.
#[test]
fn a_path_that_begins_to_drop_marked_packets_is_left_unmarked_within_probes() {
    let mut bench = backlog(5, 20_000);
    bench.run(200 * MS);
    assert_eq!(status(&bench).ecn, Ecn::InUse);
    through(&mut bench, |bits| Some(bits).filter(|bits| *bits == 0));
    let begun = bench.now;
    assert!(bench.until(5 * SECOND, |bench| status(bench).ecn == Ecn::Unusable), "{:?}", status(&bench));
    assert!(bench.now - begun < Duration::from_millis(700), "{:?}", bench.now - begun);
    assert!(bench.until(10 * SECOND, |bench| bench.a.is_stored("log", 20_000)), "{:?}", status(&bench));
}

#[test]
fn a_mark_of_congestion_cuts_the_window_once_a_round_trip_and_nothing_is_sent_again() {
    let mut bench = backlog(6, 20_000);
    bench.run(100 * MS);
    let before = status(&bench);
    assert_eq!((before.ecn, before.marks), (Ecn::InUse, 0));
    // All of one flight.
    through(&mut bench, |bits| Some(if bits == ECT0 { CE } else { bits }));
    bench.run(20 * MS);
    through(&mut bench, Some);
    bench.run(12 * MS);
    let after = status(&bench);
    assert!(after.marks > 20, "{after:?}");
    assert!(after.window >= before.window * 8 / 10 * 85 / 100, "once: {before:?} {after:?}");
    assert!(bench.until(10 * SECOND, |bench| bench.a.is_stored("log", 20_000)));
    let end = status(&bench);
    assert_eq!((end.lost, end.bytes_resent, end.ecn), (0, 0, Ecn::InUse), "{end:?}");
}

#[test]
fn a_receiver_that_is_killed_counts_anew_and_is_believed() {
    let mut bench = backlog(7, 20_000);
    for _ in 0..6 {
        bench.run(150 * MS);
        assert_eq!(status(&bench).ecn, Ecn::InUse);
        bench.b.restart(bench.now, |plan| plan.addresses = vec![at(1)]);
    }
    assert!(bench.until(10 * SECOND, |bench| bench.a.is_stored("log", 20_000)));
    assert_eq!(status(&bench).ecn, Ecn::InUse);
}
