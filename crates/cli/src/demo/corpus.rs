//! The records that the demo sends: a function of a seed, or the lines of a file.

use super::random::Random;
use crate::failure::{Failure, Outcome};
use crate::input::{Framing, Records};
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::str::FromStr;

/// Records of one size on a stream of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// How many.
    pub count: u64,
    /// Bytes of each.
    pub size: usize,
}

impl Kind {
    /// The stream's name.
    pub fn stream(&self) -> String {
        format!("{}B", self.size)
    }
}

/// Records made from a seed. As text: `SEED:COUNTxSIZE,COUNTxSIZE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Where all bytes come from.
    pub seed: u64,
    /// One stream each.
    pub kinds: Vec<Kind>,
}

impl Generated {
    /// Writes record `number` of stream `index` into `record`. It begins with its number, so that people can read a
    /// trace; the rest is noise.
    pub fn record(&self, index: usize, number: u64, record: &mut Vec<u8>) {
        record.clear();
        record.resize(self.kinds[index].size, 0);
        let mut random = Random::new(self.seed, (index as u64) << 48 | number);
        random.fill(record);
        let head = format!("{number:08} ");
        let len = head.len().min(record.len());
        record[..len].copy_from_slice(&head.as_bytes()[..len]);
    }
}

impl fmt::Display for Generated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.kinds.iter().map(|kind| format!("{}x{}", kind.count, kind.size)).collect();
        write!(f, "{}:{}", self.seed, kinds.join(","))
    }
}

impl FromStr for Generated {
    type Err = String;

    fn from_str(text: &str) -> Result<Generated, String> {
        let expected = || "expected SEED:COUNTxSIZE,COUNTxSIZE".to_string();
        let kind = |text: &str| {
            let (count, size) = text.split_once('x')?;
            Some(Kind { count: count.parse().ok()?, size: size.parse().ok()? })
        };
        let (seed, kinds) = text.split_once(':').ok_or_else(expected)?;
        let kinds: Option<Vec<Kind>> = kinds.split(',').map(kind).collect();
        Ok(Generated { seed: seed.parse().map_err(|_| expected())?, kinds: kinds.ok_or_else(expected)? })
    }
}

/// What should arrive.
pub enum Corpus {
    /// Generated records.
    Generated(Generated),
    /// The lines of a file, on the stream `lines`.
    Lines(Vec<Vec<u8>>),
}

impl Corpus {
    const OVERHEAD: u64 = 64;
    /// The stream of a file's lines.
    pub const LINES: &'static str = "lines";

    /// Reads a file of lines.
    pub fn from_file(path: &Path, limit: usize) -> Outcome<Corpus> {
        let file = File::open(path).map_err(|e| Failure::file(path, &e))?;
        let mut records = Records::new(file, Framing::Lines, limit);
        let mut lines = Vec::new();
        loop {
            let batch = records
                .next_batch()
                .map_err(|e| Failure::failed(format!("{}: line {} {e}", path.display(), lines.len() + 1)))?;
            match batch {
                Some(batch) => lines.extend(batch.records().iter().map(|record| record.to_vec())),
                None => return Ok(Corpus::Lines(lines)),
            }
        }
    }

    /// Repeats the lines until they are so many bytes at least, with something for each line; says how often each is there then.
    ///
    /// # Errors
    /// There are no lines.
    pub fn repeat(&mut self, bytes: u64) -> Outcome<u64> {
        let Corpus::Lines(lines) = self else { return Ok(1) };
        // What the shortest line costs is as much as some bytes.
        let once: u64 = lines.iter().map(|line| line.len() as u64 + Corpus::OVERHEAD).sum();
        if once == 0 {
            return Err(Failure::environment("the file has no lines: nothing can be sent, and nothing proven"));
        }
        let (times, count) = (bytes.div_ceil(once).max(1), lines.len());
        for _ in 1..times {
            lines.extend_from_within(..count);
        }
        Ok(times)
    }

    /// Writes the lines to a file.
    pub fn write(&self, path: &Path) -> Outcome {
        let Corpus::Lines(lines) = self else { return Ok(()) };
        let write = || {
            let mut file = std::io::BufWriter::new(File::create(path)?);
            lines.iter().try_for_each(|line| Framing::Lines.write(&mut file, line))?;
            std::io::Write::flush(&mut file)
        };
        write().map_err(|e| Failure::file(path, &e))
    }

    /// Names of the streams, and how many records each has.
    pub fn streams(&self) -> Vec<(String, u64)> {
        match self {
            Corpus::Generated(generated) => generated.kinds.iter().map(|kind| (kind.stream(), kind.count)).collect(),
            Corpus::Lines(lines) => vec![(Corpus::LINES.to_string(), lines.len() as u64)],
        }
    }

    /// All records.
    pub fn total(&self) -> u64 {
        self.streams().iter().map(|(_, count)| count).sum()
    }

    /// Is `body` record `number` of stream `index`, byte for byte?
    pub fn is(&self, index: usize, number: u64, body: &[u8], scratch: &mut Vec<u8>) -> bool {
        match self {
            Corpus::Generated(generated) => {
                generated.record(index, number, scratch);
                scratch == body
            }
            Corpus::Lines(lines) => {
                usize::try_from(number).ok().and_then(|n| lines.get(n)).is_some_and(|line| line == body)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_a_function_of_the_seed() {
        let corpus: Generated = "7:10x61,10x5".parse().unwrap();
        assert_eq!(corpus.to_string(), "7:10x61,10x5");
        let record = |corpus: &Generated, index, number| {
            let mut record = Vec::new();
            corpus.record(index, number, &mut record);
            record
        };
        assert_eq!(record(&corpus, 0, 3), record(&corpus, 0, 3));
        assert_ne!(record(&corpus, 0, 3)[9..], record(&corpus, 0, 4)[9..]);
        assert_ne!(record(&Generated { seed: 8, ..corpus.clone() }, 0, 3), record(&corpus, 0, 3));
        assert_eq!(record(&corpus, 1, 3), b"00000");
        let mut scratch = Vec::new();
        let all = Corpus::Generated(corpus.clone());
        assert!(all.is(0, 3, &record(&corpus, 0, 3), &mut scratch));
        assert!(!all.is(0, 4, &record(&corpus, 0, 3), &mut scratch));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "7", "7:", "x:1x1", "7:1x", "7:1x1,"] {
            assert!(text.parse::<Generated>().is_err(), "{text}");
        }
    }
}
