//! One transport on one cell with one seed.

use crate::peers::{Flow, Kind, Place, Sample};
use crate::plan::{Cell, Load, PlanError};
use serde::Serialize;
use stayfast_sim::{PathId, PathSpec, World};
use stayfast_units::Time;
use std::time::Duration;

/// How often the state is looked at.
const STEP: Duration = Duration::from_millis(10);
/// Points of a plot.
const POINTS: u64 = 300;
/// How long the first record may take, and the last ones of a paced load.
const PATIENCE: Duration = Duration::from_secs(20);
/// When a paced load begins: a connection, where there is one, is there by then.
const PACED_FROM: Time = Time::from_millis(1_000);

/// What came of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The cell.
    pub cell: String,
    /// The transport.
    pub peer: Kind,
    /// The seed.
    pub seed: u64,
    /// Record bytes that the receiving application had, in Mbit/s from the first record on.
    pub mbit: f64,
    /// From append to the receiving application; for a paced load.
    pub latency: Option<Latency>,
    /// Bytes sent again, in thousandths of the record bytes.
    pub resent_permille: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Of those, acknowledged after all, where the transport knows.
    pub late: u64,
    /// Congestion events that were undone.
    pub undone: u64,
    /// Datagrams that the path with the data dropped, for whatever reason.
    pub dropped: u64,
    /// Its part of what all flows on the path got, from a third of the run on; if others run beside it.
    pub share: Option<f64>,
    /// Mean and highest wait in the bottleneck's queue, microseconds.
    pub queue_us: (u64, u64),
    /// The run over time.
    #[serde(skip)]
    pub points: Vec<Point>,
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Half are shorter.
    pub p50: u64,
    /// One in a hundred is longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
    /// Records that did not arrive in time.
    pub missing: u64,
}

/// The state at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// When.
    pub at: Time,
    /// Records taken so far.
    pub taken: u64,
    /// Records of all who run beside it.
    pub beside: u64,
    /// Wait in the bottleneck's queue, microseconds.
    pub queue_us: u64,
    /// The sender.
    pub sample: Sample,
}

/// Runs a cell.
///
/// # Errors
/// The cell's path cannot be read.
pub fn run(cell: &Cell, seconds: u64, peer: Kind, seed: u64) -> Result<Outcome, PlanError> {
    let spec = cell.path()?;
    let mut world = World::new(seed);
    let there = world.add_path("there", spec.forward());
    let back = world.add_path("back", spec.back());
    let backlog = if cell.load == Load::Drain { cell.most_records(&spec, seconds) } else { 0 };
    let mut place = Place { world: &mut world, there, back, flow: 1, seed };
    let flow = peer.place(&mut place, cell, backlog);
    let mut beside = Vec::new();
    for (kind, n) in cell.beside.iter().zip(2..) {
        place.flow = n;
        place.seed = seed ^ u64::from(n) << 32;
        beside.push(kind.place(&mut place, cell, backlog));
    }
    let mut run = Run { world, flow, beside, there, spec, points: Vec::new() };
    let (from, until, latency) = match cell.load.interval() {
        None => run.drain(seconds),
        Some(interval) => run.paced(interval, seconds),
    };
    Ok(run.outcome(cell, peer, seed, (from, until), latency))
}

struct Run {
    world: World,
    flow: Box<dyn Flow>,
    beside: Vec<Box<dyn Flow>>,
    there: PathId,
    spec: PathSpec,
    points: Vec<Point>,
}

impl Run {
    fn taken(&self) -> u64 {
        self.flow.taken(&self.world)
    }

    fn step(&mut self, until: Time) {
        while self.world.now() < until {
            self.world.run_until(until.min(self.world.now() + STEP));
            let (at, sample) = (self.world.now(), self.flow.sample(&self.world));
            let queued = self.world.path(self.there).map_or(0, |path| path.queued().1);
            let queue_us = self.spec.rate.map_or(0, |rate| rate.time_for(queued).as_micros() as u64);
            let beside = self.beside.iter().map(|flow| flow.taken(&self.world)).sum();
            self.points.push(Point { at, taken: self.taken(), beside, queue_us, sample });
        }
    }

