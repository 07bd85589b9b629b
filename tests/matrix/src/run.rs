//! One transport on one cell with one seed.

use crate::measure;
use crate::peers::{Flow, Kind, Place, Sample};
use crate::plan::{Cell, Load, PlanError, spec};
use serde::Serialize;
use stayfast_sim::{PathId, PathSpec, World};
use stayfast_units::Time;
use std::time::Duration;

/// How often the state is looked at.
const STEP: Duration = Duration::from_millis(10);
/// Points of a plot.
const POINTS: usize = 300;
/// How long the first record may take, and the last ones of a paced load.
const PATIENCE: Duration = Duration::from_secs(20);
/// When a paced load begins: a connection, where there is one, is there by then.
pub(crate) const PACED_AFTER: Duration = Duration::from_secs(1);
/// What is sent again from here on is no matter of the start.
const STARTED: Duration = Duration::from_secs(2);

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
    /// Bytes sent again, in thousandths of the record bytes; none if there were none.
    pub resent_permille: Option<u64>,
    /// The same from two seconds after the first record on: without what the start has lost.
    pub resent_later_permille: Option<u64>,
    /// Packets declared lost.
    pub lost: u64,
    /// Of those, acknowledged after all, where the transport knows.
    pub late: u64,
    /// Congestion events; ours: episodes.
    pub episodes: u64,
    /// Congestion events that were undone.
    pub undone: u64,
    /// Datagrams that the path with the data dropped, for whatever reason.
    pub dropped: u64,
    /// Datagrams that the path with the data marked with CE instead.
    pub marked: u64,
    /// Its part of what all flows on the path got, if others run beside it: from a third of the run on, or of what is
    /// left of it once the last of them has begun.
    pub share: Option<f64>,
    /// What all flows got, over what the path carries in full datagrams; for a drain with a bottleneck.
    pub of_path: Option<f64>,
    /// After the last change, how long it took until the flow used nine tenths of what it had used of the path before
    /// the first one, milliseconds. None if nothing changes, or if it never did.
    pub back_ms: Option<u64>,
    /// Mean and highest wait in the bottleneck's queue, microseconds.
    pub queue_us: (u64, u64),
    /// Mean of the smoothed round trip in the second half, microseconds; zero for a transport that does not tell.
    pub rtt_us: u64,
    /// Of a run between real sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real: Option<Real>,
    /// The run over time.
    #[serde(skip)]
    pub points: Vec<Point>,
    /// What was planned to happen, and when it did.
    #[serde(skip)]
    pub marks: Vec<(Time, String)>,
}

/// What only a run in real time has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Real {
    /// How late packets left the emulator, microseconds: p50, p99, p99.9.
    pub late_us: [u64; 3],
    /// How long all threads of both ends waited for a processor, in thousandths of the run.
    pub waited_permille: u64,
    /// The runs it took, with those that were thrown away.
    pub tries: u32,
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
    /// What the path carries of full datagrams at this moment, bytes a second; none without a bottleneck.
    pub ceiling: Option<u64>,
    /// The sender.
    pub sample: Sample,
}

/// Runs a cell.
///
/// # Errors
/// The cell's path cannot be read.
///
/// # Panics
/// The simulator has no such transport: see [`Kind::carries`].
pub fn run(cell: &Cell, seconds: u64, peer: Kind, seed: u64) -> Result<Outcome, PlanError> {
    let mut outcome = run_in_full(cell, seconds, peer, seed)?;
    outcome.points = thinned(outcome.points);
    Ok(outcome)
}

/// As many points as a plot has use for.
pub(crate) fn thinned(points: Vec<Point>) -> Vec<Point> {
    let every = points.len().div_ceil(POINTS).max(1);
    points.into_iter().step_by(every).collect()
}

/// [`run`], with all points: one each 10 ms.
///
/// # Errors
/// The cell's path cannot be read.
pub fn run_in_full(cell: &Cell, seconds: u64, peer: Kind, seed: u64) -> Result<Outcome, PlanError> {
    let mut road = Road::new(cell, seconds, seed)?;
    let early = |road: &mut Road<'_>| -> Result<Vec<_>, PlanError> {
        let early = (0..cell.beside.len()).filter(|i| cell.beside[*i].from.is_zero());
        early.map(|i| road.begin_beside(i)).collect()
    };
    let mut beside = Vec::new();
    if !cell.after.is_zero() {
        beside = early(&mut road)?;
        road.world.run_until(Time::ZERO + cell.after);
    }
    let flow = road.begin(peer, 1, &cell.line)?;
    if cell.after.is_zero() {
        beside = early(&mut road)?;
    }
    let mut run = Run { road, flow, beside, agenda: Vec::new(), points: Vec::new(), marks: Vec::new() };
    let (from, until, latency) = match cell.load.interval() {
        None => run.drain(seconds)?,
        Some(interval) => run.paced(interval, seconds)?,
    };
    Ok(run.outcome(peer, seed, (from, until), latency))
}

