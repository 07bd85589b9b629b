//! Each limit: taken at it, refused beyond it, and nothing has changed then.

use stayfast_ranges::{Limits, Reassembler, Refused, Taken};
use stayfast_units::RecordNumber;

const LIMITS: Limits = Limits { bytes: 1_000, gaps: 2, record: 600 };

fn n(n: u64) -> RecordNumber {
    RecordNumber(n)
}

/// Runs `f`, which must be refused for `why`, and looks for a trace of it.
fn refused(stream: &mut Reassembler, why: Refused, f: impl FnOnce(&mut Reassembler) -> Result<Taken, Refused>) {
    let state = |s: &Reassembler| (s.next(), s.held(), s.gaps(), s.footprint());
    let before = state(stream);
    assert_eq!(f(stream), Err(why));
    assert_eq!(state(stream), before);
}

#[test]
fn the_longest_record_is_taken_and_a_longer_one_refused() {
    let mut stream = Reassembler::new(n(0), LIMITS);
    refused(&mut stream, Refused::Record, |s| s.record(n(0), &[1; 601]));
    refused(&mut stream, Refused::Record, |s| s.part(n(0), 601, 0, &[1]));
    assert_eq!(stream.record(n(0), &[1; 600]), Ok(Taken::New(600)));
}

#[test]
fn bytes_are_reserved_when_a_record_begins_and_freed_when_it_is_taken() {
    let mut stream = Reassembler::new(n(0), LIMITS);
    assert_eq!(stream.part(n(0), 600, 0, &[1]), Ok(Taken::New(1)));
    assert_eq!(stream.held(), 600);
    refused(&mut stream, Refused::Bytes, |s| s.record(n(1), &[2; 401]));
    assert_eq!(stream.record(n(1), &[2; 400]), Ok(Taken::New(400)));
    refused(&mut stream, Refused::Bytes, |s| s.part(n(2), 2, 0, &[3]));
    assert_eq!(stream.record(n(2), b""), Ok(Taken::New(0)), "it needs no bytes");
    assert_eq!(stream.part(n(0), 600, 1, &[1; 599]), Ok(Taken::New(599)), "its bytes were reserved");
    assert_eq!(stream.take(10, 10_000).map(|batch| batch.len()), Some(3));
    assert_eq!(stream.held(), 0);
    assert_eq!(stream.record(n(3), &[1; 600]), Ok(Taken::New(600)));
}

#[test]
fn gaps_are_refused_beyond_the_limit_and_what_closes_them_is_not() {
    let mut stream = Reassembler::new(n(0), LIMITS);
    assert_eq!(stream.record(n(2), b"c"), Ok(Taken::New(1)));
    assert_eq!(stream.part(n(4), 4, 2, b"e"), Ok(Taken::New(1)));
    assert_eq!(stream.gaps(), 2);
    refused(&mut stream, Refused::Gaps, |s| s.record(n(6), b"g"));
    refused(&mut stream, Refused::Gaps, |s| s.part(n(4), 4, 0, b"e"));
    refused(&mut stream, Refused::Gaps, |s| s.hole(n(6)));
    assert_eq!(stream.part(n(4), 4, 1, b"e"), Ok(Taken::New(1)));
    assert_eq!(stream.part(n(3), 2, 0, b"d"), Ok(Taken::New(1)));
    assert_eq!(stream.record(n(0), b"a"), Ok(Taken::New(1)));
    assert_eq!(stream.record(n(1), b"b"), Ok(Taken::New(1)));
    assert_eq!((stream.next(), stream.gaps()), (n(3), 1));
}

#[test]
fn empty_records_and_holes_are_bounded_in_number() {
    let mut stream = Reassembler::new(n(0), LIMITS);
    for i in 0..1_024 {
        let taken = if i % 2 == 0 { stream.record(n(i), b"") } else { stream.hole(n(i)) };
        assert_eq!(taken, Ok(Taken::New(0)));
    }
    refused(&mut stream, Refused::Count, |s| s.record(n(1_024), b""));
    refused(&mut stream, Refused::Count, |s| s.hole(n(1_024)));
    refused(&mut stream, Refused::Count, |s| s.part(n(1_024), 2, 0, b"x"));
    assert_eq!(stream.take(1, 1).map(|batch| batch.len()), Some(1));
    assert_eq!(stream.hole(n(1_024)), Ok(Taken::New(0)));
}

