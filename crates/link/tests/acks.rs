//! How many acknowledgements a flow costs.

mod common;

use common::{Bench, DELAY, MS, Plan, SECOND, at};
use stayfast_store::Outbox;
use stayfast_units::RecordNumber;
use std::cell::Cell;
use std::rc::Rc;

/// The owner of a node hands in all that has arrived before it asks what to send: that is answered once.
#[test]
fn a_train_that_arrives_together_is_acknowledged_once() {
    let mut bench = Bench::new(1, Plan::sender(), Plan::receiver());
    for n in 0..500_u64 {
        bench.a.outbox.append("log", &[&n.to_be_bytes().repeat(100)]).expect("taken");
    }
    bench.a.restart(bench.now, |_| {});
    assert!(bench.until(SECOND, |bench| bench.a.is_stored("log", 500)));
    bench.run(SECOND);
    // STORED would be another packet.
    bench.b.stalled = true;
    let counts: Rc<Cell<(u32, u32)>> = Rc::default();
    let seen = counts.clone();
    bench.passes = Box::new(move |flight| {
        let (there, back) = seen.get();
        seen.set(if flight.to == at(2) { (there + 1, back) } else { (there, back + 1) });
        true
    });
    let records: Vec<Vec<u8>> = (0..20).map(|n| vec![n; 1_300]).collect();
    bench.a.append(bench.now, "log", &records.iter().map(Vec::as_slice).collect::<Vec<_>>());
    bench.run(2 * DELAY + MS);
    assert!((18..=20).contains(&counts.get().0), "{counts:?}");
    assert_eq!(counts.get().1, 1, "{counts:?}");
}

/// While more is coming, the sender does not wait for STORED, and each asks it for an acknowledgement.
#[test]
fn stored_is_told_once_in_a_quarter_of_a_round_trip_while_more_comes() {
    let mut bench = Bench::new(1, Plan::sender(), Plan::receiver());
    for n in 0..3_000_u64 {
        bench.a.outbox.append("log", &[&n.to_be_bytes().repeat(100)]).expect("taken");
    }
    bench.a.restart(bench.now, |_| {});
    let (mut took, mut steps, mut last) = (0, 0, RecordNumber::ZERO);
    while last < RecordNumber(3_000) {
        bench.run(MS);
        took += 1;
        let status = bench.a.node.status(bench.a.peer).expect("there");
        let stored = status.streams.first().map_or(last, |stream| stream.stored);
        steps += u32::from(stored > last);
        last = stored;
    }
    let quarters = took / ((2 * DELAY / 4).as_millis() as u32);
    assert!(steps <= quarters + 2, "{steps} in {quarters} quarters of a round trip");
}
