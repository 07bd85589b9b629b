//! Every bound of the writer, at the bound.

use core::time::Duration;
use stayfast_frame::{AckHeader, AckRange, EcnCounts, Frame, Full, MAX_ACK_RANGES, Writer, decode};
use stayfast_units::{PacketNumber, RecordNumber, Time};

/// What a datagram of 1,200 bytes has for frames.
const ROOM: usize = 1_200 - 25;

fn range(first: u64, last: u64) -> AckRange {
    AckRange { first: PacketNumber(first), last: PacketNumber(last), received: Time::from_millis(last) }
}

/// One packet per range, every other one, from `top` down.
fn sparse(top: u64) -> impl Iterator<Item = AckRange> {
    (0..=top).rev().step_by(2).map(|n| range(n, n))
}

fn acked(payload: &[u8]) -> Vec<AckRange> {
    match decode(payload).next() {
        Some(Ok(Frame::Ack(ack))) => ack.ranges().collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_ack_holds_64_ranges_the_newest() {
    let mut payload = [0; ROOM];
    let mut writer = Writer::new(&mut payload);
    assert_eq!(writer.ack(AckHeader::default(), sparse(1_000)), Ok(MAX_ACK_RANGES));
    let len = writer.written();
    assert!(acked(&payload[..len]).into_iter().eq(sparse(1_000).take(64)));
}

#[test]
fn an_ack_without_room_drops_the_oldest_ranges_and_keeps_its_counts() {
    let ecn = EcnCounts { ect0: 70, ect1: 0, ce: 1 };
    let header = AckHeader { delay: Duration::from_micros(9), ecn: Some(ecn) };
    for room in 0..200_usize {
        let mut payload = vec![0; room];
        let mut writer = Writer::new(&mut payload);
        let written = writer.ack(header, sparse(60));
        let len = writer.written();
        // 9 bytes with the first range, 4 for the counts, 4 for each further range.
        let fit = room.checked_sub(9 + 4).map(|more| (1 + more / 4).min(31));
        assert_eq!(written, fit.ok_or(Full), "in {room} bytes");
        if let Ok(written) = written {
            assert!(acked(&payload[..len]).into_iter().eq(sparse(60).take(written)));
            let Some(Ok(Frame::Ack(ack))) = decode(&payload[..len]).next() else { unreachable!() };
            assert_eq!((ack.delay, ack.ecn), (header.delay, Some(ecn)));
        }
    }
}

#[test]
fn ranges_that_cannot_be_told_end_the_ack() {
    let header = AckHeader::default();
    for (ranges, expected) in [
        (vec![], Ok(0)),
        (vec![range(5, 4)], Err(Full)),
        (vec![range(5, 9), range(4, 4), range(1, 1)], Ok(1)),
        (vec![range(5, 9), range(5, 5)], Ok(1)),
        (vec![range(5, 9), range(12, 14)], Ok(1)),
        (vec![range(5, 9), range(3, 2)], Ok(1)),
        (vec![range(5, 9), range(3, 3), range(0, 2)], Ok(2)),
        (vec![range(5, 9), range(3, 3), range(0, 1)], Ok(3)),
    ] {
        let mut payload = [0; ROOM];
        let mut writer = Writer::new(&mut payload);
        assert_eq!(writer.ack(header, ranges.iter().copied()), expected, "{ranges:?}");
        let len = writer.written();
        if let Ok(1..) = expected {
            assert!(acked(&payload[..len]).iter().eq(&ranges[..expected.unwrap()]));
        } else {
            assert_eq!(len, 0);
        }
    }
}

#[test]
fn a_records_frame_that_is_begun_and_left_is_none() {
    let mut payload = [0; 20];
    let mut writer = Writer::new(&mut payload);
    drop(writer.records(7, RecordNumber(7), 0).unwrap());
    assert_eq!(writer.records(7, RecordNumber(7), 0).unwrap().finish(), 0);
    assert_eq!(writer.records(7, RecordNumber(7), 0).unwrap().push(&[0; 20]), Err(Full));
    assert_eq!(writer.written(), 0);
    assert!(writer.records(7, RecordNumber((1 << 62) - 1), 0).is_err(), "a number without a next");
    assert!(writer.records(7, RecordNumber(1 << 62), 0).is_err());
}

/// Drained packet by packet, a stream of records of 1,013 bytes leaves no byte of a packet over, and each costs
/// 4 bytes, 2 for the offset, 2 for the first length, and 1 for each record after the first.
#[test]
fn a_run_of_records_fills_its_packets_to_the_last_byte() {
    const FIRST: u64 = 1 << 20;
    let body: Vec<u8> = (0..1_013).map(|i| i as u8).collect();
    let (mut number, mut offset, mut cost, mut records_in) = (FIRST, 0, 0, 0);
    for _ in 0..100 {
        let mut payload = [0; 1_447];
        let mut writer = Writer::new(&mut payload);
        let (from, before) = (offset, number);
        let mut records = writer.records(1, RecordNumber(number), offset).unwrap();
        while records.push(&body).is_ok() {
            (number, offset) = (number + 1, 0);
        }
        let cut = records.cut(&body);
        offset += cut.unwrap_or(0) as u32;
        let len = writer.written();
        assert!(len > 1_447 - 18 && (cut.is_none() || writer.remaining() == 0));
        let Some(Ok(Frame::Records(records))) = decode(&payload[..len]).next() else { panic!() };
        let parts: Vec<_> = records.iter().collect();
        assert_eq!((parts[0].number.0, parts[0].offset), (before, from));
        assert!(parts.iter().all(|part| part.bytes == &body[part.offset as usize..][..part.bytes.len()]));
        cost += len - parts.iter().map(|part| part.bytes.len()).sum::<usize>();
        records_in += parts.len();
    }
    assert!(cost <= 100 * 7 + records_in, "{cost} bytes");
    assert_eq!(number, FIRST + 141);
}

/// A record that is cut is the end of its payload; one that is whole is followed by a zero before another frame.
#[test]
fn what_may_follow_records() {
    let mut payload = [0; 90];
    let mut writer = Writer::new(&mut payload);
    writer.records(1, RecordNumber(9), 0).unwrap().push(b"a").unwrap();
    assert_eq!((writer.written(), writer.remaining()), (4, 85));
    assert_eq!(writer.put(&Frame::PathChallenge([1; 8])), Ok(()));
    assert_eq!(writer.written(), 4 + 1 + 9);
    assert_eq!(writer.records(1, RecordNumber(10), 0).unwrap().cut(&[7; 100]), Some(72));
    assert_eq!((writer.remaining(), writer.put(&Frame::Ping)), (0, Err(Full)));
    let mut kinds = decode(&payload);
    assert!(matches!(kinds.next(), Some(Ok(Frame::Records(_)))));
    assert_eq!(kinds.next(), Some(Ok(Frame::Padding(1))));
}

/// A part, too, ends where the packet ends.
#[test]
fn a_part_fills_the_packet_to_its_last_byte() {
    let body = [7; 1_013];
    let mut payload = [0; ROOM];
    let mut writer = Writer::new(&mut payload);
    let mut records = writer.records(1, RecordNumber(9), 0).unwrap();
    assert_eq!(records.push(&body), Ok(()));
    assert_eq!(records.push(&body), Err(Full));
    assert_eq!(records.finish(), 1);
    let taken = writer.part(1, RecordNumber(10), 1_013, 0, &body).unwrap();
    assert!(taken >= 64);
    assert_eq!(writer.remaining(), 0);
    assert!(decode(&payload).all(|frame| frame.is_ok()));
}

#[test]
fn a_record_is_not_cut_for_less_than_16_bytes() {
    let (body, mut payload) = ([7; 100], [0; 200]);
    let mut part = |room: usize, offset| Writer::new(&mut payload[..room]).part(1, RecordNumber(1), 100, offset, &body);
    let header = 1 + 1 + 1 + 2 + 1;
    assert_eq!(part(header + 1 + 15, 0), None);
    assert_eq!(part(header + 1 + 16, 0), Some(16));
    assert_eq!(part(header + 2 + 15, 85), Some(15), "the rest may be shorter");
    assert_eq!(part(header + 2 + 14, 85), None, "but must be all of it");
    assert_eq!(part(200, 100), None, "no rest");
    assert_eq!(part(200, 101), None, "beyond the end");
    assert_eq!(part(3, 0), None);
}

#[test]
fn a_record_of_61_bytes_costs_at_most_3_bytes() {
    let mut payload = [0; ROOM];
    let mut writer = Writer::new(&mut payload);
    let mut records = writer.records(63, RecordNumber(1 << 40), 0).unwrap();
    while records.push(&[7; 61]).is_ok() {}
    let count = records.finish();
    assert!(writer.written() <= count * (61 + 3), "{} bytes for {count}", writer.written());
}

#[test]
fn padding_stops_at_the_end_and_never_shortens() {
    let mut payload = [0xff; 10];
    let mut writer = Writer::new(&mut payload);
    writer.put(&Frame::Ping).unwrap();
    writer.pad_to(0);
    assert_eq!(writer.written(), 1);
    assert_eq!(writer.put(&Frame::Padding(10)), Err(Full));
    assert_eq!(writer.put(&Frame::Padding(usize::MAX)), Err(Full));
    writer.pad_to(usize::MAX);
    assert_eq!((writer.written(), writer.remaining()), (10, 0));
    assert_eq!(payload, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}
