//! Datagrams with numbers, sent through a path, for the tests of elements.
#![allow(dead_code)] // Not every test needs all of it.

use core::net::SocketAddr;
use core::ops::RangeInclusive;
use core::time::Duration;
use stayfast_sim::{Datagram, Path, Probability};
use stayfast_units::Time;

pub const HOST: &str = "10.0.0.1:1";
pub const SEEDS: core::ops::Range<u64> = 0..8;

pub fn datagram(number: u64, wire_size: usize) -> Datagram {
    let host: SocketAddr = HOST.parse().unwrap();
    let mut bytes = vec![0; wire_size - 42];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Datagram::new(host, host, bytes)
}

pub fn number(datagram: &Datagram) -> u64 {
    u64::from_le_bytes(*datagram.bytes.first_chunk().unwrap())
}

/// Sends `count` datagrams of 100 B on the wire, one every `every`, and returns (number, time) as they come out.
pub fn send(path: &mut Path, count: u64, every: Duration) -> Vec<(u64, Time)> {
    let mut out = Vec::new();
    let mut now = Time::ZERO;
    for n in 0..count {
        path.push(now, datagram(n, 100));
        now += every;
        drain(path, now, &mut out);
    }
    drain(path, Time::MAX, &mut out);
    out
}

pub fn drain(path: &mut Path, until: Time, out: &mut Vec<(u64, Time)>) {
    while let Some(due) = path.next_timeout().filter(|due| *due <= until) {
        out.extend(path.pop(due).map(|datagram| (number(&datagram), due)));
    }
}

/// Five standard deviations of a binomial distribution about its mean.
pub fn expected(count: u64, probability: Probability) -> RangeInclusive<u64> {
    let p = u64::from(probability.as_ppm());
    let mean = count * p / 1_000_000;
    let deviation = (mean * (1_000_000 - p) / 1_000_000).isqrt() + 1;
    mean.saturating_sub(5 * deviation)..=mean + 5 * deviation
}
