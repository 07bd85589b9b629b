//! Records put in order.
#![forbid(unsafe_code)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use stayfast_ranges::{Limits, Reassembler};
use stayfast_units::RecordNumber;
use std::hint::black_box;

const LIMITS: Limits = Limits { bytes: 8 << 20, gaps: 256, record: 1 << 20 };
/// Records that come between two batches.
const BATCH: u64 = 256;
/// Records of one packet, which arrive in order whatever the packets do.
const PACKET: u64 = 16;

/// The numbers of one batch as they arrive: packets in order, or each two exchanged.
fn arrivals(reordered: bool) -> Vec<u64> {
    let packets = 0..BATCH / PACKET;
    packets
        .flat_map(|p| {
            let p = if reordered { p ^ 1 } else { p };
            p * PACKET..(p + 1) * PACKET
        })
        .collect()
}

/// A batch arrives and is taken. Returns the number after it.
fn batch(stream: &mut Reassembler, first: u64, arrivals: &[u64], body: &[u8]) -> u64 {
    for n in arrivals {
        black_box(stream.record(RecordNumber(first + n), body)).expect("within all limits");
    }
    while let Some(batch) = stream.take(BATCH as usize, 1 << 20) {
        stream.recycle(black_box(batch));
    }
    stream.next().0
}

fn benches(c: &mut Criterion) {
    for size in [61, 1_013] {
        let body = vec![7; size];
        let mut group = c.benchmark_group(format!("ranges/{size}B"));
        group.throughput(Throughput::Elements(BATCH));
        for (name, reordered) in [("in order", false), ("reordered", true)] {
            let arrivals = arrivals(reordered);
            let mut stream = Reassembler::new(RecordNumber(0), LIMITS);
            let mut first = batch(&mut stream, 0, &arrivals, &body);
            assert_eq!(first, BATCH);
            group.bench_function(name, |b| b.iter(|| first = batch(&mut stream, first, &arrivals, &body)));
        }
        group.finish();
    }
}

criterion_group!(ranges, benches);
criterion_main!(ranges);