#[test]
fn contradictions_are_refused() {
    let mut stream = Reassembler::new(n(0), LIMITS);
    stream.part(n(0), 4, 0, b"ab").unwrap();
    refused(&mut stream, Refused::Conflict, |s| s.part(n(0), 5, 2, b"c"));
    refused(&mut stream, Refused::Conflict, |s| s.record(n(0), b"abc"));
    refused(&mut stream, Refused::Conflict, |s| s.part(n(0), 4, 3, b"de"));
    refused(&mut stream, Refused::Conflict, |s| s.part(n(0), 4, 2, b""));
    refused(&mut stream, Refused::Conflict, |s| s.part(n(1), u32::MAX, u32::MAX, b"x"));
    refused(&mut stream, Refused::Conflict, |s| s.record(n(u64::MAX), b"x"));
    refused(&mut stream, Refused::Conflict, |s| s.hole(n(u64::MAX)));
    assert_eq!(stream.record(n(u64::MAX - 1), b"x"), Ok(Taken::New(1)));
}

#[test]
fn a_record_of_a_mebibyte_comes_together_backwards() {
    const LEN: usize = 1 << 20;
    let body: Vec<u8> = (0..LEN).map(|i| (i / 7) as u8).collect();
    let mut stream = Reassembler::new(n(0), Limits { bytes: 2 * LEN, gaps: 2, record: LEN });
    stream.record(n(0), b"first").unwrap();
    for start in (0..LEN).step_by(1_100).rev() {
        let end = (start + 1_100 + 7).min(LEN);
        stream.part(n(1), LEN as u32, start as u32, &body[start..end]).unwrap();
        assert_eq!(stream.next(), n(if start == 0 { 2 } else { 1 }));
    }
    assert_eq!(
        stream.take(100, usize::MAX).map(|batch| batch.bytes),
        Some(b"first".to_vec()),
        "it has a buffer of its own"
    );
    assert!(stream.take(100, 1).is_some_and(|batch| batch.bytes == body), "longer than asked for, but the only one");
}

/// A peer that makes every buffer long once, and then keeps each for a few bytes, must not add them up.
#[test]
fn buffers_that_were_long_once_do_not_add_up() {
    let limits = Limits { bytes: 1 << 20, gaps: 200, record: 1 << 20 };
    let mut stream = Reassembler::new(n(0), limits);
    for i in 0..150 {
        stream.record(stream.next(), &vec![0; 500_000]).unwrap();
        let batch = stream.take(1, 1).expect("it is in order");
        stream.recycle(batch);
        stream.record(n(1_000 + 2 * i), b"x").unwrap();
        assert!(stream.footprint() <= 4 * limits.bytes, "{} B", stream.footprint());
    }
}

/// Records that come backwards need no buffer each: runs that touch grow together, so a search stays short.
#[test]
fn a_thousand_records_backwards_are_one_batch() {
    let mut stream = Reassembler::new(n(0), Limits { bytes: 1 << 20, gaps: 1, record: 100 });
    (0..1_000).rev().for_each(|i| assert_eq!(stream.record(n(i), &[i as u8; 50]), Ok(Taken::New(50))));
    let batch = stream.take(usize::MAX, usize::MAX).expect("all are here");
    assert_eq!((batch.len(), batch.body(999)), (1_000, Some(&[231; 50][..])));
}

#[test]
fn what_was_taken_is_not_discarded_and_what_was_not_is() {
    let mut stream = Reassembler::new(n(0), LIMITS);
    stream.record(n(0), b"a").unwrap();
    stream.take(1, 1).expect("one is ready");
    stream.record(n(1), b"b").unwrap();
    stream.part(n(2), 9, 0, b"c").unwrap();
    stream.discard_from(n(2));
    assert_eq!((stream.next(), stream.held()), (n(2), 1));
    stream.discard_from(n(0));
    assert_eq!((stream.next(), stream.held()), (n(1), 0));
    stream.reset(n(40));
    assert_eq!(stream.next(), n(40));
    assert_eq!(stream.record(n(1), b"b"), Ok(Taken::Known));
}
