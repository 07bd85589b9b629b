use crate::{Limit, Path, Probability};
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use stayfast_units::Rate;

/// A path, both directions, as a line of text has it: `rate=50M rtt=40ms jitter=3ms loss=1% queue=1bdp seed=7`.
///
/// | word | meaning | if absent |
/// |---|---|---|
/// | `rate=50M` | bit/s of the bottleneck on the forward direction; `k`, `M`, `G` | no bottleneck |
/// | `both` | the bottleneck is on the way back as well | |
/// | `queue=1bdp` | what may wait at it: `bdp` (rate x RTT), `B`, `kB`, `MB`, or `p` for datagrams | `1bdp` |
/// | `rtt=40ms` | delay, half of it each way; `s`, `ms`, `us`, `ns` | 0 |
/// | `jitter=3ms` | each datagram's delay differs from that by up to so much, earlier or later, each way | 0 |
/// | `ordered` | jitter does not let datagrams overtake | |
/// | `loss=1%` | loss of each datagram, each way, before the bottleneck | 0 |
/// | `dup=1%` | a second copy of each datagram, each way | 0 |
/// | `seed=7` | where all chance comes from | 0 |
///
/// Numbers may have a decimal point. What [`Display`](fmt::Display) prints parses to the same value.
///
/// ```
/// use core::time::Duration;
/// use stayfast_sim::{PathError, PathSpec};
///
/// let spec: PathSpec = "rate=50M rtt=40ms jitter=3ms loss=1% queue=0.5bdp seed=7".parse().unwrap();
/// assert_eq!(spec.rtt, Duration::from_millis(40));
/// assert_eq!(spec.to_string().parse(), Ok(spec));
/// let forward = spec.forward();
/// let back = spec.back();
///
/// let error: PathError = "rtt=40parsecs".parse::<PathSpec>().unwrap_err();
/// assert_eq!(error.to_string(), "`rtt=40parsecs`: expected a time such as 40ms, 1.5s or 200us");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSpec {
    /// The bottleneck.
    pub rate: Option<Rate>,
    /// Is it on the way back as well?
    pub both: bool,
    /// What may wait at it.
    pub queue: Queue,
    /// Delay of both directions together.
    pub rtt: Duration,
    /// How much earlier or later than half the RTT a datagram may come; never before it was sent.
    pub jitter: Duration,
    /// Does jitter keep the order?
    pub ordered: bool,
    /// Loss, each way.
    pub loss: Probability,
    /// Duplication, each way.
    pub duplicate: Probability,
    /// Where all chance comes from.
    pub seed: u64,
}

/// How much may wait at a bottleneck, in units that a person thinks in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Thousandths of the bandwidth-delay product; at least one full-size datagram.
    Bdp(u32),
    /// Bytes on the wire.
    Bytes(u64),
    /// Datagrams.
    Packets(u32),
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::Bdp(1_000)
    }
}

/// Why a text is no path. Each names the word to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathError {
    /// There is no such word.
    Unknown {
        /// The word.
        word: String,
    },
    /// The value cannot be read, or is out of range.
    Value {
        /// The whole word.
        word: String,
        /// What would do.
        expected: &'static str,
    },
    /// It has been said before.
    Twice {
        /// The second word.
        word: String,
    },
    /// It means nothing without another word.
    Needs {
        /// The word.
        word: String,
        /// The other word.
        other: &'static str,
    },
}

impl core::error::Error for PathError {}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathError::Unknown { word } => {
                write!(f, "`{word}` is none of rate= both queue= rtt= jitter= ordered loss= dup= seed=")
            }
            PathError::Value { word, expected } => write!(f, "`{word}`: expected {expected}"),
            PathError::Twice { word } => write!(f, "`{word}`: was given before"),
            PathError::Needs { word, other } => write!(f, "`{word}` means nothing without {other}"),
        }
    }
}

/// A datagram of 1,500 B with its Ethernet header.
const FULL_SIZE: u64 = 1_514;

impl PathSpec {
    /// The direction with the bottleneck: loss, duplication, jitter, delay, then the rate.
    pub fn forward(&self) -> Path {
        self.direction("forward", self.rtt / 2, self.rate)
    }

    /// The other direction.
    pub fn back(&self) -> Path {
        self.direction("back", self.rtt - self.rtt / 2, self.rate.filter(|_| self.both))
    }

    /// What may wait at the bottleneck.
    pub fn limit(&self) -> Limit {
        match self.queue {
            Queue::Bytes(bytes) => Limit::Bytes(bytes),
            Queue::Packets(packets) => Limit::Packets(packets),
            Queue::Bdp(thousandths) => {
                let bdp = self.rate.unwrap_or_default().scaled(thousandths, 1_000).bytes_in(self.rtt);
                Limit::Bytes(bdp.max(FULL_SIZE))
            }
        }
    }

