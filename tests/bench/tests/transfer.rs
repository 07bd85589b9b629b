//! What is measured is a whole transfer: a few records of each size, by both transports.
#![forbid(unsafe_code)]

use stayfast_bench::load::{Append, Load};
use stayfast_bench::{ours, quic};

fn loads() -> impl Iterator<Item = Load> {
    [(61, Append::Handle), (1_013, Append::Store), (16_013, Append::Handle)].into_iter().map(|(size, append)| Load {
        size,
        warmup: 20,
        records: 300,
        datagram: 1_200,
        ahead: 256 << 10,
        append,
    })
}

#[test]
fn stayfast_transfers_all_records() {
    for load in loads() {
        let outcome = ours::run(&load).unwrap();
        assert_eq!((outcome.records, outcome.bytes), (300, 300 * load.size as u64));
        assert!(outcome.datagrams as usize * 1_200 > 320 * load.size, "they fit into the datagrams");
    }
}

#[test]
fn quinn_transfers_all_records() {
    for load in loads() {
        let outcome = quic::run(&load).unwrap();
        assert_eq!((outcome.records, outcome.bytes), (300, 300 * load.size as u64));
        assert!(outcome.datagrams as usize * 1_200 > 320 * load.size, "they fit into the datagrams");
    }
}
