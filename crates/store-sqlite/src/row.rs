use rusqlite::{Connection, Row};
use stayfast_store::Origin;
use stayfast_units::{Lineage, RecordNumber};

/// Bytes in `records` for each record.
const ENTRY: usize = 8;

/// One row of the outbox as it is written: an append's records.
pub(crate) struct Encoded {
    sum: u32,
    records: Vec<u8>,
    bodies: Vec<u8>,
}

impl Encoded {
    /// `bodies` together are below 4 GiB: `Limits::check` has seen to it.
    pub fn new(first: RecordNumber, origin: &Origin, bodies: &[&[u8]]) -> Encoded {
        let mut records = Vec::with_capacity(bodies.len() * ENTRY);
        let mut all = Vec::with_capacity(bodies.iter().map(|b| b.len()).sum());
        for body in bodies {
            all.extend_from_slice(body);
            records.extend_from_slice(&(all.len() as u32).to_le_bytes());
            records.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
        }
        let sum = header_sum(first, bodies.len() as u64, origin, &records);
        Encoded { sum, records, bodies: all }
    }

    pub fn insert(&self, db: &Connection, stream: i64, first: RecordNumber, origin: &Origin) -> rusqlite::Result<()> {
        let count = (self.records.len() / ENTRY) as i64;
        let (lineage, parent) = (origin.lineage.0 as i64, origin.parent.0 as i64);
        let insert = "INSERT INTO stayfast_outbox (stream, first, count, opened, lineage, parent, sum, records, bodies) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        db.prepare_cached(insert)?.execute((
            stream,
            first.0 as i64,
            count,
            origin.first.0 as i64,
            lineage,
            parent,
            self.sum,
            &self.records,
            &self.bodies,
        ))?;
        Ok(())
    }
}

/// Covers what must be right before anything else in the row can be believed.
fn header_sum(first: RecordNumber, count: u64, origin: &Origin, records: &[u8]) -> u32 {
    let numbers = [first.0, count, origin.first.0, origin.lineage.0, origin.parent.0];
    let sum = numbers.iter().fold(0, |sum, n| crc32c::crc32c_append(sum, &n.to_le_bytes()));
    crc32c::crc32c_append(sum, records)
}

/// One row of the outbox whose header is sound. Its bodies may not be.
pub(crate) struct Decoded<'a> {
    pub first: RecordNumber,
    pub origin: Origin,
    records: &'a [u8],
    bodies: &'a [u8],
}

impl<'a> Decoded<'a> {
    /// The columns that [`new`](Decoded::new) reads.
    pub const COLUMNS: &'static str = "first, count, opened, lineage, parent, sum, records, bodies";

    /// `None` if the header is damaged.
    pub fn new(row: &'a Row<'_>) -> rusqlite::Result<Option<Decoded<'a>>> {
        let number = |column| row.get::<_, i64>(column).map(|n| n as u64);
        let (first, count) = (RecordNumber(number(0)?), number(1)?);
        let origin =
            Origin { first: RecordNumber(number(2)?), lineage: Lineage(number(3)?), parent: Lineage(number(4)?) };
        let (sum, records, bodies) = (number(5)?, row.get_ref(6)?.as_blob()?, row.get_ref(7)?.as_blob()?);
        let sound = sum == u64::from(header_sum(first, count, &origin, records))
            && records.len() as u64 == count.saturating_mul(ENTRY as u64)
            && first.0.checked_add(count).is_some();
        Ok(sound.then_some(Decoded { first, origin, records, bodies }))
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