    /// The jitter of half the RTT, give or take, is a constant and a part that only adds. Elements that would do
    /// nothing are there all the same, so that [`Path::set`] can change them.
    fn direction(&self, name: &str, delay: Duration, rate: Option<Rate>) -> Path {
        let constant = delay.saturating_sub(self.jitter);
        let spread = delay.saturating_add(self.jitter) - constant;
        let path = Path::new().loss(self.loss).duplicate(self.duplicate);
        let path = if self.ordered { path.ordered_jitter(spread) } else { path.jitter(spread) };
        let path = path.delay(constant);
        let path = match rate {
            Some(rate) => path.rate(rate, self.limit()),
            None => path,
        };
        path.outage().seeded(self.seed, name)
    }
}

impl FromStr for PathSpec {
    type Err = PathError;

    fn from_str(text: &str) -> Result<PathSpec, PathError> {
        let mut spec = PathSpec::default();
        for (i, word) in text.split_whitespace().enumerate() {
            let key = key(word);
            if text.split_whitespace().take(i).any(|earlier| self::key(earlier) == key) {
                return Err(PathError::Twice { word: word.to_string() });
            }
            spec.take(key, word)?;
        }
        let mut words = text.split_whitespace();
        match words.find(|word| matches!(key(word), "queue" | "both")).filter(|_| spec.rate.is_none()) {
            Some(word) => Err(PathError::Needs { word: word.to_string(), other: "rate=" }),
            None => Ok(spec),
        }
    }
}

fn key(word: &str) -> &str {
    word.split_once('=').map_or(word, |(key, _)| key)
}

impl PathSpec {
    fn take(&mut self, key: &str, word: &str) -> Result<(), PathError> {
        let value = word.split_once('=').map(|(_, value)| value);
        let flag = || value.is_none().then_some(true);
        let read = |it: bool, expected| {
            if it { Ok(()) } else { Err(PathError::Value { word: word.to_string(), expected }) }
        };
        match key {
            "rate" => {
                read(put(&mut self.rate, value.and_then(rate).map(Some)), "bit/s above 0, such as 50M, 1.5G or 64k")
            }
            "queue" => read(put(&mut self.queue, value.and_then(queue)), "a length such as 1bdp, 64kB or 100p"),
            "rtt" => read(put(&mut self.rtt, value.and_then(time)), "a time such as 40ms, 1.5s or 200us"),
            "jitter" => read(put(&mut self.jitter, value.and_then(time)), "a time such as 3ms"),
            "loss" => read(put(&mut self.loss, value.and_then(share)), "a share such as 1% or 0.05%, at most 100%"),
            "dup" => read(put(&mut self.duplicate, value.and_then(share)), "a share such as 1% or 0.05%, at most 100%"),
            "seed" => read(put(&mut self.seed, value.and_then(|v| v.parse().ok())), "a whole number"),
            "both" => read(put(&mut self.both, flag()), "no value"),
            "ordered" => read(put(&mut self.ordered, flag()), "no value"),
            _ => Err(PathError::Unknown { word: word.to_string() }),
        }
    }
}

/// Sets `place` if there is a value.
fn put<T>(place: &mut T, value: Option<T>) -> bool {
    value.map(|value| *place = value).is_some()
}

fn rate(text: &str) -> Option<Rate> {
    let bits = quantity(text, &RATE)?;
    Some(Rate::from_bits_per_sec(bits)).filter(|rate| *rate != Rate::ZERO)
}

fn time(text: &str) -> Option<Duration> {
    quantity(text, &TIME).map(Duration::from_nanos)
}

fn share(text: &str) -> Option<Probability> {
    let ppm = quantity(text, &SHARE)?;
    u32::try_from(ppm).ok().filter(|ppm| *ppm <= 1_000_000).map(Probability::ppm)
}

fn queue(text: &str) -> Option<Queue> {
    if let Some(thousandths) = quantity(text, &[("bdp", 1_000)]) {
        return Some(Queue::Bdp(u32::try_from(thousandths).ok()?));
    }
    if let Some(packets) = quantity(text, &[("p", 1)]) {
        return Some(Queue::Packets(u32::try_from(packets).ok()?));
    }
    quantity(text, &BYTES).map(Queue::Bytes)
}

