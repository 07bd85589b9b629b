use crate::frame::{is_span, ty};
use crate::reader::Reader;
use crate::writer::{MIN_PART, Writer};
use crate::{DecodeError, Full, Part, varint};
use core::iter::FusedIterator;
use stayfast_units::RecordNumber;

/// In place of a record's length: it is that of the record before.
const SAME: u64 = 1;
/// What is added to a length, for 0 is padding.
const LENGTH: u64 = 2;

/// A run of a stream's bytes: consecutive records, of which the first may begin before and the last may go on after.
///
/// ```
/// use stayfast_frame::{Frame, Part, decode};
/// use stayfast_units::RecordNumber;
/// let Some(Ok(Frame::Records(records))) = decode(b"\xc3\x07\x04\x07e\x04bc\x0bab").next() else { panic!() };
/// assert_eq!((records.alias, records.first, records.offset), (3, RecordNumber(7), 4));
/// let [rest, whole, cut] = records.iter().collect::<Vec<_>>()[..] else { panic!() };
/// assert_eq!(rest, Part { alias: 3, number: RecordNumber(7), total: 5, offset: 4, bytes: b"e" });
/// assert_eq!((whole.number, whole.is_whole(), whole.bytes), (RecordNumber(8), true, &b"bc"[..]));
/// assert_eq!((cut.number, cut.total, cut.bytes), (RecordNumber(9), 9, &b"ab"[..]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    /// The stream.
    pub alias: u32,
    /// The number of the first record.
    pub first: RecordNumber,
    /// Where in the first record the run begins, bytes: inside it, or 0.
    pub offset: u32,
    /// The records, each after its length; `read` has seen that they are good.
    bodies: &'a [u8],
}

impl<'a> Records<'a> {
    pub(crate) fn read(ty: u8, r: &mut Reader<'a>) -> Result<Records<'a>, DecodeError> {
        let within = ty & ty::WITHIN != 0;
        let alias = match ty & ty::ALIAS {
            ty::ALIAS => r.small()?,
            alias => alias.into(),
        };
        let first = RecordNumber(r.big_endian(1 + usize::from((ty & ty::LENGTH) >> ty::LENGTH_SHIFT))?);
        let offset = if within { r.small()? } else { 0 };
        if within && offset == 0 {
            return Err(DecodeError::Malformed);
        }
        let (before, mut at, mut total, mut count) = (*r, offset, None, 0);
        while r.rest.first().is_some_and(|&byte| byte != ty::PADDING) {
            total = Some(piece(r, total, at)?.0);
            (at, count) = (0, count + 1);
        }
        match is_span(first, count) {
            true => Ok(Records { alias, first, offset, bodies: r.since(before) }),
            false if count == 0 && r.rest.is_empty() => Err(DecodeError::Truncated),
            false => Err(DecodeError::Malformed),
        }
    }

    /// What there is of each record, in order. Bodies may be empty.
    pub const fn iter(&self) -> RecordsIter<'a> {
        let Records { alias, first: number, offset, bodies } = *self;
        RecordsIter { alias, number, offset, total: None, reader: Reader { rest: bodies } }
    }
}

/// The length of the record that `r` has come to, and its bytes from `offset` on, as far as the payload goes. `before`: the
/// length of the record before it.
fn piece<'a>(r: &mut Reader<'a>, before: Option<u32>, offset: u32) -> Result<(u32, &'a [u8]), DecodeError> {
    let total = match r.varint()? {
        SAME => before,
        len => len.checked_sub(LENGTH).and_then(|total| u32::try_from(total).ok()),
    };
    let total = total.ok_or(DecodeError::Malformed)?;
    let rest = total.checked_sub(offset).filter(|&rest| rest > 0 || offset == 0).ok_or(DecodeError::Malformed)?;
    let len = usize::try_from(rest).map_or(r.rest.len(), |rest| rest.min(r.rest.len()));
    if len == 0 && rest > 0 {
        return Err(DecodeError::Truncated);
    }
    Ok((total, r.slice(len)?))
}

impl<'a> IntoIterator for &Records<'a> {
    type Item = Part<'a>;
    type IntoIter = RecordsIter<'a>;

    fn into_iter(self) -> RecordsIter<'a> {
        self.iter()
    }
}

/// Equal if they say the same, whichever form of varint they say it in.
impl PartialEq for Records<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Records<'_> {}

/// Iterator over [`Records`]. Made by [`Records::iter`].
#[derive(Clone)]
pub struct RecordsIter<'a> {
    alias: u32,
    number: RecordNumber,
    offset: u32,
    /// The length of the record before.
    total: Option<u32>,
    reader: Reader<'a>,
}

impl<'a> Iterator for RecordsIter<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        if self.reader.rest.is_empty() {
            return None;
        }
        let (number, offset) = (self.number, self.offset);
        let (total, bytes) = piece(&mut self.reader, self.total, offset).ok()?;
        (self.number, self.offset, self.total) = (number.next(), 0, Some(total));
        Some(Part { alias: self.alias, number, total, offset, bytes })
    }
}

impl FusedIterator for RecordsIter<'_> {}

