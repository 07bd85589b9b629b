use rusqlite::{Connection, Row};
use stayfast_store::Origin;
use stayfast_units::{Lineage, RecordNumber};

/// Bits of a row's id that are its first number; the stream is above them. 17 million million records in a stream,
/// half a million streams.
const NUMBER_BITS: u32 = 44;

/// The id of the row that begins with record `first`; `None` if the bits do not suffice.
pub(crate) fn row_id(stream: i64, first: RecordNumber) -> Option<i64> {
    let fits = first.0 >> NUMBER_BITS == 0 && (0..1 << (63 - NUMBER_BITS)).contains(&stream);
    fits.then_some(stream << NUMBER_BITS | first.0 as i64)
}

/// The ids that rows of a stream with records below `end` can have, as a half-open range.
pub(crate) fn row_ids(stream: i64, end: RecordNumber) -> (i64, i64) {
    let start = row_id(stream, RecordNumber::ZERO).unwrap_or(i64::MAX);
    let most = (1 << NUMBER_BITS) - 1;
    (start, start.saturating_add(end.0.min(most) as i64))
}

/// Bytes in `records` for each record.
const ENTRY: usize = 8;

/// One row of the outbox as it is written: an append's records.
pub(crate) struct Encoded {
    id: i64,
    origin: Origin,
    sum: u32,
    records: Vec<u8>,
    bodies: Vec<u8>,
}

impl Encoded {
    /// `bodies` together are below 4 GiB: `Limits::check` has seen to it.
    pub fn new(id: i64, origin: Origin, bodies: &[&[u8]]) -> Encoded {
        let mut records = Vec::with_capacity(bodies.len() * ENTRY);
        let mut all = Vec::with_capacity(bodies.iter().map(|b| b.len()).sum());
        for body in bodies {
            all.extend_from_slice(body);
            records.extend_from_slice(&(all.len() as u32).to_le_bytes());
            records.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
        }
        let sum = header_sum(id, bodies.len() as u64, &origin, &records);
        Encoded { id, origin, sum, records, bodies: all }
    }

    pub fn insert(&self, db: &Connection) -> rusqlite::Result<()> {
        let insert = "INSERT INTO stayfast_outbox (id, count, opened, lineage, parent, sum, records, bodies) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let count = (self.records.len() / ENTRY) as i64;
        let Origin { first, lineage, parent } = self.origin;
        let origin = (first.0 as i64, lineage.0 as i64, parent.0 as i64);
        let values = (self.id, count, origin.0, origin.1, origin.2, self.sum, &self.records, &self.bodies);
        db.prepare_cached(insert)?.execute(values).map(drop)
    }
}

/// Covers what must be right before anything else in the row can be believed.
fn header_sum(id: i64, count: u64, origin: &Origin, records: &[u8]) -> u32 {
    let numbers = [id as u64, count, origin.first.0, origin.lineage.0, origin.parent.0];
    let sum = numbers.iter().fold(0, |sum, n| crc32c::crc32c_append(sum, &n.to_le_bytes()));
    crc32c::crc32c_append(sum, records)
}

/// One row of the outbox whose header is sound. Its bodies may not be.
pub(crate) struct Decoded<'a> {
    pub id: i64,
    pub first: RecordNumber,
    pub origin: Origin,
    records: &'a [u8],
    bodies: &'a [u8],
}

impl<'a> Decoded<'a> {
    /// The columns that [`new`](Decoded::new) reads.
    pub const COLUMNS: &'static str = "id, count, opened, lineage, parent, sum, records, bodies";

    /// `None` if the header is damaged.
    pub fn new(row: &'a Row<'_>) -> rusqlite::Result<Option<Decoded<'a>>> {
        match Decoded::believed(row) {
            // Not the types that were written, so not the checksum either.
            Err(rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..)) => Ok(None),
            read => read,
        }
    }

    fn believed(row: &'a Row<'_>) -> rusqlite::Result<Option<Decoded<'a>>> {
        let number = |column| row.get::<_, i64>(column).map(|n| n as u64);
        let (id, count): (i64, _) = (row.get(0)?, number(1)?);
        let first = RecordNumber(id as u64 & ((1 << NUMBER_BITS) - 1));
        let origin =
            Origin { first: RecordNumber(number(2)?), lineage: Lineage(number(3)?), parent: Lineage(number(4)?) };
        let (sum, records, bodies) = (number(5)?, row.get_ref(6)?.as_blob()?, row.get_ref(7)?.as_blob()?);
        let sound = sum == u64::from(header_sum(id, count, &origin, records))
            && records.len() as u64 == count.saturating_mul(ENTRY as u64);
        Ok(sound.then_some(Decoded { id, first, origin, records, bodies }))
    }

    /// The number after its last record.
    pub fn end(&self) -> RecordNumber {
        self.first.plus((self.records.len() / ENTRY) as u64)
    }

    /// Its records in order; `None` in place of a body whose checksum fails.
    pub fn iter(&self) -> impl Iterator<Item = (RecordNumber, Option<&'a [u8]>)> {
        let (records, bodies) = (self.records, self.bodies);
        let mut start = 0;
        (self.first.0..).zip(records.chunks_exact(ENTRY)).map(move |(number, entry)| {
            let word = |at: usize| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
            let end = word(0) as usize;
            let body = bodies.get(start..end).filter(|body| crc32c::crc32c(body) == word(4));
            start = end;
            (RecordNumber(number), body)
        })
    }
}
