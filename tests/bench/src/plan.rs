//! What the program `cpu` is asked for.

use crate::load::{Append, Failure, Load};
use crate::records::SHORTEST;
use clap::Parser;

/// Bytes of bodies in one transfer, unless the number of records is given.
const BYTES: u64 = 200 << 20;
/// Records in one transfer at most, likewise.
const RECORDS: u64 = 2_000_000;

/// CPU time per record over loopback, stayfast beside quinn
///
/// Both ends run in this process. In each round and for each size, a fresh pair of stayfast nodes and a fresh quinn
/// connection transfer the same records, one after the other, so that a machine that gets slower does so for both.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo xtask bench cpu", version)]
pub struct Plan {
    /// Rounds; the median of them counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Sizes of the records, bytes
    #[arg(long, value_delimiter = ',', default_value = "61,1013,16013")]
    pub sizes: Vec<usize>,
    /// Records of one transfer: one number for each size, or one for all [default: 200 MiB, at most 2,000,000]
    #[arg(long, value_delimiter = ',')]
    pub records: Vec<u64>,
    /// UDP payload of a full datagram, bytes, for both
    #[arg(long, default_value_t = 1452, value_parser = clap::value_parser!(u16).range(1200..=1452))]
    pub datagram: u16,
    /// KiB that the application is ahead of what is stored (quinn has its own windows)
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u64).range(64..))]
    pub ahead: u64,
    /// How records get into the outbox
    #[arg(long, value_enum, default_value_t = Append::Handle)]
    pub append: Append,
    /// Only one of the two, for a profiler
    #[arg(long, value_enum)]
    pub only: Option<Transport>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// A transport under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    /// This project.
    Stayfast,
    /// QUIC by quinn.
    Quinn,
}

impl Plan {
    /// One load per size.
    ///
    /// # Errors
    /// Sizes and numbers of records do not fit together.
    ///
    /// ```
    /// use clap::Parser;
    /// use stayfast_bench::plan::Plan;
    ///
    /// let plan = Plan::parse_from(["cpu", "--sizes", "100,200", "--records", "5000"]);
    /// let loads = plan.loads()?;
    /// assert_eq!((loads[1].size, loads[1].records, loads[1].warmup), (200, 5000, 500));
    /// # Ok::<(), stayfast_bench::Failure>(())
    /// ```
    pub fn loads(&self) -> Result<Vec<Load>, Failure> {
        if self.records.len() > 1 && self.records.len() != self.sizes.len() {
            return Err("give --records one number, or one for each of --sizes".into());
        }
        if self.records.contains(&0) {
            return Err("--records must be at least 1".into());
        }
        let load = |(i, &size): (usize, &usize)| {
            if !(SHORTEST..=1 << 20).contains(&size) {
                return Err(format!("--sizes must be from {SHORTEST} to {} bytes", 1 << 20).into());
            }
            let records = self.records.get(i).or(self.records.first()).copied();
            let records = records.unwrap_or_else(|| (BYTES / size as u64).clamp(1, RECORDS));
            let Plan { datagram, append, .. } = *self;
            let warmup = (records / 10).max(1);
            Ok(Load { size, warmup, records, datagram, append, ahead: self.ahead << 10 })
        };
        self.sizes.iter().enumerate().map(load).collect()
    }
}
