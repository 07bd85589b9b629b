use crate::frame::{is_span, ty};
use crate::reader::Reader;
use crate::writer::{MIN_PART, Writer};
use crate::{DecodeError, Full, Part, varint};
use core::iter::FusedIterator;
use stayfast_units::RecordNumber;

/// A run of a stream's bytes: consecutive records, of which the first may begin before and the last may go on after.
///
/// ```
/// use stayfast_frame::{Frame, Part, decode};
/// use stayfast_units::RecordNumber;
/// let Some(Ok(Frame::Records(records))) = decode(b"\x11\x03\x07\x04\x06e\x03bc\x0aab").next() else { panic!() };
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
    /// The records, each after its length plus one; `read` has seen that they are good.
    bodies: &'a [u8],
}

impl<'a> Records<'a> {
    pub(crate) fn read(r: &mut Reader<'a>, cut_before: bool) -> Result<Records<'a>, DecodeError> {
        let (alias, first) = (r.small()?, r.record()?);
        let offset = if cut_before { r.small()? } else { 0 };
        if cut_before && offset == 0 {
            return Err(DecodeError::Malformed);
        }
        let (before, mut at, mut count) = (*r, offset, 0);
        while r.rest.first().is_some_and(|&byte| byte != ty::PADDING) {
            piece(r, at)?;
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
        RecordsIter { alias, number, offset, reader: Reader { rest: bodies } }
    }
}

/// The length of the record that `r` has come to, and its bytes from `offset` on, as far as the payload goes.
fn piece<'a>(r: &mut Reader<'a>, offset: u32) -> Result<(u32, &'a [u8]), DecodeError> {
    let total = r.varint()?.checked_sub(1).and_then(|total| u32::try_from(total).ok()).ok_or(DecodeError::Malformed)?;
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
    reader: Reader<'a>,
}

impl<'a> Iterator for RecordsIter<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        if self.reader.rest.is_empty() {
            return None;
        }
        let (number, offset) = (self.number, self.offset);
        let (total, bytes) = piece(&mut self.reader, offset).ok()?;
        (self.number, self.offset) = (number.next(), 0);
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
/// assert_eq!(records.push(b"1234"), Ok(()));
/// assert_eq!(records.push(b""), Ok(()));
/// assert_eq!(records.finish(), 2);
/// assert_eq!(buf, [0x10, 0, 0, 5, b'1', b'2', b'3', b'4', 1]);
/// ```
#[derive(Debug)]
pub struct RecordsWriter<'w, 'a> {
    writer: &'w mut Writer<'a>,
    first: RecordNumber,
    /// Where in its record the first piece begins.
    offset: u32,
    count: usize,
    /// What the writer goes back to if no record is pushed.
    before: (usize, bool),
}

impl<'w, 'a> RecordsWriter<'w, 'a> {
    pub(crate) fn new(writer: &'w mut Writer<'a>, alias: u32, first: RecordNumber, offset: u32) -> Result<Self, Full> {
        let before = writer.place();
        writer.whole(|w| {
            w.byte(if offset == 0 { ty::RECORDS } else { ty::RECORDS_FROM })?;
            w.varints(&[alias.into(), first.0])?;
            if offset > 0 {
                w.varint(offset.into())?;
            }
            // Room for an empty record, too: a header alone is no frame.
            if w.remaining() == 0 { Err(Full) } else { Ok(()) }
        })?;
        Ok(RecordsWriter { writer, first, offset, count: 0, before })
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
    /// assert_eq!(writer.records(1, RecordNumber(2), 0).unwrap().cut(&body), Some(100 - 5));
    /// assert_eq!(writer.remaining(), 0);
    /// let records = Writer::new(&mut payload[..68]).records(1, RecordNumber(2), 0).unwrap().cut(&body);
    /// assert_eq!(records, None, "for less a record is not cut");
    /// ```
    pub fn cut(mut self, body: &[u8]) -> Option<usize> {
        let (total, rest) = self.rest(body)?;
        let room = self.writer.remaining().checked_sub(varint::len(u64::from(total) + 1))?;
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

    /// `bytes` of a record of `total`: if they do not reach its end, nothing follows them.
    pub(crate) fn piece(&mut self, total: u32, bytes: &[u8]) -> Result<(), Full> {
        if !is_span(self.first, self.count as u64 + 1) {
            return Err(Full);
        }
        self.writer.whole(|w| {
            w.varint(u64::from(total) + 1)?;
            w.slice(bytes)
        })?;
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
