pub(crate) mod quantity;

use crate::queue::FULL_SIZE;
use crate::{Bleach, CoDel, Deviation, Discipline, Element, Limit, Path, Probability, Red};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use quantity::{BYTES, Quantity, bits, nanos};
use stayfast_units::Rate;

/// A path, both directions, as a line of text has it: `rate=50M rtt=40ms jitter=3ms loss=1% queue=1bdp seed=7`.
///
/// | word | meaning | if absent |
/// |---|---|---|
/// | `rate=50M` | bit/s of the bottleneck on the forward direction; `k`, `M`, `G` | no bottleneck |
/// | `both` | the bottleneck and the policer are on the way back as well | |
/// | `queue=1bdp` | what may wait at it: `bdp` (rate x RTT), `B`, `kB`, `MB`, or `p` for datagrams | `1bdp` |
/// | `aqm=codel` | its queue discipline, with the values of its document: `red`, `codel` or `fq_codel` | drop-tail |
/// | `ecn` | it marks what takes part in ECN instead of dropping it | |
/// | `rtt=40ms` | delay, half of it each way; `s`, `ms`, `us`, `ns` | 0 |
/// | `jitter=3ms` | each datagram's delay differs from that by up to so much, earlier or later, each way | 0 |
/// | `ordered` | jitter does not let datagrams overtake | |
/// | `loss=1%` | loss of each datagram, each way, before the bottleneck | 0 |
/// | `burst=4` | losses come in bursts of so many datagrams on average | each by itself |
/// | `dup=1%` | a second copy of each datagram, each way | 0 |
/// | `corrupt=1%` | a flipped bit, each way | 0 |
/// | `late=1%:2ms-10ms` | this share comes later than the rest by a time between these, each way | 0 |
/// | `early=1%:2ms-10ms` | and this share earlier, but never before it was sent | 0 |
/// | `mtu=1420` | IP packets of more bytes vanish, each way | no limit |
/// | `police=10M:64kB` | a policer of this rate and burst before the bottleneck | none |
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
    /// Are it and the policer on the way back as well?
    pub both: bool,
    /// What may wait at it.
    pub queue: Queue,
    /// Its queue discipline, if it is not drop-tail.
    pub aqm: Option<Aqm>,
    /// Does it mark instead of dropping?
    pub ecn: bool,
    /// Delay of both directions together.
    pub rtt: Duration,
    /// How much earlier or later than half the RTT a datagram may come; never before it was sent.
    pub jitter: Duration,
    /// Does jitter keep the order?
    pub ordered: bool,
    /// Loss, each way.
    pub loss: Probability,
    /// Mean length of the bursts in which loss comes, in datagrams; without it each datagram is lost by itself.
    pub burst: Option<u32>,
    /// Duplication, each way.
    pub duplicate: Probability,
    /// Corruption, each way.
    pub corrupt: Probability,
    /// Those that come later than the rest, each way.
    pub late: Deviation,
    /// Those that come earlier, each way.
    pub early: Deviation,
    /// The largest IP packet that gets through, in bytes, each way.
    pub mtu: Option<u64>,
    /// Rate of the policer and the bytes that it lets pass at once.
    pub police: Option<(Rate, u64)>,
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

/// A queue discipline by name, with the parameters that its document gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aqm {
    /// [`Discipline::Red`].
    Red,
    /// [`Discipline::CoDel`].
    CoDel,
    /// [`Discipline::FqCoDel`].
    FqCoDel,
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
                write!(f, "`{word}` is none of {WORDS}")
            }
            PathError::Value { word, expected } => write!(f, "`{word}`: expected {expected}"),
            PathError::Twice { word } => write!(f, "`{word}`: was given before"),
            PathError::Needs { word, other } => write!(f, "`{word}` means nothing without {other}"),
        }
    }
}

const WORDS: &str =
    "rate= both queue= aqm= ecn rtt= jitter= ordered loss= burst= dup= corrupt= late= early= mtu= police= seed=";

impl PathSpec {
    /// The direction with the bottleneck: what harms datagrams, then jitter and delay, then policer and rate.
    pub fn forward(&self) -> Path {
        self.direction("forward", self.forward_elements())
    }

    /// The other direction.
    pub fn back(&self) -> Path {
        self.direction("back", self.back_elements())
    }

    fn direction(&self, name: &str, elements: Vec<Element>) -> Path {
        elements.into_iter().fold(Path::new(), Path::with).seeded(self.seed, name)
    }

