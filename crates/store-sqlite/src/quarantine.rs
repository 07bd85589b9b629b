use crate::outbox::{SqliteOutbox, forget};
use crate::walk::Stream;
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

    /// Forgets what is in quarantine of a stream; how many batches that were.
    pub fn clear_quarantine(&mut self, stream: &str) -> Result<u64, StoreError> {
        let delete = "DELETE FROM stayfast_quarantine \
                      WHERE stream = (SELECT id FROM stayfast_streams WHERE name = ?1)";
        Ok(self.owned.write(|tx| Ok(tx.prepare_cached(delete)?.execute([stream])? as u64))?)
    }

    /// Gives up the waiting records of a stream below `before`, in whole batches: one that goes on beyond is kept. Their
    /// numbers stay accounted for: the receiver is told that they are gaps. Returns the first record kept.
    ///
    /// Only for whoever holds the [`LinkLock`](crate::LinkLock), for a link may have read them already.
    pub fn give_up(&mut self, stream: &str, before: RecordNumber) -> Result<RecordNumber, StoreError> {
        Ok(self.owned.write(|tx| {
            let Some(stream) = Stream::find(tx, stream)? else { return Ok(RecordNumber::ZERO) };
            if before <= stream.trimmed {
                return Ok(stream.trimmed);
            }
            // The receiver still has to be told what becomes of them, from `trimmed` on. So that stays, and so does the
            // lineage that was kept for it: that of a record given up would cut the gap off from what went before.
            let kept = forget(tx, &stream, before.min(stream.next), stream.trimmed)?;
            Ok(kept.max(stream.trimmed))
        })?)
    }
}
