//! Operations, oracle and checks: property tests, fuzz targets and corpus replay all call them.
//!
//! ```
//! use stayfast_frame::fuzzing::{Op, check, check_bytes};
//! check(&[Op::Ping, Op::Padding(3), Op::Challenge([7; 8]), Op::Send { room: 5, flip: (0, 0x80) }]);
//! check_bytes(&[0x80, 0, 0x40, 2, 0, 0xff]);
//! ```

use crate::{
    AckHeader, AckRange, EcnCounts, Frame, Full, Header, Part, Refusal, Stored, StoredKind, Writer, decode, varint,
};
use alloc::vec::Vec;
use alloc::{string::String, vec};
use arbitrary::{Arbitrary, Unstructured};
use core::time::Duration;
use stayfast_units::{Lineage, PacketNumber, RecordNumber, StoreId, Time};

impl crate::Entropy for stayfast_testkit::SplitMix {
    fn fill(&mut self, bytes: &mut [u8]) {
        stayfast_testkit::SplitMix::fill(self, bytes);
    }
}

/// A number of any size: `.0 >> (.1 % 64)`, or, if `.1` is 240 or more, one of the four around 2^62, from where on a
/// varint ends.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Number(pub u64, pub u8);

impl Number {
    const fn get(self) -> u64 {
        if self.1 < 240 { self.0 >> (self.1 % 64) } else { (1 << 62) - 3 + self.0 % 4 }
    }

    const fn record(self) -> RecordNumber {
        RecordNumber(self.get())
    }
}

/// A body: `.1 % 2048` bytes of a pattern, from its byte `.0` on; if `.1` is 57,344 or more, as many times 61 as the rest by 4.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Body(pub u8, pub u16);

static PATTERN: [u8; 0x900] = {
    let (mut pattern, mut i) = ([0; 0x900], 0);
    while i < pattern.len() {
        pattern[i] = (i * 31 + i / 251) as u8;
        i += 1;
    }
    pattern
};

impl Body {
    fn bytes(self) -> &'static [u8] {
        let len = if self.1 < 0xe000 { self.1 % 0x800 } else { self.1 % 4 * 61 };
        &PATTERN[usize::from(self.0)..][..usize::from(len)]
    }
}

/// One thing done to a packet that is being written: variants and fields are those of [`Frame`] where nothing else is
/// said.
#[derive(Arbitrary, Clone, Debug)]
#[allow(missing_docs)]
pub enum Op {
    /// The packet is complete. The next has room for `(room % 1500) >> (room % 8)` bytes: small packets are full
    /// soon. Before that, a byte of this one is changed and it is read again.
    Send {
        room: u16,
        flip: (u16, u8),
    },
    PadTo(u16),
    Padding(u8),
    Ping,
    ImmediateAck,
    /// `ranges`: gap, length, time.
    Ack {
        delay: Number,
        ecn: Option<[Number; 3]>,
        top: Number,
        #[arbitrary(with = list)]
        ranges: Vec<(u8, Number, Number)>,
    },
    AckFrequency {
        sequence: Number,
        every: Number,
        max_delay: Number,
    },
    /// As many as fit, and the beginning of one that does not. `cut`: the last is cut wherever it ends. The alias is
    /// `alias >> (alias % 32)`, for small ones are written in another way.
    Records {
        alias: u32,
        first: Number,
        offset: u16,
        #[arbitrary(with = list)]
        bodies: Vec<Body>,
        cut: bool,
    },
    Part {
        alias: u32,
        number: Number,
        offset: u16,
        body: Body,
    },
    /// A part that is cut by hand, so that it may be wrong.
    RawPart {
        number: Number,
        total: u16,
        offset: u16,
        body: Body,
    },
    Open {
        alias: u32,
        store: u64,
        name: String,
    },
    Origin {
        alias: u32,
        first: Number,
        lineage: u64,
        parent: u64,
    },
    Gap {
        alias: u32,
        first: Number,
        count: Number,
    },
    Expired {
        alias: u32,
        first: Number,
        count: Number,
    },
    Heard {
        alias: u32,
        next: Number,
    },
    Stored {
        alias: u32,
        next: Number,
        lineage: u64,
        level: u8,
        tombstone: bool,
    },
    Query {
        nonce: Number,
        alias: u32,
        trimmed: Number,
    },
    Answer {
        nonce: Number,
        alias: u32,
        next: Number,
        lineage: u64,
    },
    Credit {
        link: Number,
        alias: u32,
        from: Number,
        bytes: Number,
    },
    Blocked {
        alias: u32,
        number: Number,
        bytes: Number,
    },
    Refused {
        alias: u32,
        number: Number,
        reason: u8,
    },
    Fenced {
        alias: u32,
        number: Number,
        theirs: u64,
        yours: u64,
    },
    Challenge([u8; 8]),
    Response([u8; 8]),
    Key(Body),
    Skipped {
        ty: u8,
        len: u8,
    },
}