    /// The elements of [`PathSpec::forward`]. Set one after the other, they change a path that was made of another
    /// spec into one of this, in mid-flow and without a shift in anyone's chance; [`PathSpec::fixed`] tells what does
    /// not change.
    ///
    /// ```
    /// use stayfast_sim::PathSpec;
    /// use stayfast_units::Time;
    ///
    /// let (before, after): (PathSpec, PathSpec) = ("rate=50M rtt=20ms".parse()?, "rate=5M rtt=80ms".parse()?);
    /// assert_eq!(before.fixed(&after), None);
    /// let mut path = before.forward();
    /// assert!(after.forward_elements().into_iter().all(|element| path.set(Time::from_millis(5_000), element)));
    /// # Ok::<(), stayfast_sim::PathError>(())
    /// ```
    pub fn forward_elements(&self) -> Vec<Element> {
        self.elements(self.rtt / 2, true)
    }

    /// The elements of [`PathSpec::back`], for the same purpose.
    pub fn back_elements(&self) -> Vec<Element> {
        self.elements(self.rtt - self.rtt / 2, self.both)
    }

    /// The first word in which a later spec differs and may not, because a path in mid-flow cannot follow: whether
    /// there is a bottleneck and where, its discipline, whether jitter reorders, and the seed.
    pub fn fixed(&self, later: &PathSpec) -> Option<&'static str> {
        let differs = [
            (self.rate.is_some() != later.rate.is_some(), "rate="),
            (self.both != later.both, "both"),
            (self.aqm != later.aqm, "aqm="),
            (self.ordered != later.ordered, "ordered"),
            (self.seed != later.seed, "seed="),
        ];
        differs.into_iter().find_map(|(differs, word)| differs.then_some(word))
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

    /// How the bottleneck treats its queue.
    pub fn discipline(&self) -> Discipline {
        let codel = CoDel { ecn: self.ecn, ..CoDel::default() };
        match self.aqm {
            None => Discipline::DropTail,
            Some(Aqm::Red) => Discipline::Red(Red { ecn: self.ecn, ..Red::default() }),
            Some(Aqm::CoDel) => Discipline::CoDel(codel),
            Some(Aqm::FqCoDel) => Discipline::FqCoDel(codel),
        }
    }

    /// The delay is a constant, a part that jitter only adds to, and a part that some datagrams leave early. Elements
    /// that would do nothing are there all the same, so that [`Path::set`] can change them.
    fn elements(&self, delay: Duration, narrow: bool) -> Vec<Element> {
        let (alone, in_bursts) = match self.burst {
            None => (self.loss, Probability::ZERO),
            Some(_) => (Probability::ZERO, self.loss),
        };
        let (least, most) = (self.early.least.min(delay), self.early.most.min(delay));
        let delay = delay - most;
        let constant = delay.saturating_sub(self.jitter);
        let spread = delay.saturating_add(self.jitter) - constant;
        let (police, burst) = self.police.filter(|_| narrow).unwrap_or((Rate::ZERO, u64::MAX));
        let bottleneck = self.rate.filter(|_| narrow);
        let head = [
            Element::Mtu(self.mtu.unwrap_or(u64::MAX)),
            Element::Bleach(Bleach::Off),
            Element::LoseNext(0),
            Element::Loss(alone),
            Element::BurstLoss(in_bursts, self.burst.unwrap_or(1)),
            Element::Duplicate(self.duplicate),
            Element::Corrupt(self.corrupt),
            Element::Late(self.late),
            Element::Early(Deviation { least, most, ..self.early }),
            if self.ordered { Element::OrderedJitter(spread) } else { Element::Jitter(spread) },
            Element::Delay(constant),
            Element::Policer(police, burst),
        ];
        let bottleneck = bottleneck.map(|rate| Element::Bottleneck(rate, self.limit(), self.discipline()));
        head.into_iter().chain(bottleneck).chain([Element::Outage(false)]).collect()
    }

