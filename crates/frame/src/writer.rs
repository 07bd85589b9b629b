use crate::frame::ty;
use crate::{Ack, AckHeader, AckRange, Frame, Full, Part, RecordsWriter, Stored, varint};
use core::mem;
use core::time::Duration;
use stayfast_units::RecordNumber;

/// A record is not cut for less than this, bytes: each cut costs a header.
pub const MIN_PART: usize = 16;

/// Writes frames to the payload of a packet, in place.
///
/// Every operation writes a whole frame or nothing, and what it wrote, [`decode`](crate::decode) reads.
///
/// ```
/// use stayfast_frame::{Frame, Full, Writer};
///
/// let mut payload = [0xff; 4];
/// let mut writer = Writer::new(&mut payload);
/// writer.put(&Frame::Ping)?;
/// assert_eq!(writer.put(&Frame::PathResponse([0; 8])), Err(Full));
/// assert_eq!((writer.written(), writer.remaining()), (1, 3));
/// writer.pad_to(3);
/// assert_eq!(writer.written(), 3);
/// assert_eq!(payload, [0x01, 0x00, 0x00, 0xff]);
/// # Ok::<(), Full>(())
/// ```
#[derive(Debug)]
pub struct Writer<'a> {
    buf: &'a mut [u8],
    len: usize,
    /// A RECORDS frame stands at the end: records go on until a zero, so one comes before another frame.
    open: bool,
}

