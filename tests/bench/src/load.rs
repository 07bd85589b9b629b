//! What is transferred, and what is measured of it.

use crate::usage::Spent;

/// Anything that went wrong: a benchmark that fails has no result.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long either end waits for the other before the run counts as failed.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Bytes of a record.
    pub size: usize,
    /// Records sent before the clocks are read, so that handshake and slow start are over.
    pub warmup: u64,
    /// Records measured.
    pub records: u64,
    /// UDP payload of a full datagram, bytes; both transports are told the same.
    pub datagram: u16,
    /// Bytes that the sending application is ahead of what the receiving one has stored.
    pub ahead: u64,
    /// How records get into the outbox (stayfast only).
    pub append: Append,
}

impl Load {
    /// Records in all.
    pub fn total(&self) -> u64 {
        self.warmup + self.records
    }
}

/// How records get into the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Append {
    /// Through the driver's handle, which hands them to the thread of the outbox.
    Handle,
    /// Into the store by the application itself, which then tells the driver.
    Store,
}

/// One measured transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Time, of all threads of both ends.
    pub spent: Spent,
    /// Records that arrived in order and whole, were copied, and (stayfast) reported STORED.
    pub records: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Datagrams that both ends sent, warm-up included.
    pub datagrams: u64,
    /// Kernel calls for them; 0 if the transport does not count them.
    pub calls: u64,
    /// Packets of the sender that were declared lost.
    pub lost: u64,
}

impl Outcome {
    /// Processor time per record, microseconds.
    pub fn micros(&self) -> f64 {
        self.spent.cpu.as_secs_f64() * 1e6 / self.records.max(1) as f64
    }
}