/// Writes a RECORDS frame record by record. Made by [`Writer::records`].
///
/// The frame is complete after every push; without any, there is no frame.
///
/// ```
/// use stayfast_frame::{Full, Writer};
/// use stayfast_units::RecordNumber;
///
/// let mut buf = [0; 9];
/// let mut writer = Writer::new(&mut buf);
/// let mut records = writer.records(0, RecordNumber(0), 0).unwrap();
/// assert_eq!(records.push(b"1234567"), Err(Full));
/// assert_eq!(records.push(b"12"), Ok(()));
/// assert_eq!(records.push(b"34"), Ok(()));
/// assert_eq!(records.push(b""), Ok(()));
/// assert_eq!(records.finish(), 3);
/// assert_eq!(buf, [0x80, 0, 4, b'1', b'2', 1, b'3', b'4', 2]);
/// ```
#[derive(Debug)]
pub struct RecordsWriter<'w, 'a> {
    writer: &'w mut Writer<'a>,
    first: RecordNumber,
    /// Where in its record the first piece begins.
    offset: u32,
    /// The length of the last record.
    total: Option<u32>,
    count: usize,
    /// What the writer goes back to if no record is pushed.
    before: (usize, bool),
}

impl<'w, 'a> RecordsWriter<'w, 'a> {
    pub(crate) fn new(writer: &'w mut Writer<'a>, alias: u32, first: RecordNumber, offset: u32) -> Result<Self, Full> {
        if !is_span(first, 1) {
            return Err(Full);
        }
        let before = writer.place();
        writer.whole(|w| {
            let number = first.0.to_be_bytes();
            let number = &number[(first.0.leading_zeros() / 8).min(7) as usize..];
            let within = if offset == 0 { 0 } else { ty::WITHIN };
            let ty = ty::RECORDS | within | (number.len() as u8 - 1) << ty::LENGTH_SHIFT;
            match u8::try_from(alias) {
                Ok(alias) if alias < ty::ALIAS => w.byte(ty | alias)?,
                _ => {
                    w.byte(ty | ty::ALIAS)?;
                    w.varint(alias.into())?;
                }
            }
            w.slice(number)?;
            if offset > 0 {
                w.varint(offset.into())?;
            }
            // Room for an empty record, too: a header alone is no frame.
            if w.remaining() == 0 { Err(Full) } else { Ok(()) }
        })?;
        Ok(RecordsWriter { writer, first, offset, total: None, count: 0, before })
    }

    /// Appends the next record; if it is the first, what follows the offset.
    ///
    /// # Errors
    /// [`Full`]: it does not fit, or nothing follows the offset. Nothing has changed.
    pub fn push(&mut self, body: &[u8]) -> Result<(), Full> {
        let (total, rest) = self.rest(body).ok_or(Full)?;
        self.piece(total, rest)
    }

    /// Ends the frame and the payload with the beginning of the next record, as much as fits. Returns how many bytes
    /// it took; `None`, and nothing appended, if those would be fewer than [`MIN_PART`] and not the rest of the record.
    ///
    /// ```
    /// use stayfast_frame::Writer;
    /// use stayfast_units::RecordNumber;
    ///
    /// let (mut payload, body) = ([0; 100], [7; 150]);
    /// let mut writer = Writer::new(&mut payload);
    /// assert_eq!(writer.records(1, RecordNumber(2), 0).unwrap().cut(&body), Some(100 - 4));
    /// assert_eq!(writer.remaining(), 0);
    /// let records = Writer::new(&mut payload[..19]).records(1, RecordNumber(2), 0).unwrap().cut(&body);
    /// assert_eq!(records, None, "for less a record is not cut");
    /// ```
    pub fn cut(mut self, body: &[u8]) -> Option<usize> {
        let (total, rest) = self.rest(body)?;
        let room = self.writer.remaining().checked_sub(varint::len(self.length(total)))?;
        let taken = rest.len().min(room);
        if taken < rest.len().min(MIN_PART) {
            return None;
        }
        self.piece(total, &rest[..taken]).ok().map(|()| taken)
    }

    /// The record's length, and what of it is due.
    fn rest<'b>(&self, body: &'b [u8]) -> Option<(u32, &'b [u8])> {
        let offset = if self.count == 0 { self.offset } else { 0 };
        let rest = body.get(usize::try_from(offset).ok()?..)?;
        (offset == 0 || !rest.is_empty()).then_some((u32::try_from(body.len()).ok()?, rest))
    }

    /// What stands before a record of `total` bytes.
    fn length(&self, total: u32) -> u64 {
        if self.total == Some(total) { SAME } else { u64::from(total) + LENGTH }
    }

    /// `bytes` of a record of `total`: if they do not reach its end, nothing follows them.
    pub(crate) fn piece(&mut self, total: u32, bytes: &[u8]) -> Result<(), Full> {
        if !is_span(self.first, self.count as u64 + 1) {
            return Err(Full);
        }
        let length = self.length(total);
        self.writer.whole(|w| {
            w.varint(length)?;
            w.slice(bytes)
        })?;
        self.total = Some(total);
        let offset = if self.count == 0 { self.offset } else { 0 };
        self.count += 1;
        if u64::from(offset) + (bytes.len() as u64) < total.into() {
            self.writer.close();
        }
        Ok(())
    }

    /// Ends the frame; returns how many records it has or has a piece of. If none, there is no frame.
    pub fn finish(self) -> usize {
        self.count
    }
}

impl Drop for RecordsWriter<'_, '_> {
    fn drop(&mut self) {
        match self.count {
            0 => self.writer.back(self.before),
            _ => self.writer.leave_open(),
        }
    }
}
