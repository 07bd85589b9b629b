use core::fmt;

/// What one [`Reassembler`](crate::Reassembler) may hold.
///
/// ```
/// use stayfast_ranges::Limits;
/// let limits = Limits { bytes: 8 << 20, gaps: 256, record: 1 << 20 };
/// assert_eq!(limits.max_records(), 1 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Body bytes in memory that have not been taken, where a record of which any part is here counts whole.
    pub bytes: usize,
    /// Gaps: stretches of missing records or bytes below the highest that is here. What comes in
    /// order, or closes a gap, never counts against this limit.
    pub gaps: usize,
    /// Bytes of one record; never more than `u32::MAX`.
    pub record: usize,
}

impl Limits {
    /// Records (and holes) that may wait to be taken. Empty ones cost no body bytes, so they need a limit of
    /// their own: one for every 8 B of [`Limits::bytes`], at least 1,024.
    pub const fn max_records(&self) -> usize {
        let n = self.bytes / 8;
        if n < 1_024 { 1_024 } else { n }
    }

    /// The longest record, as the wire can say it.
    pub(crate) fn max_body(&self) -> usize {
        self.record.min(u32::MAX as usize)
    }
}

/// What became of an arrival.
///
/// ```
/// use stayfast_ranges::{Limits, Reassembler, Taken};
/// use stayfast_units::RecordNumber;
///
/// let mut stream = Reassembler::new(RecordNumber(0), Limits { bytes: 100, gaps: 1, record: 100 });
/// assert_eq!(stream.record(RecordNumber(0), b"abc"), Ok(Taken::New(3)));
/// assert_eq!(stream.record(RecordNumber(0), b"abc"), Ok(Taken::Known));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was taken, with so many body bytes that were not here before (none for an empty record or a hole).
    New(usize),
    /// All of it had been here before.
    Known,
}

/// Why an arrival was not taken. The state is unchanged.
///
/// ```
/// use stayfast_ranges::{Limits, Reassembler, Refused};
/// use stayfast_units::RecordNumber;
///
/// let mut stream = Reassembler::new(RecordNumber(0), Limits { bytes: 5, gaps: 1, record: 4 });
/// assert_eq!(stream.record(RecordNumber(0), b"12345"), Err(Refused::Record));
/// assert!(stream.record(RecordNumber(0), b"1234").is_ok());
/// assert_eq!(stream.record(RecordNumber(1), b"12"), Err(Refused::Bytes));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// More than [`Limits::bytes`]. Taking what is ready makes room.
    Bytes,
    /// More than [`Limits::gaps`]. What fills a gap makes room.
    Gaps,
    /// Longer than [`Limits::record`]: it will never be taken.
    Record,
    /// More records than [`Limits::max_records`]. Taking what is ready makes room.
    Count,
    /// It contradicts itself or what came earlier: another total length, a part that is empty or ends
    /// beyond its record, or the record number `u64::MAX`, which has no successor.
    Conflict,
}

impl Refused {
    /// A short name for counters and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Refused::Bytes => "bytes",
            Refused::Gaps => "gaps",
            Refused::Record => "record",
            Refused::Count => "count",
            Refused::Conflict => "conflict",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::Bytes => "too many bytes are waiting",
            Refused::Gaps => "too many gaps are open",
            Refused::Record => "the record is longer than records may be",
            Refused::Count => "too many records are waiting",
            Refused::Conflict => "the record contradicts an earlier part or itself",
        })
    }
}

impl core::error::Error for Refused {}