    /// Until `seconds` after the first record.
    fn drain(&mut self, seconds: u64) -> (Time, Time, Option<Latency>) {
        let mut from = None;
        while from.is_none() && self.world.now() < Time::ZERO + PATIENCE {
            self.step(self.world.now() + STEP);
            let now = self.world.now();
            from = (self.taken() > 0).then(|| self.flow.log(&self.world).first().map_or(now, |(at, _)| *at));
        }
        let from = from.unwrap_or(self.world.now());
        let until = from + Duration::from_secs(seconds);
        self.step(until);
        (from, until, None)
    }

    /// One record after the other at its time, then until all are there.
    fn paced(&mut self, interval: Duration, seconds: u64) -> (Time, Time, Option<Latency>) {
        let count = (Duration::from_secs(seconds).as_nanos() / interval.as_nanos().max(1)) as u32;
        for n in 0..count {
            self.step(PACED_FROM + interval * n);
            self.flow.offer(&mut self.world, 1);
        }
        let until = PACED_FROM + interval * count;
        self.step(until);
        while self.taken() < count.into() && self.world.now() < until + PATIENCE {
            self.step(self.world.now() + STEP);
        }
        (PACED_FROM, until, Some(latency(self.flow.log(&self.world), interval, count)))
    }

    fn outcome(self, cell: &Cell, peer: Kind, seed: u64, span: (Time, Time), latency: Option<Latency>) -> Outcome {
        let (from, until) = span;
        let taken = self.points.iter().rfind(|point| point.at <= until).map_or(0, |point| point.taken);
        let bytes = taken * cell.size as u64;
        let share = (!self.beside.is_empty()).then(|| share(&self.points, from + (until - from) / 3, until));
        let inside: Vec<_> = self.points.iter().filter(|p| p.at > from && p.at <= until).collect();
        let sum: u64 = inside.iter().map(|p| p.queue_us).sum();
        let sample = self.flow.sample(&self.world);
        let every = (self.points.len() as u64).div_ceil(POINTS).max(1) as usize;
        Outcome {
            cell: cell.name.clone(),
            peer,
            seed,
            mbit: bytes as f64 * 8e3 / ((until - from).as_nanos().max(1) as f64),
            latency,
            resent_permille: sample.resent * 1_000 / bytes.max(1),
            lost: sample.lost,
            late: sample.late,
            undone: sample.undone,
            dropped: self.world.path(self.there).map_or(0, |path| path.stats().dropped()),
            share,
            queue_us: (sum / inside.len().max(1) as u64, inside.iter().map(|p| p.queue_us).max().unwrap_or(0)),
            points: self.points.into_iter().step_by(every).collect(),
        }
    }
}

/// The part that the flow has of what all got between two times.
fn share(points: &[Point], from: Time, until: Time) -> f64 {
    let at = |time| points.iter().rfind(|point| point.at <= time).map_or((0, 0), |point| (point.taken, point.beside));
    let (before, after) = (at(from), at(until));
    let (ours, theirs) = (after.0 - before.0, after.1 - before.1);
    ours as f64 / (ours + theirs).max(1) as f64
}

/// Record `n` was offered `n` intervals after the first.
fn latency(taken: &[(Time, u64)], interval: Duration, count: u32) -> Latency {
    let mut waits = Vec::with_capacity(count as usize);
    for &(at, records) in taken {
        for n in waits.len() as u32..records.min(count.into()) as u32 {
            waits.push((at - (PACED_FROM + interval * n)).as_micros() as u64);
        }
    }
    let missing = u64::from(count) - waits.len() as u64;
    waits.sort_unstable();
    let at = |permille: usize| waits.get((waits.len() * permille / 1_000).min(waits.len().saturating_sub(1)));
    Latency {
        p50: at(500).copied().unwrap_or(0),
        p99: at(990).copied().unwrap_or(0),
        max: waits.last().copied().unwrap_or(0),
        missing,
    }
}

/// The run of this cell with this transport in the middle: by goodput, or by the 99th percentile of a paced load.
pub fn median_of<'a>(outcomes: &'a [Outcome], cell: &str, peer: Kind) -> Option<&'a Outcome> {
    let mut runs: Vec<_> = outcomes.iter().filter(|run| run.cell == cell && run.peer == peer).collect();
    runs.sort_by(|a, b| match (a.latency, b.latency) {
        (Some(a), Some(b)) => a.p99.cmp(&b.p99),
        _ => a.mbit.total_cmp(&b.mbit),
    });
    runs.get(runs.len() / 2).copied()
}