/// Units with their sizes, largest first.
type Units = [(&'static str, u64)];

const RATE: [(&str, u64); 4] = [("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000), ("", 1)];
const TIME: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
const BYTES: [(&str, u64); 3] = [("MB", 1_000_000), ("kB", 1_000), ("B", 1)];
const SHARE: [(&str, u64); 1] = [("%", 10_000)];

/// A decimal number with one of these units, in the smallest of them. None if it is not exactly that many.
fn quantity(text: &str, units: &Units) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let size = units.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let mut value = whole.parse::<u64>().ok()?.checked_mul(size)?;
    let mut place = size;
    for digit in decimals.trim_end_matches('0').bytes() {
        if place % 10 != 0 || !digit.is_ascii_digit() {
            return None;
        }
        place /= 10;
        value = value.checked_add(u64::from(digit - b'0') * place)?;
    }
    (!decimals.is_empty()).then_some(value)
}

/// A value, printed in the largest of these units of which it is a whole number.
struct Quantity(u64, &'static Units);

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1.iter().find(|(_, size)| self.0.is_multiple_of(*size)) {
            Some((unit, size)) => write!(f, "{}{unit}", self.0 / size),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::Bdp(thousandths) if thousandths % 1_000 == 0 => write!(f, "{}bdp", thousandths / 1_000),
            Queue::Bdp(thousandths) => write!(f, "{}.{:03}bdp", thousandths / 1_000, thousandths % 1_000),
            Queue::Bytes(bytes) => Quantity(*bytes, &BYTES).fmt(f),
            Queue::Packets(packets) => write!(f, "{packets}p"),
        }
    }
}

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gap = "";
        let mut word = |say: bool, key: &str, value: &dyn fmt::Display| {
            if !say {
                return Ok(());
            }
            write!(f, "{gap}{key}{value}")?;
            gap = " ";
            Ok(())
        };
        let nanos = |time: Duration| Quantity(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), &TIME);
        let bits = self.rate.unwrap_or_default().bits_per_sec();
        word(self.rate.is_some(), "rate=", &Quantity(bits, &RATE))?;
        word(self.both, "both", &"")?;
        word(self.queue != Queue::default(), "queue=", &self.queue)?;
        word(!self.rtt.is_zero(), "rtt=", &nanos(self.rtt))?;
        word(!self.jitter.is_zero(), "jitter=", &nanos(self.jitter))?;
        word(self.ordered, "ordered", &"")?;
        word(self.loss != Probability::ZERO, "loss=", &self.loss)?;
        word(self.duplicate != Probability::ZERO, "dup=", &self.duplicate)?;
        word(self.seed != 0, "seed=", &self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    fn parse(text: &str) -> Result<PathSpec, PathError> {
        text.parse()
    }

    #[test]
    fn every_word_is_understood_and_printed() {
        let text = "rate=50M both queue=0.500bdp rtt=40ms jitter=2500us ordered loss=0.03% dup=12.5% seed=7";
        let spec = parse(text).unwrap();
        assert_eq!(spec.rate, Some(Rate::from_bits_per_sec(50_000_000)));
        assert_eq!(spec.queue, Queue::Bdp(500));
        assert_eq!(spec.limit(), Limit::Bytes(125_000));
        assert_eq!(spec.jitter, Duration::from_micros(2_500));
        assert_eq!(spec.loss, Probability::ppm(300));
        assert_eq!(spec.duplicate, Probability::ppm(125_000));
        assert_eq!(spec.to_string(), text);
        assert_eq!(parse(""), Ok(PathSpec::default()));
        assert_eq!(PathSpec::default().to_string(), "");
    }

    #[test]
    fn units_are_exact_or_refused() {
        assert_eq!(parse("rtt=1.5s").unwrap().rtt, parse("rtt=1500ms").unwrap().rtt);
        assert_eq!(parse("rate=1.5k").unwrap().rate, Some(Rate::from_bits_per_sec(1_500)));
        assert_eq!(parse("rate=1M queue=64kB").unwrap().queue, Queue::Bytes(64_000));
        assert_eq!(parse("rate=1M queue=10p").unwrap().queue, Queue::Packets(10));
        for word in ["rtt=1.5ns", "rtt=5", "rtt=", "rtt=ms", "rtt=.5s", "rtt=1.s", "rtt=1.2.3s", "rtt=-1s", "rtt"] {
            assert!(matches!(parse(word), Err(PathError::Value { word: bad, .. }) if bad == word), "{word}");
        }
        for word in ["loss=101%", "loss=1", "rate=0", "rate=7", "rate=99999999999G", "queue=9999999999p", "both=1"] {
            assert!(matches!(parse(word), Err(PathError::Value { .. })), "{word}");
        }
    }

    #[test]
    fn errors_name_the_word() {
        assert_eq!(
            parse("rtt=1s los=1%").unwrap_err().to_string(),
            "`los=1%` is none of rate= both queue= rtt= jitter= ordered loss= dup= seed="
        );
        assert_eq!(parse("rtt=1s rtt=2s").unwrap_err().to_string(), "`rtt=2s`: was given before");
        assert_eq!(parse("queue=2bdp").unwrap_err().to_string(), "`queue=2bdp` means nothing without rate=");
        assert_eq!(parse("both").unwrap_err(), PathError::Needs { word: "both".into(), other: "rate=" });
    }

    #[test]
    fn a_bandwidth_delay_product_of_nothing_still_holds_one_datagram() {
        assert_eq!(parse("rate=50M").unwrap().limit(), Limit::Bytes(FULL_SIZE));
        assert_eq!(format!("{}", parse("rate=50M queue=1bdp").unwrap()), "rate=50M");
    }
}
