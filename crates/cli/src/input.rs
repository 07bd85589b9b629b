//! Records from a stream of bytes: lines, or with their length before them.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// Where a record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// At a line end, which is not part of it.
    Lines,
    /// After as many bytes as the big-endian u32 before it says.
    Lengths,
}

impl Framing {
    /// From the flag `--framed`.
    pub fn new(framed: bool) -> Framing {
        if framed { Framing::Lengths } else { Framing::Lines }
    }

    /// Writes a record so that it can be told from the next.
    pub fn write(self, out: &mut impl io::Write, record: &[u8]) -> io::Result<()> {
        match self {
            Framing::Lines => {
                out.write_all(record)?;
                out.write_all(b"\n")
            }
            Framing::Lengths => {
                let len = u32::try_from(record.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
                out.write_all(&len.to_be_bytes())?;
                out.write_all(record)
            }
        }
    }
}

/// Why the input could not be read to its end.
#[derive(Debug)]
pub enum InputError {
    /// A record is longer than the limit.
    TooLong {
        /// The limit, bytes.
        limit: usize,
    },
    /// The input ends in the middle of a record that has its length before it.
    Cut,
    /// The operating system could not read it.
    Io(io::Error),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputError::TooLong { limit } => {
                write!(f, "is longer than {limit} B: split it (is this input really in the form you said?)")
            }
            InputError::Cut => f.write_str("is cut short by the end of the input"),
            InputError::Io(e) => write!(f, "cannot be read: {e}"),
        }
    }
}

impl From<io::Error> for InputError {
    fn from(error: io::Error) -> InputError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => InputError::Cut,
            _ => InputError::Io(error),
        }
    }
}

/// Consecutive records, bodies back to back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    /// A batch with this many records or bytes is as large as an append should be.
    const FULL: (usize, usize) = (16_384, 1 << 20);

    /// Adds a record.
    pub fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    /// How many records.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// No record?
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Is it time to append it?
    pub fn is_full(&self) -> bool {
        self.len() >= Batch::FULL.0 || self.bytes.len() >= Batch::FULL.1
    }

    /// The records.
    pub fn records(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end]).collect()
    }

    /// Without its first `n` records.
    pub fn skip(&mut self, n: usize) {
        let n = n.min(self.len());
        let cut = n.checked_sub(1).map_or(0, |last| self.ends[last]);
        self.bytes.drain(..cut);
        self.ends.drain(..n);
        self.ends.iter_mut().for_each(|end| *end -= cut);
    }
}

/// Reads records.
pub struct Records<R> {
    source: BufReader<R>,
    framing: Framing,
    limit: usize,
    record: Vec<u8>,
}

impl<R: Read> Records<R> {
    /// Records of `source`, none longer than `limit`.
    pub fn new(source: R, framing: Framing, limit: usize) -> Records<R> {
        Records { source: BufReader::with_capacity(1 << 16, source), framing, limit, record: Vec::new() }
    }

