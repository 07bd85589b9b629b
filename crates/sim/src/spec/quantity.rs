//! Numbers with units, read and printed.

use super::{Aqm, Queue};
use crate::{Deviation, Probability};
use core::fmt;
use core::time::Duration;
use stayfast_units::Rate;

/// Units with their sizes, largest first.
pub(crate) type Units = [(&'static str, u64)];

pub(crate) const RATE: [(&str, u64); 4] = [("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000), ("", 1)];
pub(crate) const TIME: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
pub(crate) const BYTES: [(&str, u64); 3] = [("MB", 1_000_000), ("kB", 1_000), ("B", 1)];
pub(crate) const SHARE: [(&str, u64); 1] = [("%", 10_000)];

/// A decimal number with one of these units, in the smallest of them. None if it is not exactly that many.
pub(crate) fn quantity(text: &str, units: &Units) -> Option<u64> {
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
pub(crate) struct Quantity(pub(crate) u64, pub(crate) &'static Units);

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1.iter().find(|(_, size)| self.0.is_multiple_of(*size)) {
            Some((unit, size)) => write!(f, "{}{unit}", self.0 / size),
            None => write!(f, "{}", self.0),
        }
    }
}

pub(crate) fn rate(text: &str) -> Option<Rate> {
    let bits = quantity(text, &RATE)?;
    Some(Rate::from_bits_per_sec(bits)).filter(|rate| *rate != Rate::ZERO)
}

pub(crate) fn time(text: &str) -> Option<Duration> {
    quantity(text, &TIME).map(Duration::from_nanos)
}

pub(crate) fn share(text: &str) -> Option<Probability> {
    let ppm = quantity(text, &SHARE)?;
    u32::try_from(ppm).ok().filter(|ppm| *ppm <= 1_000_000).map(Probability::ppm)
}

pub(crate) fn queue(text: &str) -> Option<Queue> {
    if let Some(thousandths) = quantity(text, &[("bdp", 1_000)]) {
        return Some(Queue::Bdp(u32::try_from(thousandths).ok()?));
    }
    if let Some(packets) = quantity(text, &[("p", 1)]) {
        return Some(Queue::Packets(u32::try_from(packets).ok()?));
    }
    quantity(text, &BYTES).map(Queue::Bytes)
}

const AQM: [(Aqm, &str); 3] = [(Aqm::Red, "red"), (Aqm::CoDel, "codel"), (Aqm::FqCoDel, "fq_codel")];

/// A queue discipline by its name.
pub(crate) fn aqm(text: &str) -> Option<Aqm> {
    AQM.iter().find(|(_, name)| *name == text).map(|(aqm, _)| *aqm)
}

/// The name of a queue discipline.
pub(crate) fn aqm_name(aqm: Aqm) -> &'static str {
    AQM.iter().find(|(known, _)| *known == aqm).map_or("", |(_, name)| name)
}

/// A plain number of datagrams, at least one.
pub(crate) fn count(text: &str) -> Option<u32> {
    text.parse().ok().filter(|count| *count > 0)
}

/// Bytes without a unit.
pub(crate) fn plain_bytes(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// A share and a time, or two times between which it lies: `1%:2ms-10ms`.
pub(crate) fn deviation(text: &str) -> Option<Deviation> {
    let (share, times) = text.split_once(':')?;
    let (least, most) = times.split_once('-').unwrap_or((times, times));
    let deviation = Deviation { share: self::share(share)?, least: time(least)?, most: time(most)? };
    (deviation.least <= deviation.most).then_some(deviation)
}

/// A rate and a burst: `10M:64kB`.
pub(crate) fn police(text: &str) -> Option<(Rate, u64)> {
    let (rate, burst) = text.split_once(':')?;
    Some((self::rate(rate)?, quantity(burst, &BYTES)?))
}

/// A time as it is printed.
pub(crate) fn nanos(time: Duration) -> Quantity {
    Quantity(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), &TIME)
}

/// A rate as it is printed.
pub(crate) fn bits(rate: Rate) -> Quantity {
    Quantity(rate.bits_per_sec(), &RATE)
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.share, nanos(self.least))?;
        if self.most == self.least { Ok(()) } else { write!(f, "-{}", nanos(self.most)) }
    }
}