/// As many elements as a byte says, mostly few. (The generator of `Vec` ends with probability 1/2 after each.)
fn list<'a, T: Arbitrary<'a>>(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Vec<T>> {
    let len: u8 = bytes.arbitrary()?;
    (0..len >> (len % 8)).map(|_| bytes.arbitrary()).collect()
}

/// Operations from the bytes of a fuzzer, until they run out: enough to fill packets.
///
/// ```
/// use stayfast_frame::fuzzing::{check, ops};
/// check(&ops(&[0x5a; 100]));
/// ```
pub fn ops(bytes: &[u8]) -> Vec<Op> {
    let mut bytes = Unstructured::new(bytes);
    core::iter::from_fn(|| if bytes.is_empty() { None } else { bytes.arbitrary().ok() }).collect()
}

/// What a packet must be read as.
#[derive(Debug)]
enum Said<'a> {
    Frame(Frame<'a>),
    Ack(AckHeader, Vec<AckRange>),
    Records(Vec<Part<'a>>),
}

fn reaches_the_end(part: &Part<'_>) -> bool {
    part.offset as usize + part.bytes.len() == part.total as usize
}

impl PartialEq<Frame<'_>> for Said<'_> {
    fn eq(&self, frame: &Frame<'_>) -> bool {
        match (self, frame) {
            (Said::Frame(said), frame) => said == frame,
            (Said::Ack(header, ranges), Frame::Ack(ack)) => {
                *header == AckHeader { delay: ack.delay, ecn: ack.ecn }
                    && ranges[0].last == ack.largest
                    && ranges[0].received == ack.received
                    && ranges.len() == ack.ranges().len()
                    && ack.ranges().eq(ranges.iter().copied())
            }
            (Said::Records(parts), Frame::Records(records)) => {
                (records.alias, records.first, records.offset) == (parts[0].alias, parts[0].number, parts[0].offset)
                    && records.iter().eq(parts.iter().copied())
            }
            _ => false,
        }
    }
}

/// Writes the frames of `ops` into packets and reads them back: what was written is read, what cannot be written
/// leaves no trace, and each refusal is due.
///
/// # Panics
/// If one of these is not so.
pub fn check(ops: &[Op]) {
    let mut buf = vec![0xaa; 1_500];
    let mut ops = ops;
    let mut room = 1_175;
    while !ops.is_empty() {
        buf.fill(0xaa);
        let mut writer = Writer::new(&mut buf[..room]);
        let mut said = Vec::new();
        let len = ops.iter().position(|op| matches!(op, Op::Send { .. })).unwrap_or(ops.len());
        for op in &ops[..len] {
            let (open, at) = (is_open(&said), said.len());
            step(op, room, &mut writer, &mut said);
            if open && said.get(at).is_some_and(|said| !matches!(said, Said::Frame(Frame::Padding(_)))) {
                said.insert(at, Said::Frame(Frame::Padding(1)));
            }
        }
        let written = writer.written();
        let packet = &mut buf[..written];
        let frames: Vec<_> = decode(packet).collect::<Result<_, _>>().expect("what was written can be read");
        assert!(said.len() == frames.len() && said.iter().zip(&frames).all(|(s, f)| s == f), "{said:?} != {frames:?}");
        check_bytes(packet);
        if let Some(Op::Send { room: next, flip: (at, bits) }) = ops.get(len) {
            let at = usize::from(*at) % packet.len().max(1);
            packet.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bits);
            check_bytes(packet);
            room = usize::from((next % 1_500) >> (next % 8));
        }
        ops = ops.get(len + 1..).unwrap_or_default();
    }
}

/// Arbitrary bytes never panic, as a datagram or as a payload, and the frames they are read as, if written again,
/// take no more room and are read as the same frames.
///
/// # Panics
/// If one of these is not so.
pub fn check_bytes(bytes: &[u8]) {
    if let Ok(header) = Header::parse(bytes) {
        assert!(bytes.len() >= header.kind().overhead());
    }
    let mut again = vec![0; bytes.len()];
    let mut writer = Writer::new(&mut again);
    let good = || decode(bytes).map_while(Result::ok);
    for frame in good() {
        assert_eq!(writer.put(&frame), Ok(()), "{frame:?}");
    }
    let len = writer.written();
    assert!(good().map(Ok).eq(decode(&again[..len])), "{:?}", good().collect::<Vec<_>>());
    assert!(decode(bytes).skip_while(Result::is_ok).count() <= 1, "nothing follows an error");
}

/// More records could follow, so a zero stands before another frame.
fn is_open(said: &[Said<'_>]) -> bool {
    matches!(said.last(), Some(Said::Records(parts)) if parts.last().is_some_and(reaches_the_end))
}

fn step<'a>(op: &'a Op, end: usize, writer: &mut Writer<'_>, said: &mut Vec<Said<'a>>) {
    let (before, room) = (writer.written(), writer.remaining());
    match op {
        Op::Send { .. } => {}
        Op::PadTo(len) => {
            let len = usize::from(*len);
            writer.pad_to(len);
            let cut = matches!(said.last(), Some(Said::Records(_))) && !is_open(said);
            let end = if cut { before } else { end };
            assert_eq!(writer.written(), before.max(len.min(end)));
            pad(said, writer.written() - before);
        }
        Op::Ack { delay, ecn, top, ranges } => ack(*delay, *ecn, *top, ranges, writer, said),
        Op::Records { alias, first, offset, bodies, cut } => {
            records(alias >> (alias % 32), *first, (*offset).into(), bodies, *cut, writer, said);
        }
        Op::Part { alias, number, offset, body } => {
            part(*alias, number.record(), (*offset).into(), *body, writer, said)
        }
        op => {
            let Some(frame) = op.frame() else { return };
            let written = writer.put(&frame);
            if !op.legal() {
                assert_eq!(written, Err(Full), "{op:?}");
            } else if written.is_err() {
                let mut large = [0; 3_000];
                let mut large = Writer::new(&mut large);
                assert_eq!(large.put(&frame), Ok(()), "{op:?}");
                assert!(large.written() > room, "{op:?} would fit");
            }
            match (written, frame) {
                (Err(Full), _) => assert_eq!(writer.written(), before),
                (Ok(()), Frame::Padding(len)) => pad(said, len),
                (Ok(()), frame) => said.push(Said::Frame(frame)),
            }
        }
    }
}

/// Zeros are one frame, however many times they were written.
fn pad(said: &mut Vec<Said<'_>>, more: usize) {
    match said.last_mut() {
        _ if more == 0 => {}
        Some(Said::Frame(Frame::Padding(len))) => *len += more,
        _ => said.push(Said::Frame(Frame::Padding(more))),
    }
}

fn ack(
    delay: Number,
    ecn: Option<[Number; 3]>,
    top: Number,
    ranges: &[(u8, Number, Number)],
    writer: &mut Writer<'_>,
    said: &mut Vec<Said<'_>>,
) {
    let ecn = ecn.map(|[ect0, ect1, ce]| EcnCounts { ect0: ect0.get(), ect1: ect1.get(), ce: ce.get() });
    let header = AckHeader { delay: Duration::from_micros(delay.get()), ecn };
    let mut down = Vec::new();
    let mut last = top.get();
    for (gap, len, time) in ranges {
        let Some(first) = last.checked_sub(len.get()) else { break };
        let received = Time::from_nanos(time.get() / 1_000 * 1_000);
        down.push(AckRange { first: PacketNumber(first), last: PacketNumber(last), received });
        let Some(below) = first.checked_sub(u64::from(*gap) + 2) else { break };
        last = below;
    }
    let most = down.len().min(crate::MAX_ACK_RANGES);
    let fits = (1..=most).rev().find(|&n| ack_len(header, &down[..n]).is_some_and(|len| len <= writer.remaining()));
    let (before, zero) = (writer.written(), usize::from(is_open(said)));
    let written = writer.ack(header, down.iter().copied());
    assert_eq!(written, if down.is_empty() { Ok(0) } else { fits.ok_or(Full) });
    let ranges = written.unwrap_or(0);
    down.truncate(ranges);
    assert_eq!(writer.written() - before, ack_len(header, &down).map_or(0, |len| zero + len));
    if ranges > 0 {
        let delay = Duration::from_micros(delay.get().min(varint::MAX));
        said.push(Said::Ack(AckHeader { delay, ..header }, down));
    }
}

/// Length of an ACK frame, term by term; `None` if there is no such frame.
fn ack_len(header: AckHeader, ranges: &[AckRange]) -> Option<usize> {
    let AckRange { first, last, received } = *ranges.first()?;
    let delay = (header.delay.as_micros() as u64).min(varint::MAX);
    let mut fields = vec![last.0, delay, received.as_micros(), 0, last.0 - first.0];
    for pair in ranges.windows(2) {
        let earlier = i128::from(pair[0].received.as_micros()) - i128::from(pair[1].received.as_micros());
        let folded = if earlier < 0 { -earlier * 2 - 1 } else { earlier * 2 };
        fields.extend([pair[0].first.0 - pair[1].last.0 - 2, pair[1].last.0 - pair[1].first.0, folded as u64]);
    }
    fields.extend(header.ecn.into_iter().flat_map(|ecn| [ecn.ect0, ecn.ect1, ecn.ce]));
    fields.iter().all(|&field| field <= varint::MAX).then(|| 1 + fields.into_iter().map(varint::len).sum::<usize>())
}

fn records<'a>(
    alias: u32,
    first: Number,
    offset: usize,
    bodies: &[Body],
    cut: bool,
    writer: &mut Writer<'_>,
    said: &mut Vec<Said<'a>>,
) {
    let (before, room, zero) = (writer.written(), writer.remaining(), usize::from(is_open(said)));
    let offset = offset % (bodies.first().map_or(0, |body| body.bytes().len()) + 2);
    let from = if offset == 0 { 0 } else { varint::len(offset as u64) };
    let number = (1..8).find(|&len| first.get() >> (8 * len) == 0).unwrap_or(8);
    let header = 1 + if alias < 7 { 0 } else { varint::len(alias.into()) } + number + from;
    let Ok(mut records) = writer.records(alias, first.record(), offset as u32) else {
        assert!(room <= header || first.get() >= varint::MAX);
        return assert_eq!(writer.written(), before);
    };
    assert!(room > header, "begun without room for one record");
    let (mut len, mut parts, mut at, mut last) = (header, Vec::<Part<'_>>::new(), offset, None);
    let mut before_it = None;
    for (i, body) in bodies.iter().enumerate() {
        let (number, body) = (RecordNumber(first.get() + i as u64), body.bytes());
        let said_again = before_it.replace(body.len()) == Some(body.len());
        let prefix = len + if said_again { 1 } else { varint::len(body.len() as u64 + 2) };
        let good = number.0 < varint::MAX && (at == 0 || at < body.len());
        let rest = body.get(at..).unwrap_or_default();
        let part = |n| Part { alias, number, total: body.len() as u32, offset: at as u32, bytes: &rest[..n] };
        let fits = good && prefix + rest.len() <= room;
        if !cut || i + 1 < bodies.len() {
            assert_eq!(records.push(body).is_ok(), fits);
            if fits {
                parts.push(part(rest.len()));
                (len, at) = (prefix + rest.len(), 0);
                continue;
            }
        }
        let most = room.checked_sub(prefix).map(|room| room.min(rest.len()));
        let taken = most.filter(|&n| good && n >= rest.len().min(16));
        last = Some((body, taken));
        if let Some(n) = taken {
            parts.push(part(n));
            len = prefix + n;
        }
        break;
    }
    match last {
        None => assert_eq!(records.finish(), parts.len()),
        Some((body, taken)) => assert_eq!(records.cut(body), taken),
    }
    assert!(writer.remaining() == 0 || parts.last().is_none_or(reaches_the_end), "something could follow");
    assert_eq!(writer.written() - before, if parts.is_empty() { 0 } else { zero + len });
    if !parts.is_empty() {
        said.push(Said::Records(parts));
    }
}

fn part<'a>(
    alias: u32,
    number: RecordNumber,
    offset: usize,
    body: Body,
    writer: &mut Writer<'_>,
    said: &mut Vec<Said<'a>>,
) {
    let body = body.bytes();
    let (total, offset) = (body.len(), offset % (body.len() + 2));
    let rest = total.saturating_sub(offset);
    let fields = [alias.into(), number.0, total as u64, offset as u64];
    let header = 1 + fields.map(varint::len).iter().sum::<usize>();
    let room = writer.remaining();
    let most = (1..=rest).rev().find(|&n| header + varint::len(n as u64) + n <= room);
    let expected = most.filter(|&n| n >= rest.min(16) && number.0 < varint::MAX);
    let before = writer.written();
    let taken = writer.part(alias, number, total as u32, offset as u32, body);
    assert_eq!(taken, expected);
    match taken {
        None => assert_eq!(writer.written(), before),
        Some(n) => {
            let bytes = &body[offset..offset + n];
            said.push(Said::Frame(Frame::Part(Part {
                alias,
                number,
                total: total as u32,
                offset: offset as u32,
                bytes,
            })));
        }
    }
}

