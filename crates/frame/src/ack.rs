use crate::frame::ty;
use crate::reader::Reader;
use crate::writer::{Writer, micros};
use crate::{DecodeError, Full, varint};
use core::iter::FusedIterator;
use core::time::Duration;
use stayfast_units::{PacketNumber, Time};

/// Most ranges in one ACK frame. The count of those after the first so takes one byte, always.
pub const MAX_ACK_RANGES: usize = 64;

/// Packets that have arrived with each ECN mark, since the start of the run (RFC 9000, section 19.3.2).
///
/// ```
/// use stayfast_frame::EcnCounts;
/// assert_eq!(EcnCounts::default(), EcnCounts { ect0: 0, ect1: 0, ce: 0 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Marked ECT(0).
    pub ect0: u64,
    /// Marked ECT(1).
    pub ect1: u64,
    /// Marked CE: congestion.
    pub ce: u64,
}

/// Packets from `first` to `last`, both included.
///
/// ```
/// use stayfast_frame::AckRange;
/// use stayfast_units::{PacketNumber, Time};
/// let one = AckRange { first: PacketNumber(4), last: PacketNumber(4), received: Time::from_millis(7) };
/// assert_eq!(one.first, one.last);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRange {
    /// The smallest number.
    pub first: PacketNumber,
    /// The largest number.
    pub last: PacketNumber,
    /// When `last` arrived, on the receiver's clock.
    pub received: Time,
}

/// What an ACK frame says beside its ranges; see [`Writer::ack`].
///
/// ```
/// use core::time::Duration;
/// use stayfast_frame::AckHeader;
/// let header = AckHeader { delay: Duration::from_micros(250), ecn: None };
/// assert_ne!(header, AckHeader::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckHeader {
    /// How long ago the largest packet arrived, when this is sent.
    pub delay: Duration,
    /// ECN counts, if the receiver can see the marks.
    pub ecn: Option<EcnCounts>,
}

impl AckHeader {
    /// Writes the frame; see [`Writer::ack`].
    pub(crate) fn write(
        self,
        w: &mut Writer<'_>,
        first: AckRange,
        further_down: impl Iterator<Item = AckRange>,
    ) -> Result<usize, Full> {
        let beyond = first.last.0.checked_sub(first.first.0).ok_or(Full)?;
        let ecn = self.ecn.map(|ecn| [ecn.ect0, ecn.ect1, ecn.ce]);

        w.byte(if ecn.is_some() { ty::ACK_ECN } else { ty::ACK })?;
        w.varints(&[first.last.0, micros(self.delay), first.received.as_micros()])?;
        let count_at = w.written();
        w.varints(&[0, beyond])?;

        let after = ecn.map_or(0, |counts| counts.into_iter().map(varint::len).sum());
        let (mut before, mut further) = (first, 0);
        for range in further_down.take(MAX_ACK_RANGES - 1) {
            if write_further(w, before, range, after).is_err() {
                break;
            }
            (before, further) = (range, further + 1);
        }
        w.varints(ecn.as_ref().map_or(&[], |counts| &counts[..]))?;
        // At most 63: the one-byte varint is the byte itself.
        w.patch(count_at, &[further]);
        Ok(usize::from(further) + 1)
    }
}

/// Writes a range below `before`, and leaves `after` bytes of room.
fn write_further(w: &mut Writer<'_>, before: AckRange, range: AckRange, after: usize) -> Result<(), Full> {
    w.whole(|w| {
        let gap = before.first.0.checked_sub(range.last.0).and_then(|n| n.checked_sub(2)).ok_or(Full)?;
        let len = range.last.0.checked_sub(range.first.0).ok_or(Full)?;
        w.varints(&[gap, len, zigzag(before.received.as_micros(), range.received.as_micros())])?;
        if w.remaining() < after { Err(Full) } else { Ok(()) }
    })
}

/// How much earlier `time` is than `before`, signs folded: 0, -1, 1, -2 become 0, 1, 2, 3.
/// Both are microseconds of a [`Time`], below 2^55, so it fits a varint.
const fn zigzag(before: u64, time: u64) -> u64 {
    if before >= time { (before - time) << 1 } else { ((time - before) << 1) - 1 }
}

/// The inverse: the time that is `folded` earlier than `before`. `None` before the start of the clock.
const fn unzigzag(before: u64, folded: u64) -> Option<u64> {
    if folded & 1 == 0 { before.checked_sub(folded >> 1) } else { before.checked_add((folded >> 1) + 1) }
}

