use crate::error::ReceiptError;
use stayfast_handoff::{WaitError, Watch};
use stayfast_net::Progress;
use stayfast_units::RecordNumber;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Where records stand in their stream, and whether they are stored at the receiver yet.
///
/// It may be dropped: the records are sent all the same.
#[derive(Clone)]
pub struct Receipt {
    pub(crate) stream: Arc<str>,
    pub(crate) first: RecordNumber,
    /// The number after the last.
    pub(crate) end: RecordNumber,
    pub(crate) progress: Arc<Watch<Progress>>,
}

impl Receipt {
    /// The stream.
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// Number of the record; of the first one, if it was put with others.
    pub fn number(&self) -> RecordNumber {
        self.first
    }

    /// How many records it is for.
    pub fn count(&self) -> u64 {
        self.end.0 - self.first.0
    }

    /// Waits until the receiving application has stored the records durably.
    ///
    /// # Errors
    /// The time is over, the stream stands still, or the link was stopped; the records stay in the outbox.
    pub fn stored(&self, timeout: Duration) -> Result<(), ReceiptError> {
        let end = self.end;
        let settled = self.progress.wait_until(|p| p.stored >= end || p.trouble.is_some(), Some(timeout));
        match settled {
            Ok(progress) if progress.stored >= end => Ok(()),
            Ok(Progress { trouble: Some(trouble), .. }) => Err(ReceiptError::Trouble(trouble)),
            Ok(_) | Err(WaitError::TimedOut) => Err(ReceiptError::TimedOut),
            Err(WaitError::Closed) => Err(ReceiptError::Stopped),
        }
    }

    /// Whether they are known to be stored, without waiting.
    pub fn is_stored(&self) -> bool {
        self.progress.get().stored >= self.end
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receipt({}, {}..{})", self.stream, self.first, self.end)
    }
}