impl Op {
    /// The frame, if it is one that [`Writer::put`] takes.
    fn frame(&self) -> Option<Frame<'_>> {
        Some(match *self {
            Op::Send { .. } | Op::PadTo(_) | Op::Ack { .. } | Op::Records { .. } | Op::Part { .. } => return None,
            Op::Padding(len) => Frame::Padding(len.into()),
            Op::Ping => Frame::Ping,
            Op::ImmediateAck => Frame::ImmediateAck,
            Op::AckFrequency { sequence, every, max_delay } => Frame::AckFrequency {
                sequence: sequence.get(),
                every: every.get(),
                max_delay: Duration::from_micros(max_delay.get() >> 2),
            },
            Op::RawPart { number, total, offset, body } => Frame::Part(Part {
                alias: 1,
                number: number.record(),
                total: total.into(),
                offset: offset.into(),
                bytes: body.bytes(),
            }),
            Op::Open { alias, store, ref name } => Frame::Open { alias, store: StoreId(store), name },
            Op::Origin { alias, first, lineage, parent } => {
                Frame::Origin { alias, first: first.record(), lineage: Lineage(lineage), parent: Lineage(parent) }
            }
            Op::Gap { alias, first, count } => Frame::Gap { alias, first: first.record(), count: count.get() },
            Op::Expired { alias, first, count } => Frame::Expired { alias, first: first.record(), count: count.get() },
            Op::Heard { alias, next } => Frame::Heard { alias, next: next.record() },
            Op::Stored { alias, next, lineage, level, tombstone } => Frame::Stored(Stored {
                alias,
                next: next.record(),
                lineage: Lineage(lineage),
                level,
                kind: if tombstone { StoredKind::Tombstone } else { StoredKind::Record },
            }),
            Op::Query { nonce, alias, trimmed } => {
                Frame::Query { nonce: nonce.get(), alias, trimmed: trimmed.record() }
            }
            Op::Answer { nonce, alias, next, lineage } => {
                Frame::Answer { nonce: nonce.get(), alias, next: next.record(), lineage: Lineage(lineage) }
            }
            Op::Credit { link, alias, from, bytes } => {
                Frame::Credit { link: link.get(), alias, from: from.record(), bytes: bytes.get() }
            }
            Op::Blocked { alias, number, bytes } => {
                Frame::Blocked { alias, number: number.record(), bytes: bytes.get() }
            }
            Op::Refused { alias, number, reason } => {
                let reason = [Refusal::Unauthorized, Refusal::TooLarge, Refusal::TooManyStreams, Refusal::Rejected]
                    [usize::from(reason % 4)];
                Frame::Refused { alias, number: number.record(), reason }
            }
            Op::Fenced { alias, number, theirs, yours } => {
                Frame::Fenced { alias, number: number.record(), theirs: Lineage(theirs), yours: Lineage(yours) }
            }
            Op::Challenge(data) => Frame::PathChallenge(data),
            Op::Response(data) => Frame::PathResponse(data),
            Op::Key(body) => Frame::Key(body.bytes()),
            Op::Skipped { ty, len } => Frame::Skipped { ty, len: len.into() },
        })
    }

    /// Whether docs/wire.md allows that frame.
    fn legal(&self) -> bool {
        let fit = |numbers: &[Number]| numbers.iter().all(|n| n.get() < 1 << 62);
        let span = |first: Number, count: u64| count > 0 && u128::from(first.get()) + u128::from(count) < 1 << 62;
        match *self {
            Op::AckFrequency { sequence, every, .. } => fit(&[sequence, every]),
            Op::RawPart { number, total, offset, body } => {
                let len = body.bytes().len();
                span(number, 1) && len > 0 && usize::from(offset) + len <= usize::from(total)
            }
            Op::Open { ref name, .. } => (1..=255).contains(&name.len()),
            Op::Gap { first, count, .. } | Op::Expired { first, count, .. } => span(first, count.get()),
            Op::Stored { next, level, .. } => fit(&[next]) && level < 4,
            Op::Query { nonce, trimmed, .. } => fit(&[nonce, trimmed]),
            Op::Answer { nonce, next, .. } => fit(&[nonce, next]),
            Op::Credit { link, from, bytes, .. } => fit(&[link, from, bytes]),
            Op::Blocked { number, bytes, .. } => fit(&[number, bytes]),
            Op::Origin { first: number, .. }
            | Op::Heard { next: number, .. }
            | Op::Refused { number, .. }
            | Op::Fenced { number, .. } => fit(&[number]),
            Op::Key(body) => body.bytes().len() <= 128,
            Op::Skipped { ty, .. } => (0x40..0x80).contains(&ty),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Long enough to fill packets; the generator of bytes stops at 64 by itself.
    fn bytes() -> impl bolero::ValueGenerator<Output = Vec<u8>> {
        bolero::produce::<Vec<u8>>().with().len(0..2_048_usize)
    }

    #[test]
    fn frames_come_back_as_they_were_written() {
        static STEPS: AtomicUsize = AtomicUsize::new(0);
        bolero::check!().with_test_time(Duration::from_secs(2)).with_generator(bytes()).for_each(|bytes: &Vec<u8>| {
            let ops = ops(bytes);
            STEPS.fetch_add(ops.len(), Relaxed);
            check(&ops);
        });
        // A generator may fail in silence, and then nothing is tested.
        assert!(STEPS.load(Relaxed) > 1_000);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm() {
        bolero::check!()
            .with_test_time(Duration::from_secs(1))
            .with_generator(bytes())
            .for_each(|bytes: &Vec<u8>| check_bytes(bytes));
    }
}