    /// Words that mean nothing without others.
    fn needs(&self, key: &str) -> Option<&'static str> {
        match key {
            "queue" | "aqm" => self.rate.is_none().then_some("rate="),
            "both" => (self.rate.is_none() && self.police.is_none()).then_some("rate= or police="),
            "ecn" => self.aqm.is_none().then_some("aqm="),
            "burst" => (self.loss == Probability::ZERO).then_some("loss="),
            _ => None,
        }
    }

    /// Can so much be lost in bursts of this length, with a datagram between any two?
    fn bursts_fit(&self) -> bool {
        let lost = u64::from(self.loss.as_ppm());
        self.burst.is_none_or(|length| lost <= (1_000_000 - lost) * u64::from(length))
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
        for word in text.split_whitespace() {
            if let Some(other) = spec.needs(key(word)) {
                return Err(PathError::Needs { word: word.to_string(), other });
            }
            if key(word) == "burst" && !spec.bursts_fit() {
                let expected = "bursts of n for a loss of at most n / (n + 1)";
                return Err(PathError::Value { word: word.to_string(), expected });
            }
        }
        Ok(spec)
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
        const SHARE: &str = "a share such as 1% or 0.05%, at most 100%";
        const DEVIATION: &str = "a share and a time or two, such as 1%:5ms or 1%:2ms-10ms";
        match key {
            "rate" => {
                let rate = value.and_then(quantity::rate).map(Some);
                read(put(&mut self.rate, rate), "bit/s above 0, such as 50M, 1.5G or 64k")
            }
            "queue" => {
                read(put(&mut self.queue, value.and_then(quantity::queue)), "a length such as 1bdp, 64kB or 100p")
            }
            "aqm" => read(put(&mut self.aqm, value.and_then(quantity::aqm).map(Some)), "red, codel or fq_codel"),
            "ecn" => read(put(&mut self.ecn, flag()), "no value"),
            "rtt" => read(put(&mut self.rtt, value.and_then(quantity::time)), "a time such as 40ms, 1.5s or 200us"),
            "jitter" => read(put(&mut self.jitter, value.and_then(quantity::time)), "a time such as 3ms"),
            "loss" => read(put(&mut self.loss, value.and_then(quantity::share)), SHARE),
            "burst" => {
                let burst = value.and_then(quantity::count).map(Some);
                read(put(&mut self.burst, burst), "a whole number of datagrams above 0")
            }
            "dup" => read(put(&mut self.duplicate, value.and_then(quantity::share)), SHARE),
            "corrupt" => read(put(&mut self.corrupt, value.and_then(quantity::share)), SHARE),
            "late" => read(put(&mut self.late, value.and_then(quantity::deviation)), DEVIATION),
            "early" => read(put(&mut self.early, value.and_then(quantity::deviation)), DEVIATION),
            "mtu" => {
                let mtu = value.and_then(quantity::plain_bytes).map(Some);
                read(put(&mut self.mtu, mtu), "bytes of the largest IP packet, such as 1420")
            }
            "police" => {
                let police = value.and_then(quantity::police).map(Some);
                read(put(&mut self.police, police), "a rate and a burst, such as 10M:64kB")
            }
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
        let (police, burst) = self.police.unwrap_or_default();
        word(self.rate.is_some(), "rate=", &bits(self.rate.unwrap_or_default()))?;
        word(self.both, "both", &"")?;
        word(self.queue != Queue::default(), "queue=", &self.queue)?;
        word(self.aqm.is_some(), "aqm=", &self.aqm.map_or("", quantity::aqm_name))?;
        word(self.ecn, "ecn", &"")?;
        word(!self.rtt.is_zero(), "rtt=", &nanos(self.rtt))?;
        word(!self.jitter.is_zero(), "jitter=", &nanos(self.jitter))?;
        word(self.ordered, "ordered", &"")?;
        word(self.loss != Probability::ZERO, "loss=", &self.loss)?;
        word(self.burst.is_some(), "burst=", &self.burst.unwrap_or_default())?;
        word(self.duplicate != Probability::ZERO, "dup=", &self.duplicate)?;
        word(self.corrupt != Probability::ZERO, "corrupt=", &self.corrupt)?;
        word(self.late != Deviation::default(), "late=", &self.late)?;
        word(self.early != Deviation::default(), "early=", &self.early)?;
        word(self.mtu.is_some(), "mtu=", &self.mtu.unwrap_or_default())?;
        word(self.police.is_some(), "police=", &format_args!("{}:{}", bits(police), Quantity(burst, &BYTES)))?;
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
        let text = "rate=50M both queue=0.500bdp aqm=fq_codel ecn rtt=40ms jitter=2500us ordered loss=0.03% burst=4 dup=12.5% corrupt=1% \
                    late=1%:2ms-10ms early=25%:5ms mtu=1420 police=10M:64kB seed=7";
        let spec = parse(text).unwrap();
        assert_eq!(spec.rate, Some(Rate::from_bits_per_sec(50_000_000)));
        assert_eq!(spec.queue, Queue::Bdp(500));
        assert_eq!(spec.limit(), Limit::Bytes(125_000));
        assert_eq!(spec.jitter, Duration::from_micros(2_500));
        assert_eq!(spec.loss, Probability::ppm(300));
        assert_eq!(spec.duplicate, Probability::ppm(125_000));
        assert_eq!(spec.discipline(), Discipline::FqCoDel(CoDel { ecn: true, ..CoDel::default() }));
        assert_eq!(parse("rate=1M aqm=red").unwrap().discipline(), Discipline::Red(Red::default()));
        assert_eq!(parse("rate=1M aqm=codel").unwrap().discipline(), Discipline::CoDel(CoDel::default()));
        assert_eq!(spec.burst, Some(4));
        let ms = Duration::from_millis;
        assert_eq!(spec.late, Deviation { share: Probability::percent(1), least: ms(2), most: ms(10) });
        assert_eq!(spec.early, Deviation { share: Probability::percent(25), least: ms(5), most: ms(5) });
        assert_eq!((spec.mtu, spec.police), (Some(1_420), Some((Rate::from_bits_per_sec(10_000_000), 64_000))));
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
        for word in [
            "late=1%",
            "late=2ms",
            "late=1%:5ms-2ms",
            "early=1%:",
            "early=:1ms",
            "police=10M",
            "aqm=pie",
            "aqm",
            "ecn=1",
        ] {
            assert!(matches!(parse(word), Err(PathError::Value { .. })), "{word}");
        }
        for word in ["mtu=", "mtu=1kB", "mtu=-1", "mtu=1420.5", "burst=0", "burst=1.5", "corrupt=1"] {
            assert!(matches!(parse(word), Err(PathError::Value { .. })), "{word}");
        }
        for word in ["loss=101%", "loss=1", "rate=0", "rate=7", "rate=99999999999G", "queue=9999999999p", "both=1"] {
            assert!(matches!(parse(word), Err(PathError::Value { .. })), "{word}");
        }
    }

    #[test]
    fn errors_name_the_word() {
        assert_eq!(
            parse("rtt=1s los=1%").unwrap_err().to_string(),
            "`los=1%` is none of rate= both queue= aqm= ecn rtt= jitter= ordered loss= burst= dup= corrupt= late= early= mtu= \
             police= seed="
        );
        assert_eq!(parse("rtt=1s rtt=2s").unwrap_err().to_string(), "`rtt=2s`: was given before");
        assert_eq!(parse("queue=2bdp").unwrap_err().to_string(), "`queue=2bdp` means nothing without rate=");
        assert_eq!(parse("both").unwrap_err(), PathError::Needs { word: "both".into(), other: "rate= or police=" });
        assert!(parse("both police=1M:9kB").is_ok());
        assert_eq!(parse("ecn rate=1M").unwrap_err().to_string(), "`ecn` means nothing without aqm=");
        assert_eq!(parse("aqm=red").unwrap_err().to_string(), "`aqm=red` means nothing without rate=");
        assert_eq!(parse("rate=1M aqm=pie").unwrap_err().to_string(), "`aqm=pie`: expected red, codel or fq_codel");
        assert_eq!(parse("burst=2").unwrap_err().to_string(), "`burst=2` means nothing without loss=");
        assert!(parse("loss=66% burst=2").is_ok());
        assert_eq!(
            parse("burst=2 loss=67%").unwrap_err().to_string(),
            "`burst=2`: expected bursts of n for a loss of at most n / (n + 1)"
        );
        assert_eq!(
            parse("late=1%").unwrap_err().to_string(),
            "`late=1%`: expected a share and a time or two, such as 1%:5ms or 1%:2ms-10ms"
        );
    }

    #[test]
    fn what_a_path_cannot_become_is_named() {
        let before = parse("rate=50M rtt=20ms").unwrap();
        for (later, word) in [
            ("rtt=20ms", Some("rate=")),
            ("rate=50M both", Some("both")),
            ("rate=50M aqm=codel", Some("aqm=")),
            ("rate=50M ordered", Some("ordered")),
            ("rate=50M seed=1", Some("seed=")),
            ("rate=5M rtt=80ms queue=9p jitter=3ms loss=9% burst=2 dup=1% corrupt=1% late=1%:5ms mtu=1280", None),
        ] {
            assert_eq!(before.fixed(&parse(later).unwrap()), word, "{later}");
        }
    }

    #[test]
    fn a_bandwidth_delay_product_of_nothing_still_holds_one_datagram() {
        assert_eq!(parse("rate=50M").unwrap().limit(), Limit::Bytes(FULL_SIZE));
        assert_eq!(format!("{}", parse("rate=50M queue=1bdp").unwrap()), "rate=50M");
    }
}
