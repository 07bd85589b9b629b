//! Frames of a full packet: written and read.
#![forbid(unsafe_code)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use stayfast_frame::{Frame, Kind, Writer, decode};
use stayfast_units::RecordNumber;
use std::hint::black_box;

/// Payload of a full DATA packet in a datagram of 1,200 B.
const PAYLOAD: usize = 1_200 - Kind::Data.overhead();

/// Fills `payload` with whole records, and pads. Returns how many.
fn encode(payload: &mut [u8], body: &[u8]) -> usize {
    let mut writer = Writer::new(payload);
    let Ok(mut records) = writer.records(1, RecordNumber(1_000_000), 0) else { return 0 };
    while records.push(body).is_ok() {}
    let count = records.finish();
    writer.pad_to(usize::MAX);
    count
}

/// Reads all records. Returns how many, and their bytes.
fn read(payload: &[u8]) -> (usize, usize) {
    let records = decode(payload).filter_map(|frame| match frame {
        Ok(Frame::Records(records)) => Some(records),
        _ => None,
    });
    records.flat_map(|records| records.iter()).fold((0, 0), |(n, len), part| (n + 1, len + black_box(part.bytes).len()))
}

fn benches(c: &mut Criterion) {
    for size in [61, 1_013] {
        let (body, mut payload) = (vec![7; size], vec![0; PAYLOAD]);
        let count = encode(&mut payload, &body);
        assert_eq!(read(&payload), (count, count * size));
        let mut group = c.benchmark_group(format!("frame/{size}B"));
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function("encode", |b| b.iter(|| encode(black_box(&mut payload), black_box(&body))));
        group.bench_function("decode", |b| b.iter(|| read(black_box(&payload))));
        group.finish();
    }
}

criterion_group!(frame, benches);
criterion_main!(frame);
