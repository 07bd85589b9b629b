//! Steady traffic allocates nothing: neither in order nor reordered, in whole records nor in parts.

use allocation_counter::measure;
use stayfast_ranges::{Limits, RangeSet, Reassembler};
use stayfast_units::RecordNumber;

/// What one packet carries.
#[derive(Clone)]
enum Piece {
    Whole(u64, usize),
    Part(u64, usize, usize, usize),
}

/// Cuts records of `len` bytes into packets of 1,175 B, as a sender does: whole ones, then a part up to the edge.
fn packets(records: u64, len: usize) -> Vec<Vec<Piece>> {
    let (mut packets, mut packet, mut room) = (Vec::new(), Vec::new(), 1_175);
    for n in 0..records {
        let mut offset = 0;
        while offset < len {
            let bytes = room.min(len - offset);
            packet.push(if bytes == len { Piece::Whole(n, len) } else { Piece::Part(n, len, offset, bytes) });
            (offset, room) = (offset + bytes, room - bytes);
            if room < 64 || offset < len {
                packets.push(std::mem::take(&mut packet));
                room = 1_175;
            }
        }
    }
    packets.push(packet);
    packets
}

/// Moves each packet back by up to `most` places. Every `lost`-th comes 200 packets late.
fn reorder(packets: &[Vec<Piece>], most: u64, lost: u64) -> Vec<Vec<Piece>> {
    let mut state = 1_u64;
    let mut arrivals: Vec<(u64, &Vec<Piece>)> = Vec::new();
    for (i, packet) in packets.iter().enumerate() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let late = if lost > 0 && (i as u64 % lost) == lost - 1 { 200 } else { 0 };
        arrivals.push((i as u64 + (state >> 33) % (most + 1) + late, packet));
    }
    arrivals.sort_by_key(|(at, _)| *at);
    arrivals.into_iter().map(|(_, packet)| packet.clone()).collect()
}

/// Feeds the packets in `warm_up` and ten more rounds, numbers going on; allocations in the last ten.
fn run(arrivals: &[Vec<Piece>], records: u64, warm_up: u64, batch: usize) -> u64 {
    let body = vec![7_u8; 1 << 20];
    let mut stream = Reassembler::new(RecordNumber(0), Limits { bytes: 8 << 20, gaps: 1_000, record: 1 << 20 });
    let mut taken = 0;
    let mut round = |r: u64| {
        for packet in arrivals {
            for piece in packet {
                match *piece {
                    Piece::Whole(n, len) => stream.record(RecordNumber(r * records + n), &body[..len]),
                    Piece::Part(n, total, offset, len) => {
                        stream.part(RecordNumber(r * records + n), total as u32, offset as u32, &body[..len])
                    }
                }
                .expect("within the limits");
            }
            while stream.held() >= batch
                && let Some(done) = stream.take(4_096, 256 << 10)
            {
                taken += done.len() as u64;
                stream.recycle(done);
            }
        }
        while let Some(done) = stream.take(4_096, 256 << 10) {
            taken += done.len() as u64;
            stream.recycle(done);
        }
    };
    (0..warm_up).for_each(&mut round);
    let count = measure(|| (warm_up..warm_up + 10).for_each(&mut round)).count_total;
    assert_eq!(taken, (warm_up + 10) * records);
    count
}

#[test]
fn records_in_order() {
    for len in [61, 1_013, 3_000, 100_000] {
        let records = (2_000_000 / len as u64).min(5_000);
        for batch in [0, 100_000] {
            assert_eq!(run(&packets(records, len), records, 1, batch), 0, "{len} B");
        }
    }
}

#[test]
fn records_out_of_order() {
    for len in [61, 1_013, 3_000, 100_000] {
        let records = (2_000_000 / len as u64).min(5_000);
        for (jitter, lost) in [(2, 0), (60, 0), (0, 100), (10, 97)] {
            for batch in [0, 100_000] {
                let arrivals = reorder(&packets(records, len), jitter, lost);
                assert_eq!(run(&arrivals, records, 40, batch), 0, "{len} B, {jitter} late, one in {lost} lost");
            }
        }
    }
}

#[test]
fn a_set_of_packet_numbers() {
    let mut set = RangeSet::new(64);
    let mut round = |r: u64| {
        for n in 0..1_000 {
            // Every second number first, in runs of sixty, then those between.
            let n = r * 1_000 + n / 60 * 60 + if n % 60 < 30 { n % 60 * 2 } else { n % 60 * 2 - 59 };
            set.insert(n).expect("thirty gaps at most");
        }
        set.remove_below(r * 1_000);
    };
    (0..2).for_each(&mut round);
    assert_eq!(measure(|| (2..10).for_each(round)).count_total, 0);
}
