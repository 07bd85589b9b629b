//! How many acknowledgements a flow costs.

mod common;

use common::{Bench, DELAY, MS, Plan, SECOND, at};
use stayfast_store::Outbox;
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
