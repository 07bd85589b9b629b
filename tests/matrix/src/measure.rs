//! What the points of a run tell.

use crate::run::{Latency, Point};
use stayfast_sim::{ETHERNET, PathSpec, Probability};
use stayfast_units::Time;
use std::time::Duration;

/// Headers of IPv4 and UDP.
const IP_UDP: u64 = 28;
/// The largest IP packet of Ethernet.
const PACKET_MAX: u64 = 1_500;
/// Goodput is counted over so long to see when it is back.
const WINDOW: Duration = Duration::from_millis(200);

/// What a path carries of full datagrams, bytes of their contents a second. What it loses before the bottleneck costs
/// nothing there, unless it is everything.
pub(crate) fn ceiling(spec: &PathSpec) -> Option<u64> {
    let packet = spec.mtu.unwrap_or(PACKET_MAX).clamp(IP_UDP, PACKET_MAX);
    let slowest = spec.rate?.min(spec.police.map_or(spec.rate?, |(rate, _)| rate)).bytes_per_sec();
    let open = spec.loss != Probability::ONE;
    Some(if open { slowest * (packet - IP_UDP) / (packet + ETHERNET) } else { 0 })
}

/// The last point at or before a time.
pub(crate) fn at(points: &[Point], time: Time) -> Option<&Point> {
    points[..points.partition_point(|point| point.at <= time)].last()
}

/// The part that the flow has of what all got between two times.
pub(crate) fn share(points: &[Point], from: Time, until: Time) -> f64 {
    let at = |time| at(points, time).map_or((0, 0), |point| (point.taken, point.beside));
    let (before, after) = (at(from), at(until));
    let (ours, theirs) = (after.0 - before.0, after.1 - before.1);
    ours as f64 / (ours + theirs).max(1) as f64
}

/// What a path could have carried between two times, bytes.
fn carried(points: &[Point], from: Time, until: Time) -> Option<f64> {
    let inside = points.windows(2).filter(|pair| pair[0].at >= from && pair[1].at <= until);
    inside.map(|pair| Some(pair[1].ceiling? as f64 * (pair[1].at - pair[0].at).as_secs_f64())).sum()
}

/// What all flows got of what the path could carry.
pub(crate) fn of_path(points: &[Point], (from, until): (Time, Time), size: usize) -> Option<f64> {
    let taken = |time| at(points, time).map_or(0, |point| point.taken + point.beside);
    let carried = carried(points, from, until)?;
    (carried > 0.0).then(|| (taken(until) - taken(from)) as f64 * size as f64 / carried)
}

/// How long after the last change the flow used nine tenths of what it had used of the path before the first,
/// milliseconds. What it had used is counted over the second half of the time before.
pub(crate) fn back(points: &[Point], (from, until): (Time, Time), (first, last): (Time, Time)) -> Option<u64> {
    let taken = |time| at(points, time).map_or(0, |point| point.taken);
    let middle = from + (first - from) / 2;
    let used = (taken(first) - taken(middle)) as f64 / carried(points, middle, first)?;
    let after = points.iter().filter(|point| point.at >= last && point.at + WINDOW <= until);
    let is_back = |point: &&Point| {
        let records = taken(point.at + WINDOW) - point.taken;
        let carries = point.ceiling.unwrap_or(0) as f64 * WINDOW.as_secs_f64();
        used > 0.0 && carries > 0.0 && records as f64 >= 0.9 * used * carries
    };
    after.into_iter().find(is_back).map(|point| (point.at + WINDOW - last).as_millis() as u64)
}

/// Record `n` was offered `n` intervals after the first.
pub(crate) fn latency(taken: &[(Time, u64)], (first, interval): (Time, Duration), count: u32) -> Latency {
    let mut waits = Vec::with_capacity(count as usize);
    for &(at, records) in taken {
        for n in waits.len() as u32..records.min(count.into()) as u32 {
            waits.push((at - (first + interval * n)).as_micros() as u64);
        }
    }
    let missing = u64::from(count) - waits.len() as u64;
    summary(waits, missing)
}

/// Of the records that arrived, and how many did not.
pub(crate) fn summary(mut waits: Vec<u64>, missing: u64) -> Latency {
    waits.sort_unstable();
    let at = |permille: usize| waits.get((waits.len() * permille / 1_000).min(waits.len().saturating_sub(1)));
    Latency {
        p50: at(500).copied().unwrap_or(0),
        p99: at(990).copied().unwrap_or(0),
        max: waits.last().copied().unwrap_or(0),
        missing,
    }
}
