use crate::AppendError;

/// Longest stream name, bytes.
pub const MAX_STREAM_NAME: usize = 255;
/// Most records in one append.
pub const MAX_BATCH_RECORDS: usize = 1 << 16;
/// Most bytes of bodies in one append; also the highest sensible limit for one record.
pub const MAX_BATCH_BYTES: usize = 1 << 28;

/// What an outbox refuses.
///
/// ```
/// use stayfast_store::Limits;
/// let limits = Limits { record: 1000, ..Limits::default() };
/// assert!(limits.check("orders", &[&[0; 1001]], 0).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest record, bytes (1 MiB).
    pub record: usize,
    /// Most bytes of bodies that wait in the outbox (16 GiB).
    pub outbox_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { record: 1 << 20, outbox_bytes: 16 << 30 }
    }
}

impl Limits {
    /// Would an append be taken by an outbox that holds `used` bytes? Every adapter asks this first.
    pub fn check(&self, stream: &str, records: &[&[u8]], used: u64) -> Result<(), AppendError> {
        if stream.is_empty() || stream.len() > MAX_STREAM_NAME {
            return Err(AppendError::StreamName { len: stream.len() });
        }
        if stream.contains('\0') {
            return Err(AppendError::StreamNul);
        }
        if let Some(record) = records.iter().map(|r| r.len()).find(|&len| len > self.record) {
            return Err(AppendError::TooLarge { record, limit: self.record });
        }
        let bytes = records.iter().fold(0usize, |sum, r| sum.saturating_add(r.len()));
        if records.is_empty() || records.len() > MAX_BATCH_RECORDS || bytes > MAX_BATCH_BYTES {
            return Err(AppendError::Batch { records: records.len(), bytes });
        }
        if used.saturating_add(bytes as u64) > self.outbox_bytes {
            return Err(AppendError::Full { used, limit: self.outbox_bytes });
        }
        Ok(())
    }
}
