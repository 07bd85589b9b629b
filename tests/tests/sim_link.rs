//! The real machines in virtual time.

use stayfast_sim::{Limit, Path};
use stayfast_store::Outbox;
use stayfast_tests::Pair;
use stayfast_units::{Rate, RecordNumber, Time};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn clean(rtt: Duration) -> (Path, Path) {
    let rate = Rate::from_bits_per_sec(50_000_000);
    let bdp = rate.bytes_in(rtt);
    (Path::new().delay(rtt / 2).rate(rate, Limit::Bytes(bdp)), Path::new().delay(rtt / 2))
}

#[test]
fn one_record_arrives_and_is_known_to_be_stored() {
    let (there, back) = clean(20 * MS);
    let mut pair = Pair::new(1, there, back);
    pair.sending().append("orders", &[b"order 1"]);
    let at = pair.run_until_stored("orders", RecordNumber(1), Time::from_millis(1_000));
    assert!(at.is_some_and(|at| at < Time::from_millis(21)), "stored after {at:?}, {:?}", pair.sending().status());
    assert_eq!(pair.stored("orders"), [Some(b"order 1".to_vec())]);
}

#[test]
fn a_backlog_drains_at_the_rate_of_the_path() {
    let (there, back) = clean(20 * MS);
    let body = [7; 1_013];
    let records: Vec<&[u8]> = vec![&body; 100];
    let mut pair = Pair::with_outbox(1, there, back, |outbox| {
        for _ in 0..300 {
            outbox.append("log", &records).expect("memory");
        }
    });
    let at = pair.run_until_stored("log", RecordNumber(30_000), Time::from_millis(20_000)).expect("all is stored");
    let mbit = 30_000.0 * 1_013.0 * 8.0 / at.as_nanos() as f64 * 1_000.0;
    println!("{mbit:.2} Mbit/s {:?}", pair.sending().status());
    assert!(mbit >= 45.4, "{mbit:.2} Mbit/s, {:?}", pair.sending().status());
}