/// The moment `micros` microseconds after the start of the clock, if a [`Time`] can hold it.
fn time(micros: u64) -> Result<Time, DecodeError> {
    micros.checked_mul(1_000).map(Time::from_nanos).ok_or(DecodeError::Malformed)
}

/// An acknowledgement: packets whose content this run holds.
///
/// ```
/// use stayfast_frame::{Ack, Frame, decode};
/// // Largest 9, 1 further range, 1 packet beyond the largest; then a gap of 2, 3 packets, 1 us earlier.
/// let payload = [0x02, 9, 0, 20, 1, 1, 1, 2, 2];
/// let Some(Ok(Frame::Ack(ack))) = decode(&payload).next() else { panic!() };
/// let ranges = ack.ranges().map(|r| (r.first.0, r.last.0, r.received.as_micros()));
/// assert!(ranges.eq([(8, 9, 20), (3, 5, 19)]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// The largest packet number acknowledged.
    pub largest: PacketNumber,
    /// How long after its arrival this was sent; whole microseconds.
    pub delay: Duration,
    /// When it arrived, on the receiver's clock; whole microseconds.
    pub received: Time,
    /// ECN counts, if the receiver can see the marks.
    pub ecn: Option<EcnCounts>,
    /// Packets beyond the largest in the first range.
    beyond: u64,
    /// The ranges after the first; `read` has seen that they can be read and go down.
    further: &'a [u8],
    count: u8,
}

impl<'a> Ack<'a> {
    pub(crate) fn read(r: &mut Reader<'a>, ecn: bool) -> Result<Ack<'a>, DecodeError> {
        let largest = PacketNumber(r.varint()?);
        let (delay, received) = (r.micros()?, time(r.varint()?)?);
        let count = r.varint()?;
        if count >= MAX_ACK_RANGES as u64 {
            return Err(DecodeError::Limit);
        }
        let beyond = r.varint()?;
        let first = largest.0.checked_sub(beyond).map(PacketNumber).ok_or(DecodeError::Malformed)?;
        let before = *r;
        let mut range = AckRange { first, last: largest, received };
        for _ in 0..count {
            range = read_further(r, range)?;
        }
        let further = r.since(before);
        let ecn = match ecn {
            true => Some(EcnCounts { ect0: r.varint()?, ect1: r.varint()?, ce: r.varint()? }),
            false => None,
        };
        Ok(Ack { largest, delay, received, ecn, beyond, further, count: count as u8 })
    }

    /// The ranges, newest first: at least one, at most [`MAX_ACK_RANGES`].
    pub const fn ranges(&self) -> AckRanges<'a> {
        let first = PacketNumber(self.largest.0.saturating_sub(self.beyond));
        AckRanges {
            next: Some(AckRange { first, last: self.largest, received: self.received }),
            left: self.count,
            reader: Reader { rest: self.further },
        }
    }
}

/// Equal if they say the same, whichever form of varint they say it in.
impl PartialEq for Ack<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.delay, self.ecn) == (other.delay, other.ecn) && self.ranges().eq(other.ranges())
    }
}

impl Eq for Ack<'_> {}

/// Reads a range below `before`.
fn read_further(r: &mut Reader<'_>, before: AckRange) -> Result<AckRange, DecodeError> {
    let (gap, len, earlier) = (r.varint()?, r.varint()?, r.varint()?);
    // Varints stay below 2^62: the sum cannot overflow.
    let last = before.first.0.checked_sub(gap + 2).ok_or(DecodeError::Malformed)?;
    let first = last.checked_sub(len).ok_or(DecodeError::Malformed)?;
    let received = unzigzag(before.received.as_micros(), earlier).ok_or(DecodeError::Malformed)?;
    Ok(AckRange { first: PacketNumber(first), last: PacketNumber(last), received: time(received)? })
}

/// Iterator over the ranges of an [`Ack`], newest first. Made by [`Ack::ranges`].
#[derive(Clone)]
pub struct AckRanges<'a> {
    next: Option<AckRange>,
    left: u8,
    reader: Reader<'a>,
}

impl Iterator for AckRanges<'_> {
    type Item = AckRange;

    fn next(&mut self) -> Option<AckRange> {
        let range = self.next.take()?;
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            self.next = read_further(&mut self.reader, range).ok();
        }
        Some(range)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = usize::from(self.left) + usize::from(self.next.is_some());
        (len, Some(len))
    }
}

impl ExactSizeIterator for AckRanges<'_> {}
impl FusedIterator for AckRanges<'_> {}
