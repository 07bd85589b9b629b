use crate::frame::{is_span, ty};
use crate::reader::Reader;
use crate::writer::{Writer, fit};
use crate::{DecodeError, Full};
use core::iter::FusedIterator;
use stayfast_units::RecordNumber;

/// `count` is always the two-byte varint, so that it can be written after the records it counts.
const COUNT_FORM: u16 = 0x4000;
const MAX_COUNT: u16 = 0x3fff;

/// Consecutive whole records of one stream.
///
/// ```
/// use stayfast_frame::{Frame, decode};
/// use stayfast_units::RecordNumber;
/// let Some(Ok(Frame::Records(records))) = decode(b"\x10\x03\x07\x40\x02\x01a\x02bc").next() else { panic!() };
/// assert_eq!((records.alias, records.first, records.count), (3, RecordNumber(7), 2));
/// assert_eq!(records.iter().last(), Some((RecordNumber(8), &b"bc"[..])));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    /// The stream.
    pub alias: u32,
    /// The number of the first record.
    pub first: RecordNumber,
    /// How many, at least one.
    pub count: u16,
    /// The records, each after its length; `read` has seen that all `count` are there.
    bodies: &'a [u8],
}

impl<'a> Records<'a> {
    pub(crate) fn read(r: &mut Reader<'a>) -> Result<Records<'a>, DecodeError> {
        let (alias, first) = (r.small()?, r.record()?);
        let count = u16::from_be_bytes(r.array()?);
        if count & !MAX_COUNT != COUNT_FORM {
            return Err(DecodeError::Malformed);
        }
        let count = count & MAX_COUNT;
        if !is_span(first, count.into()) {
            return Err(DecodeError::Malformed);
        }
        let before = *r;
        for _ in 0..count {
            r.bytes()?;
        }
        Ok(Records { alias, first, count, bodies: r.since(before) })
    }

    /// The records, numbered, in order. Bodies may be empty.
    pub const fn iter(&self) -> RecordsIter<'a> {
        RecordsIter { number: self.first, left: self.count, reader: Reader { rest: self.bodies } }
    }
}

impl<'a> IntoIterator for &Records<'a> {
    type Item = (RecordNumber, &'a [u8]);
    type IntoIter = RecordsIter<'a>;

    fn into_iter(self) -> RecordsIter<'a> {
        self.iter()
    }
}

/// Equal if they say the same, whichever form of varint they say it in.
impl PartialEq for Records<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.alias, self.first) == (other.alias, other.first) && self.iter().eq(other.iter())
    }
}

impl Eq for Records<'_> {}

/// Iterator over [`Records`]. Made by [`Records::iter`].
#[derive(Clone)]
pub struct RecordsIter<'a> {
    number: RecordNumber,
    left: u16,
    reader: Reader<'a>,
}

impl<'a> Iterator for RecordsIter<'a> {
    type Item = (RecordNumber, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let body = self.reader.bytes().ok()?;
        let number = self.number;
        self.number = number.next();
        Some((number, body))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.into(), Some(self.left.into()))
    }
}

impl ExactSizeIterator for RecordsIter<'_> {}
impl FusedIterator for RecordsIter<'_> {}

/// Writes a RECORDS frame record by record. Made by [`Writer::records`].
///
/// The frame is complete after every push; without any, there is no frame.
///
/// ```
/// use stayfast_frame::{Full, Writer};
/// use stayfast_units::RecordNumber;
///
/// let mut buf = [0; 11];
/// let mut writer = Writer::new(&mut buf);
/// let mut records = writer.records(0, RecordNumber(0)).unwrap();
/// assert_eq!(records.room(), Some(5));
/// assert_eq!(records.push(b"123456"), Err(Full));
/// assert_eq!(records.push(b"1234"), Ok(()));
/// assert_eq!(records.push(b""), Ok(()));
/// assert_eq!(records.finish(), 2);
/// assert_eq!(buf, [0x10, 0, 0, 0x40, 2, 4, b'1', b'2', b'3', b'4', 0]);
/// ```
#[derive(Debug)]
pub struct RecordsWriter<'w, 'a> {
    writer: &'w mut Writer<'a>,
    first: RecordNumber,
    count: u16,
    /// Where the frame starts, and where its `count` stands.
    start: usize,
    count_at: usize,
}

impl<'w, 'a> RecordsWriter<'w, 'a> {
    pub(crate) fn new(writer: &'w mut Writer<'a>, alias: u32, first: RecordNumber) -> Result<Self, Full> {
        let start = writer.written();
        let count_at = writer.whole(|w| {
            w.byte(ty::RECORDS)?;
            w.varint(alias.into())?;
            w.varint(first.0)?;
            let count_at = w.written();
            w.slice(&COUNT_FORM.to_be_bytes())?;
            // Room for an empty record, too: a header alone is no frame.
            if w.remaining() == 0 { Err(Full) } else { Ok(count_at) }
        })?;
        Ok(RecordsWriter { writer, first, count: 0, start, count_at })
    }

    /// Appends the next record.
    ///
    /// # Errors
    /// [`Full`]: it does not fit, or 16,383 records are in the frame. Nothing has changed.
    pub fn push(&mut self, body: &[u8]) -> Result<(), Full> {
        let count = self.count + 1;
        if count > MAX_COUNT || !is_span(self.first, count.into()) {
            return Err(Full);
        }
        self.writer.sized(body)?;
        self.writer.patch(self.count_at, &(COUNT_FORM | count).to_be_bytes());
        self.count = count;
        Ok(())
    }

    /// The longest record that still fits, bytes; `None` if not even an empty one does.
    pub fn room(&self) -> Option<usize> {
        fit(self.writer.remaining(), usize::MAX)
    }

    /// Records in the frame.
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// Ends the frame; returns how many records it has. If none, there is no frame.
    pub fn finish(self) -> u16 {
        self.count
    }
}

impl Drop for RecordsWriter<'_, '_> {
    fn drop(&mut self) {
        if self.count == 0 {
            self.writer.truncate(self.start);
        }
    }
}