    /// The records that can be had without waiting for more input, but at least one unless the input has ended. An
    /// error comes alone, after the records before it.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, InputError> {
        let mut batch = Batch::default();
        while batch.is_empty() || (self.has_whole_record() && !batch.is_full()) {
            match self.next() {
                Ok(Some(record)) => batch.push(record),
                Ok(None) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(Some(batch).filter(|batch| !batch.is_empty()))
    }

    /// The next record; `None` at the end. A last line without a line end is a record, too.
    fn next(&mut self) -> Result<Option<&[u8]>, InputError> {
        self.record.clear();
        let found = match self.framing {
            Framing::Lines => self.next_line()?,
            Framing::Lengths => self.next_framed()?,
        };
        Ok(found.then_some(&self.record))
    }

    fn next_line(&mut self) -> Result<bool, InputError> {
        // One more for the line end.
        let most = self.limit as u64 + 1;
        let read = (&mut self.source).take(most).read_until(b'\n', &mut self.record)?;
        if self.record.last() == Some(&b'\n') {
            self.record.pop();
        } else if self.record.len() > self.limit {
            return Err(InputError::TooLong { limit: self.limit });
        }
        Ok(read > 0)
    }

    fn next_framed(&mut self) -> Result<bool, InputError> {
        if self.source.fill_buf()?.is_empty() {
            return Ok(false);
        }
        let mut len = [0; 4];
        self.source.read_exact(&mut len)?;
        let len = u32::from_be_bytes(len) as usize;
        if len > self.limit {
            return Err(InputError::TooLong { limit: self.limit });
        }
        self.record.resize(len, 0);
        self.source.read_exact(&mut self.record)?;
        Ok(true)
    }

    /// Is a record waiting in the buffer, so that reading it does not wait, and cannot fail but by the operating
    /// system?
    pub fn has_whole_record(&self) -> bool {
        let buffer = self.source.buffer();
        match self.framing {
            Framing::Lines => buffer.iter().take(self.limit + 1).any(|byte| *byte == b'\n'),
            Framing::Lengths => buffer.first_chunk().is_some_and(|len| {
                let len = u32::from_be_bytes(*len) as usize;
                len <= self.limit && buffer.len() - 4 >= len
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8], framing: Framing, limit: usize) -> (Vec<Vec<u8>>, Option<InputError>) {
        let mut records = Records::new(input, framing, limit);
        let mut found = Vec::new();
        loop {
            match records.next_batch() {
                Ok(Some(batch)) => found.extend(batch.records().iter().map(|r| r.to_vec())),
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error)),
            }
        }
    }

    #[test]
    fn lines_with_and_without_an_end() {
        let (found, error) = read(b"a\n\nb\r\nlast", Framing::Lines, 10);
        assert_eq!(found, [&b"a"[..], b"", b"b\r", b"last"]);
        assert!(error.is_none());
        assert!(read(b"", Framing::Lines, 10).0.is_empty());
    }

    #[test]
    fn a_record_at_the_limit_is_taken_and_one_over_it_is_not() {
        let (found, error) = read(b"1234\n5678", Framing::Lines, 4);
        assert_eq!((found.len(), error.is_none()), (2, true));
        let (found, error) = read(b"ok\n12345\n", Framing::Lines, 4);
        assert_eq!(found, [b"ok"], "what came before it is not lost");
        assert!(matches!(error, Some(InputError::TooLong { limit: 4 })));
        let (_, error) = read(&[0, 0, 0, 5, 1, 2, 3, 4, 5], Framing::Lengths, 4);
        assert!(matches!(error, Some(InputError::TooLong { limit: 4 })));
    }

    #[test]
    fn what_is_written_is_read() {
        for framing in [Framing::Lines, Framing::Lengths] {
            let records: [&[u8]; 4] = [b"one", b"", &[7; 100_000], b"last"];
            let mut bytes = Vec::new();
            for record in records {
                framing.write(&mut bytes, record).unwrap();
            }
            let (found, error) = read(&bytes, framing, 1 << 20);
            assert_eq!(found, records);
            assert!(error.is_none());
        }
    }

    #[test]
    fn a_frame_that_is_cut_is_an_error_and_no_record() {
        for cut in 1..7 {
            let (found, error) = read(&[0, 0, 0, 3, 1, 2, 3][..cut], Framing::Lengths, 10);
            assert!(found.is_empty());
            assert!(matches!(error, Some(InputError::Cut)), "{cut}");
        }
    }

    #[test]
    fn batches_lose_their_head() {
        let mut batch = Batch::default();
        [&b"one"[..], b"", b"three"].iter().for_each(|record| batch.push(record));
        batch.skip(0);
        assert_eq!(batch.len(), 3);
        batch.skip(2);
        assert_eq!(batch.records(), [b"three"]);
        batch.skip(9);
        assert!(batch.is_empty());
    }
}
