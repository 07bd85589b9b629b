use crate::outbox::SqliteOutbox;
use stayfast_store::StoreError;
use stayfast_units::RecordNumber;

/// A batch of records that was found damaged, as a whole or in part, and was copied aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Name of the stream; its number in the file if it has none there.
    pub stream: String,
    /// The batch's first record.
    pub first: RecordNumber,
    /// Its records, by a header that may be damaged itself.
    pub count: u64,
    /// Bytes of all bodies.
    pub bytes: u64,
}

impl SqliteOutbox {
    /// What is in quarantine, in the order of the numbers.
    pub fn quarantined(&mut self) -> Result<Vec<Quarantined>, StoreError> {
        let select = "SELECT coalesce(s.name, q.stream), q.first, q.count, length(q.bodies) FROM stayfast_quarantine q \
                      LEFT JOIN stayfast_streams s ON s.id = q.stream ORDER BY q.id";
        let quarantined = |row: &rusqlite::Row<'_>| {
            let number = |column| row.get::<_, i64>(column).map(|n| n.max(0) as u64);
            let stream = match row.get_ref(0)?.as_str() {
                Ok(name) => name.to_string(),
                Err(_) => format!("#{}", number(0)?),
            };
            Ok(Quarantined { stream, first: RecordNumber(number(1)?), count: number(2)?, bytes: number(3)? })
        };
        Ok(self.owned.read(|db| {
            let mut statement = db.prepare_cached(select)?;
            let rows = statement.query_map([], quarantined)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?)
    }
}