/// The path, and how to put a flow on it.
struct Road<'a> {
    world: World,
    cell: &'a Cell,
    there: PathId,
    back: PathId,
    /// As it is now.
    spec: PathSpec,
    seed: u64,
    backlog: u64,
}

impl Road<'_> {
    fn new(cell: &Cell, seconds: u64, seed: u64) -> Result<Road<'_>, PlanError> {
        let spec = cell.path()?;
        let mut world = World::new(seed);
        let there = world.add_path("there", spec.forward());
        let back = world.add_path("back", spec.back());
        let backlog = cell.most_records(seconds);
        Ok(Road { world, cell, there, back, spec, seed, backlog })
    }

    /// Puts a transport on the path, behind a line of its own if it has one.
    fn begin(&mut self, kind: Kind, flow: u8, line: &str) -> Result<Box<dyn Flow>, PlanError> {
        let (mut there, mut back) = (vec![self.there], vec![self.back]);
        if !line.is_empty() {
            let line = spec(line).map_err(PlanError::new)?;
            there.insert(0, self.world.add_path(&format!("line {flow} there"), line.forward()));
            back.push(self.world.add_path(&format!("line {flow} back"), line.back()));
        }
        // The first has the cell's seed.
        let seed = if flow == 1 { self.seed } else { self.seed ^ u64::from(flow) << 32 };
        let mut place = Place { world: &mut self.world, there: &there, back: &back, flow, seed };
        let drains = flow != 1 || self.cell.load == Load::Drain;
        Ok(kind.place(&mut place, self.cell, if drains { self.backlog } else { 0 }))
    }

    fn begin_beside(&mut self, i: usize) -> Result<Box<dyn Flow>, PlanError> {
        let beside = &self.cell.beside[i];
        self.begin(beside.peer, i as u8 + 2, &beside.line)
    }

    /// The path becomes another one.
    fn turn_into(&mut self, spec: PathSpec) {
        for (path, elements) in [(self.there, spec.forward_elements()), (self.back, spec.back_elements())] {
            for element in elements {
                self.world.set(path, element);
            }
        }
        self.spec = spec;
    }
}

/// What is planned to happen.
enum Act {
    Change(usize),
    Begin(usize),
}

struct Run<'a> {
    road: Road<'a>,
    flow: Box<dyn Flow>,
    beside: Vec<Box<dyn Flow>>,
    /// What is still to happen, the next one last.
    agenda: Vec<(Time, Act)>,
    points: Vec<Point>,
    marks: Vec<(Time, String)>,
}