impl<'a> Writer<'a> {
    /// An empty payload that may grow to the length of `buf`.
    pub const fn new(buf: &'a mut [u8]) -> Writer<'a> {
        Writer { buf, len: 0, open: false }
    }

    /// Bytes left for another frame.
    pub const fn remaining(&self) -> usize {
        (self.buf.len() - self.len).saturating_sub(self.open as usize)
    }

    /// Bytes written: the length of the payload so far.
    pub const fn written(&self) -> usize {
        self.len
    }

    /// Writes one frame.
    ///
    /// # Errors
    /// [`Full`]: it does not fit, or `decode` would refuse it.
    pub fn put(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        frame.check().map_err(|_| Full)?;
        match *frame {
            Frame::Padding(len) => self.pad(len),
            _ => self.whole(|w| w.frame(frame)),
        }
    }

    /// Begins a RECORDS frame with what follows byte `offset` of record `first`.
    ///
    /// # Errors
    /// [`Full`]: not even one empty record fits, or no record can have the number.
    pub fn records(&mut self, alias: u32, first: RecordNumber, offset: u32) -> Result<RecordsWriter<'_, 'a>, Full> {
        RecordsWriter::new(self, alias, first, offset)
    }

    /// Writes a PART frame with as much of `body`, the whole record of `total` bytes, from `offset` on as fits.
    /// Returns how many bytes it took; `None`, and nothing written, if those would be fewer than [`MIN_PART`] and
    /// not the rest of the record, or if there is no rest.
    ///
    /// ```
    /// use stayfast_frame::Writer;
    /// use stayfast_units::RecordNumber;
    ///
    /// let (mut payload, body) = ([0; 100], [7; 150]);
    /// let taken = Writer::new(&mut payload).part(1, RecordNumber(2), 150, 0, &body);
    /// assert_eq!(taken, Some(100 - 8));
    /// let taken = Writer::new(&mut payload).part(1, RecordNumber(2), 150, 92, &body);
    /// assert_eq!(taken, Some(58), "the rest may be short");
    /// assert_eq!(Writer::new(&mut payload[..22]).part(1, RecordNumber(2), 150, 0, &body), None);
    /// ```
    pub fn part(&mut self, alias: u32, number: RecordNumber, total: u32, offset: u32, body: &[u8]) -> Option<usize> {
        let rest = body.get(usize::try_from(offset).ok()?..)?;
        let fields = [alias.into(), number.0, total.into(), offset.into()];
        let header = 1 + fields.into_iter().map(varint::len).sum::<usize>();
        let taken = fit(self.remaining().checked_sub(header)?, rest.len())?;
        if taken < rest.len().min(MIN_PART) {
            return None;
        }
        let part = Part { alias, number, total, offset, bytes: &rest[..taken] };
        self.put(&Frame::Part(part)).ok().map(|()| taken)
    }

    /// Writes an ACK frame: `ranges` newest first, at most [`MAX_ACK_RANGES`](crate::MAX_ACK_RANGES) of them. The
    /// oldest that do not fit are dropped. Returns how many were written; 0, and no frame, if there is none.
    ///
    /// Two ranges must be apart by a packet at least, as they are in a set of ranges; the first that is not, and
    /// all after it, are dropped. Times are told in whole microseconds.
    ///
    /// ```
    /// use stayfast_frame::{AckHeader, AckRange, Writer};
    /// use stayfast_units::{PacketNumber, Time};
    ///
    /// let range = |first, last, ms| AckRange {
    ///     first: PacketNumber(first),
    ///     last: PacketNumber(last),
    ///     received: Time::from_millis(ms),
    /// };
    /// let mut payload = [0; 64];
    /// let mut writer = Writer::new(&mut payload);
    /// assert_eq!(writer.ack(AckHeader::default(), [range(8, 9, 20), range(3, 5, 10)].into_iter()), Ok(2));
    /// ```
    ///
    /// # Errors
    /// [`Full`]: not even the first range fits, or it is none (`first` above `last`).
    pub fn ack(&mut self, ack: AckHeader, mut ranges: impl Iterator<Item = AckRange>) -> Result<usize, Full> {
        let Some(first) = ranges.next() else { return Ok(0) };
        self.whole(|w| ack.write(w, first, ranges))
    }

    /// Pads to `len` bytes, or as far as there is room; does nothing if the payload is longer.
    pub fn pad_to(&mut self, len: usize) {
        let end = len.min(self.buf.len());
        if let Some(room) = self.buf.get_mut(self.len..end) {
            room.fill(ty::PADDING);
            self.open &= end == self.len;
            self.len = end;
        }
    }

    fn pad(&mut self, len: usize) -> Result<(), Full> {
        let end = self.len.checked_add(len).filter(|&end| end <= self.buf.len()).ok_or(Full)?;
        self.pad_to(end);
        Ok(())
    }

    /// Does all of `write` or nothing.
    pub(crate) fn whole<T>(&mut self, write: impl FnOnce(&mut Self) -> Result<T, Full>) -> Result<T, Full> {
        let before = self.place();
        let separated = if mem::take(&mut self.open) { self.byte(ty::PADDING) } else { Ok(()) };
        separated.and_then(|()| write(self)).inspect_err(|_| self.back(before))
    }

    /// What [`back`](Self::back) undoes everything since.
    pub(crate) const fn place(&self) -> (usize, bool) {
        (self.len, self.open)
    }

    pub(crate) fn back(&mut self, (len, open): (usize, bool)) {
        (self.len, self.open) = (len.min(self.len), open);
    }

    /// More records could follow what was written.
    pub(crate) const fn leave_open(&mut self) {
        self.open = true;
    }

    /// Nothing may follow what was written: the payload ends here.
    pub(crate) fn close(&mut self) {
        self.buf = &mut mem::take(&mut self.buf)[..self.len];
    }

    pub(crate) fn byte(&mut self, byte: u8) -> Result<(), Full> {
        self.slice(&[byte])
    }

    pub(crate) fn slice(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let room = self.buf.get_mut(self.len..self.len + bytes.len()).ok_or(Full)?;
        room.copy_from_slice(bytes);
        self.len += bytes.len();
        Ok(())
    }

    pub(crate) fn fixed(&mut self, value: u64) -> Result<(), Full> {
        self.slice(&value.to_be_bytes())
    }

    pub(crate) fn varint(&mut self, value: u64) -> Result<(), Full> {
        self.len += varint::write(&mut self.buf[self.len..], value).ok_or(Full)?;
        Ok(())
    }

    /// Several varints in a row.
    pub(crate) fn varints(&mut self, values: &[u64]) -> Result<(), Full> {
        values.iter().try_for_each(|&value| self.varint(value))
    }

    /// A length and as many bytes.
    pub(crate) fn sized(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.whole(|w| {
            w.varint(bytes.len() as u64)?;
            w.slice(bytes)
        })
    }

    /// Overwrites what was written at `at`.
    pub(crate) fn patch(&mut self, at: usize, bytes: &[u8]) {
        if let Some(old) = self.buf[..self.len].get_mut(at..at + bytes.len()) {
            old.copy_from_slice(bytes);
        }
    }

    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        match *frame {
            Frame::Padding(len) => self.pad(len),
            Frame::Ping => self.byte(ty::PING),
            Frame::Ack(ack) => self.copy_ack(&ack),
            Frame::AckFrequency { sequence, every, max_delay } => {
                self.byte(ty::ACK_FREQUENCY)?;
                self.varints(&[sequence, every, micros(max_delay)])
            }
            Frame::ImmediateAck => self.byte(ty::IMMEDIATE_ACK),
            Frame::Records(records) => {
                let mut writer = self.records(records.alias, records.first, records.offset)?;
                records.iter().try_for_each(|part| writer.piece(part.total, part.bytes))
            }
            Frame::Part(Part { alias, number, total, offset, bytes }) => {
                self.byte(ty::PART)?;
                self.varints(&[alias.into(), number.0, total.into(), offset.into()])?;
                self.sized(bytes)
            }
            Frame::Open { alias, store, name } => {
                self.byte(ty::OPEN)?;
                self.varint(alias.into())?;
                self.fixed(store.0)?;
                self.sized(name.as_bytes())
            }
            Frame::Origin { alias, first, lineage, parent } => {
                self.byte(ty::ORIGIN)?;
                self.varints(&[alias.into(), first.0])?;
                self.fixed(lineage.0)?;
                self.fixed(parent.0)
            }
            Frame::Gap { alias, first, count } => {
                self.byte(ty::GAP)?;
                self.varints(&[alias.into(), first.0, count])
            }
            Frame::Expired { alias, first, count } => {
                self.byte(ty::EXPIRED)?;
                self.varints(&[alias.into(), first.0, count])
            }
            Frame::PathChallenge(data) => {
                self.byte(ty::PATH_CHALLENGE)?;
                self.slice(&data)
            }
            Frame::PathResponse(data) => {
                self.byte(ty::PATH_RESPONSE)?;
                self.slice(&data)
            }
            Frame::Key(message) => {
                self.byte(ty::KEY)?;
                self.sized(message)
            }
            Frame::Skipped { ty, len } => {
                self.byte(ty)?;
                self.varint(len as u64)?;
                self.pad(len)
            }
            _ => self.receipt(frame),
        }
    }

