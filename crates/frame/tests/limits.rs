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
fn a_records_frame_holds_16_383_records() {
    let mut payload = vec![0; 20_000];
    let mut writer = Writer::new(&mut payload);
    let mut records = writer.records(0, RecordNumber(0)).unwrap();
    let pushed = (0..20_000).take_while(|_| records.push(b"").is_ok()).count();
    assert_eq!((pushed, records.finish()), (16_383, 16_383));
    let len = writer.written();
    let Some(Ok(Frame::Records(records))) = decode(&payload[..len]).next() else { panic!() };
    assert_eq!(records.iter().len(), 16_383);
}

#[test]
fn a_records_frame_that_is_begun_and_left_is_none() {
    let mut payload = [0; 20];
    let mut writer = Writer::new(&mut payload);
    drop(writer.records(7, RecordNumber(7)).unwrap());
    assert_eq!(writer.records(7, RecordNumber(7)).unwrap().finish(), 0);
    assert_eq!(writer.records(7, RecordNumber(7)).unwrap().push(&[0; 20]), Err(Full));
    assert_eq!(writer.written(), 0);
    assert!(writer.records(7, RecordNumber((1 << 62) - 1)).unwrap().push(b"").is_err(), "a number without a next");
    assert!(writer.records(7, RecordNumber(1 << 62)).is_err());
}

/// Whole records, then a part that ends where the packet ends: no byte of a packet is left over.
#[test]
fn a_part_fills_the_packet_to_its_last_byte() {
    let body = [7; 1_013];
    let mut payload = [0; ROOM];
    let mut writer = Writer::new(&mut payload);
    let mut records = writer.records(1, RecordNumber(9)).unwrap();
    assert_eq!(records.push(&body), Ok(()));
    assert_eq!(records.push(&body), Err(Full));
    records.finish();
    let taken = writer.part(1, RecordNumber(10), 1_013, 0, &body).unwrap();
    assert!(taken >= 64);
    assert_eq!(writer.remaining(), 0);
    assert!(decode(&payload).all(|frame| frame.is_ok()));
}

#[test]
fn a_record_is_not_cut_for_less_than_64_bytes() {
    let (body, mut payload) = ([7; 100], [0; 200]);
    let mut part = |room: usize, offset| Writer::new(&mut payload[..room]).part(1, RecordNumber(1), 100, offset, &body);
    let header = 1 + 1 + 1 + 2 + 1;
    assert_eq!(part(header + 2 + 63, 0), None);
    assert_eq!(part(header + 2 + 64, 0), Some(64));
    assert_eq!(part(header + 1 + 63, 37), Some(63), "the rest may be shorter");
    assert_eq!(part(header + 1 + 62, 37), None, "but must be all of it");
    assert_eq!(part(200, 100), None, "no rest");
    assert_eq!(part(200, 101), None, "beyond the end");
    assert_eq!(part(3, 0), None);
}

#[test]
fn a_record_of_61_bytes_costs_at_most_3_bytes() {
    let mut payload = [0; ROOM];
    let mut writer = Writer::new(&mut payload);
    let mut records = writer.records(63, RecordNumber(1 << 40)).unwrap();
    while records.push(&[7; 61]).is_ok() {}
    let count = usize::from(records.finish());
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