impl Run<'_> {
    fn taken(&self) -> u64 {
        self.flow.taken(&self.road.world)
    }

    /// Now that the first record is there it is known when everything else happens.
    fn plan(&mut self, from: Time) {
        let Cell { changes, beside, .. } = self.road.cell;
        let changes = changes.iter().enumerate().map(|(i, change)| (from + change.at, Act::Change(i)));
        let late = beside.iter().enumerate().filter(|(_, beside)| !beside.from.is_zero());
        let begins = late.map(|(i, beside)| (from + beside.from, Act::Begin(i)));
        self.agenda = changes.chain(begins).collect();
        self.agenda.sort_by_key(|(at, _)| *at);
        self.agenda.reverse();
    }

    /// Does what is due.
    fn act(&mut self) -> Result<(), PlanError> {
        let now = self.road.world.now();
        while let Some((_, act)) = self.agenda.pop_if(|(at, _)| *at <= now) {
            match act {
                Act::Begin(i) => {
                    self.beside.push(self.road.begin_beside(i)?);
                    self.marks.push((now, format!("{} begins", self.road.cell.beside[i].peer)));
                }
                Act::Change(i) => {
                    let change = &self.road.cell.changes[i];
                    if let Some(path) = &change.path {
                        self.road.turn_into(spec(path).map_err(PlanError::new)?);
                        self.marks.push((now, path.clone()));
                    }
                    if change.rebind {
                        let sender = self.flow.sender();
                        if let Some(mut address) = self.road.world.address(sender) {
                            address.set_port(address.port() + 1);
                            self.road.world.rebind(sender, address);
                        }
                        self.marks.push((now, "the sender has another port".into()));
                    }
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, until: Time) -> Result<(), PlanError> {
        while self.road.world.now() < until {
            let due = self.agenda.last().map_or(Time::MAX, |(at, _)| *at);
            let next = until.min(self.road.world.now() + STEP).min(due);
            self.road.world.run_until(next);
            self.act()?;
            let world = &self.road.world;
            let (at, sample) = (world.now(), self.flow.sample(world));
            let queued = world.path(self.road.there).map_or(0, |path| path.queued().1);
            let rate = self.road.spec.rate;
            let queue_us = rate.map_or(0, |rate| rate.time_for(queued).as_micros() as u64);
            let beside = self.beside.iter().map(|flow| flow.taken(world)).sum();
            let ceiling = measure::ceiling(&self.road.spec);
            self.points.push(Point { at, taken: self.taken(), beside, queue_us, ceiling, sample });
        }
        Ok(())
    }

    /// Until `seconds` after the first record.
    fn drain(&mut self, seconds: u64) -> Result<(Time, Time, Option<Latency>), PlanError> {
        let mut from = None;
        let patience = self.road.world.now() + PATIENCE;
        while from.is_none() && self.road.world.now() < patience {
            self.step(self.road.world.now() + STEP)?;
            let world = &self.road.world;
            from = (self.taken() > 0).then(|| self.flow.log(world).first().map_or(world.now(), |(at, _)| *at));
        }
        let from = from.unwrap_or(self.road.world.now());
        self.plan(from);
        let until = from + Duration::from_secs(seconds);
        self.step(until)?;
        Ok((from, until, None))
    }

    /// One record after the other at its time, then until all are there.
    fn paced(&mut self, interval: Duration, seconds: u64) -> Result<(Time, Time, Option<Latency>), PlanError> {
        let count = (Duration::from_secs(seconds).as_nanos() / interval.as_nanos().max(1)) as u32;
        let from = self.road.world.now() + PACED_AFTER;
        self.plan(from);
        for n in 0..count {
            self.step(from + interval * n)?;
            self.flow.offer(&mut self.road.world, 1);
        }
        let until = from + interval * count;
        self.step(until)?;
        while self.taken() < count.into() && self.road.world.now() < until + PATIENCE {
            self.step(self.road.world.now() + STEP)?;
        }
        let latency = measure::latency(self.flow.log(&self.road.world), (from, interval), count);
        Ok((from, until, Some(latency)))
    }

    fn outcome(self, peer: Kind, seed: u64, span: (Time, Time), latency: Option<Latency>) -> Outcome {
        let stats = self.road.world.path(self.road.there).map(|path| path.stats()).unwrap_or_default();
        Outcome {
            dropped: stats.dropped(),
            marked: stats.marked,
            marks: self.marks,
            ..Outcome::of(self.road.cell, (peer, seed), span, self.points, latency)
        }
    }
}

impl Outcome {
    /// What the points of a run tell, from the first record to the end; what became of datagrams on the path is left to
    /// be said.
    pub(crate) fn of(
        cell: &Cell,
        (peer, seed): (Kind, u64),
        (from, until): (Time, Time),
        points: Vec<Point>,
        latency: Option<Latency>,
    ) -> Outcome {
        let at = |time| measure::at(&points, time).map_or((0, 0), |point| (point.taken, point.sample.resent));
        let ((taken, _), (early, resent_early)) = (at(until), at(from + STARTED));
        let bytes = taken * cell.size as u64;
        let sample = points.last().map(|point| point.sample).unwrap_or_default();
        let permille = |part: u64, whole: u64| (part * 1_000).checked_div(whole);
        let inside: Vec<_> = points.iter().filter(|p| p.at > from && p.at <= until).collect();
        let mean = |points: &[&Point], value: fn(&Point) -> u64| {
            points.iter().map(|p| value(p)).sum::<u64>() / points.len().max(1) as u64
        };
        let alone = from + cell.beside.iter().map(|beside| beside.from).max().unwrap_or_default();
        let share = || measure::share(&points, alone + (until - alone) / 3, until);
        let changes = cell.changes.iter().map(|change| from + change.at);
        let (first, last) = (changes.clone().min(), changes.max());
        Outcome {
            cell: cell.name.clone(),
            peer,
            seed,
            mbit: bytes as f64 * 8e3 / ((until - from).as_nanos().max(1) as f64),
            latency,
            resent_permille: permille(sample.resent, bytes),
            resent_later_permille: permille(
                sample.resent - resent_early,
                taken.saturating_sub(early) * cell.size as u64,
            ),
            lost: sample.lost,
            late: sample.late,
            episodes: sample.episodes,
            undone: sample.undone,
            dropped: 0,
            marked: 0,
            share: (!cell.beside.is_empty()).then(share),
            of_path: measure::of_path(&points, (from, until), cell.size).filter(|_| latency.is_none()),
            back_ms: first.zip(last).and_then(|changed| measure::back(&points, (from, until), changed)),
            queue_us: (mean(&inside, |p| p.queue_us), inside.iter().map(|p| p.queue_us).max().unwrap_or(0)),
            rtt_us: mean(&inside[inside.len() / 2..], |p| p.sample.rtt_us),
            points,
            marks: Vec::new(),
            real: None,
        }
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