    /// What the two ends tell each other about records: 0x20 to 0x27.
    fn receipt(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        match *frame {
            Frame::Heard { alias, next } => {
                self.byte(ty::HEARD)?;
                self.varints(&[alias.into(), next.0])
            }
            Frame::Stored(Stored { alias, next, lineage, level, kind }) => {
                self.byte(ty::STORED)?;
                self.varints(&[alias.into(), next.0])?;
                self.fixed(lineage.0)?;
                self.slice(&[level, kind as u8])
            }
            Frame::Query { nonce, alias, trimmed } => {
                self.byte(ty::QUERY)?;
                self.varints(&[nonce, alias.into(), trimmed.0])
            }
            Frame::Answer { nonce, alias, next, lineage } => {
                self.byte(ty::ANSWER)?;
                self.varints(&[nonce, alias.into(), next.0])?;
                self.fixed(lineage.0)
            }
            Frame::Credit { link, alias, from, bytes } => {
                self.byte(ty::CREDIT)?;
                self.varints(&[link, alias.into(), from.0, bytes])
            }
            Frame::Blocked { alias, number, bytes } => {
                self.byte(ty::BLOCKED)?;
                self.varints(&[alias.into(), number.0, bytes])
            }
            Frame::Refused { alias, number, reason } => {
                self.byte(ty::REFUSED)?;
                self.varints(&[alias.into(), number.0])?;
                self.byte(reason as u8)
            }
            Frame::Fenced { alias, number, theirs, yours } => {
                self.byte(ty::FENCED)?;
                self.varints(&[alias.into(), number.0])?;
                self.fixed(theirs.0)?;
                self.fixed(yours.0)
            }
            _ => Err(Full),
        }
    }

    fn copy_ack(&mut self, ack: &Ack<'_>) -> Result<(), Full> {
        let ranges = ack.ranges();
        let count = ranges.len();
        let header = AckHeader { delay: ack.delay, ecn: ack.ecn };
        if self.ack(header, ranges)? == count { Ok(()) } else { Err(Full) }
    }
}

/// Whole microseconds; saturates at the largest that can be written, 146,000 years.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).map_or(varint::MAX, |us| us.min(varint::MAX))
}

/// How many of `want` bytes fit into `room` bytes together with the length before them. `None`: not even zero.
pub(crate) fn fit(room: usize, want: usize) -> Option<usize> {
    [(1, 0x3f), (2, 0x3fff), (4, 0x3fff_ffff)]
        .into_iter()
        .filter_map(|(len, max)| Some(room.checked_sub(len)?.min(max).min(want)))
        .max()
}
