//! What to run: cells as data.

use crate::peers::Kind;
use serde::{Deserialize, Deserializer, de::Error};
use stayfast_sim::PathSpec;
use stayfast_units::Rate;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The plans of the repository, the write-ups' first.
pub const ALL: [&str; 6] = [
    "tests/plans/origin.toml",
    "tests/plans/reordering.toml",
    "tests/plans/share.toml",
    "tests/plans/cells.toml",
    "tests/plans/queues.toml",
    "tests/plans/scenarios.toml",
];

/// Seconds that a cell may run: a day.
const LONGEST: u64 = 86_400;
/// Records a second that a load may have: each is a step of the simulation.
const FASTEST: u32 = 1_000_000;
/// Flows beside the one that is measured; flows have numbers of one byte.
const MOST_BESIDE: usize = 200;

/// A set of cells and how they are run, as a TOML file has it.
///
/// ```
/// use stayfast_matrix::plan::Plan;
///
/// let plan = Plan::parse(r#"
///     seconds = 15
///     peers = ["stayfast", "quinn"]
///     [[cell]]
///     name = "20/0/3"
///     path = "rate=50M rtt=20ms jitter=3ms"
/// "#).unwrap();
/// assert_eq!(plan.cells[0].path().unwrap().jitter.as_millis(), 3);
///
/// let error = Plan::parse("seconds = 15\n[[cell]]\nname = 'x'\npath = 'rtt=1parsec'").unwrap_err();
/// assert!(error.to_string().starts_with("cell x: "), "{error}");
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Seconds that a cell runs from the first byte on, unless it has its own.
    pub seconds: u64,
    /// Seeds, unless a cell has its own; the outcome of a cell is the median over them.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
    /// Transports, unless a cell has its own.
    #[serde(default)]
    pub peers: Vec<Kind>,
    /// The cells, in the order of the table.
    #[serde(rename = "cell")]
    pub cells: Vec<Cell>,
}

/// A path and what is sent over it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The row's name.
    pub name: String,
    /// The path in words, as [`PathSpec`] reads them.
    pub path: String,
    /// What is sent.
    #[serde(default)]
    pub load: Load,
    /// Bytes of a record.
    #[serde(default = "record_size")]
    pub size: usize,
    /// What runs on the same path beside it, and always has more to send.
    #[serde(default)]
    pub beside: Vec<Beside>,
    /// A line that only this flow has, on its way to the shared path: `rtt=60ms` makes its round trip longer.
    #[serde(default)]
    pub line: String,
    /// The flow begins so long after those beside it.
    #[serde(default, deserialize_with = "seconds")]
    pub after: Duration,
    /// What changes on the way.
    #[serde(default, rename = "change", alias = "changes")]
    pub changes: Vec<Change>,
    /// Instead of the plan's.
    pub seconds: Option<u64>,
    /// Instead of the plan's.
    pub seeds: Option<Vec<u64>>,
    /// Instead of the plan's.
    pub peers: Option<Vec<Kind>>,
}

/// A flow beside the one that is measured: the name of a transport, or a table with more to say.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "BesideWords")]
pub struct Beside {
    /// The transport.
    pub peer: Kind,
    /// It begins so long after the first record of the flow that is measured; at zero it begins with it.
    pub from: Duration,
    /// A line that only it has, as [`Cell::line`].
    pub line: String,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a transport, or a table such as { peer = 'tcp', from = 20, line = 'rtt=60ms' }"
)]
enum BesideWords {
    Plain(Kind),
    Table(BesideTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BesideTable {
    peer: Kind,
    #[serde(default, deserialize_with = "seconds")]
    from: Duration,
    #[serde(default)]
    line: String,
}

impl From<BesideWords> for Beside {
    fn from(words: BesideWords) -> Beside {
        match words {
            BesideWords::Plain(peer) => Beside { peer, from: Duration::ZERO, line: String::new() },
            BesideWords::Table(BesideTable { peer, from, line }) => Beside { peer, from, line },
        }
    }
}

/// Something that changes at a time: the path, or the sender's address, or both.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// So long after the first record.
    #[serde(deserialize_with = "seconds")]
    pub at: Duration,
    /// The whole path as it is from then on; an outage is `loss=100%`.
    pub path: Option<String>,
    /// The sender has another port, as after a NAT has forgotten it. TCP, whose connection would end with it, has no
    /// part in such a cell.
    #[serde(default)]
    pub rebind: bool,
}

/// What the application does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// There is always more to send.
    #[default]
    Drain,
    /// So many records a second.
    Rate(u32),
}

impl Load {
    /// The time from one record to the next; none for a drain.
    pub fn interval(self) -> Option<Duration> {
        match self {
            Load::Drain => None,
            Load::Rate(a_second) => Some(Duration::from_secs(1) / a_second.clamp(1, FASTEST)),
        }
    }
}

/// Seconds, with a fraction or without.
fn seconds<'de, D: Deserializer<'de>>(words: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(f64::deserialize(words)?).map_err(D::Error::custom)
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

/// The record of the write-ups that this project follows.
fn record_size() -> usize {
    1_013
}

/// Why a text is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(String);

impl PlanError {
    pub(crate) fn new(why: String) -> PlanError {
        PlanError(why)
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// Reads a plan from a file, from the folder of this repository if it is not in the current one.
    ///
    /// # Errors
    /// The file cannot be read, or what is in it is no plan; either names the file.
    pub fn read(path: &Path) -> Result<Plan, PlanError> {
        let wrong = |why: &dyn fmt::Display| PlanError(format!("{}: {why}", path.display()));
        let in_repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
        let place = if path.exists() { path } else { &in_repository };
        let text = std::fs::read_to_string(place).map_err(|e| wrong(&e))?;
        Plan::parse(&text).map_err(|e| wrong(&e))
    }

    /// Reads a plan.
    ///
    /// # Errors
    /// What is wrong, and in which cell.
    pub fn parse(text: &str) -> Result<Plan, PlanError> {
        let plan: Plan = toml::from_str(text).map_err(|e| PlanError(e.to_string()))?;
        if plan.cells.is_empty() {
            return Err(PlanError("it has no cell".into()));
        }
        for (i, cell) in plan.cells.iter().enumerate() {
            let wrong = |why: String| PlanError(format!("cell {}: {why}", cell.name));
            if plan.cells[..i].iter().any(|other| other.name == cell.name) {
                return Err(wrong("there is another of this name".into()));
            }
            if !(1..=LONGEST).contains(&plan.seconds(cell)) || plan.seeds(cell).is_empty() {
                return Err(wrong(format!("it needs a seed, and from 1 to {LONGEST} seconds")));
            }
            if has_twice(plan.seeds(cell)) || has_twice(plan.named(cell)) {
                return Err(wrong("a seed or a transport is there twice".into()));
            }
            cell.check(plan.seconds(cell)).map_err(wrong)?;
        }
        Ok(plan)
    }

    /// How long a cell runs.
    pub fn seconds(&self, cell: &Cell) -> u64 {
        cell.seconds.unwrap_or(self.seconds)
    }

    /// The seeds of a cell.
    pub fn seeds<'a>(&'a self, cell: &'a Cell) -> &'a [u64] {
        cell.seeds.as_deref().unwrap_or(&self.seeds)
    }

    /// The transports of a cell: all, if neither it nor the plan names any.
    pub fn named<'a>(&'a self, cell: &'a Cell) -> &'a [Kind] {
        let named = cell.peers.as_deref().unwrap_or(&self.peers);
        if named.is_empty() { &Kind::ALL } else { named }
    }

    /// Those of them that can carry its load in the simulator.
    pub fn peers(&self, cell: &Cell) -> Vec<Kind> {
        self.named(cell).iter().copied().filter(|peer| self.suits(cell, *peer)).collect()
    }

    /// Whether the simulator's model of a transport can do what a cell asks.
    pub fn suits(&self, cell: &Cell, peer: Kind) -> bool {
        let rebinds = cell.changes.iter().any(|change| change.rebind);
        peer.carries(cell.load) && !(rebinds && peer == Kind::Tcp)
    }

    /// How long a cell runs when time is short: a third, and no less than three seconds after whatever happens in it.
    pub fn short_seconds(&self, cell: &Cell) -> u64 {
        let last = cell.last_event().map_or(0, |last| last.as_secs() + 3);
        self.seconds(cell).div_ceil(3).max(last).min(self.seconds(cell))
    }
}

impl Cell {
    /// The path.
    ///
    /// # Errors
    /// The word that is wrong.
    pub fn path(&self) -> Result<PathSpec, PlanError> {
        spec(&self.path).map_err(PlanError)
    }

    /// The path so long after the first record; none if its words are wrong.
    pub(crate) fn path_at(&self, after: Duration) -> Option<PathSpec> {
        let gone = self.changes.iter().filter(|change| change.at <= after && change.path.is_some());
        let last = gone.max_by_key(|change| change.at).and_then(|change| change.path.as_deref());
        spec(last.unwrap_or(&self.path)).ok()
    }

    /// When, after the first record, the last of what is planned happens: a change, or a flow that begins.
    pub fn last_event(&self) -> Option<Duration> {
        let changes = self.changes.iter().map(|change| change.at);
        changes.chain(self.beside.iter().map(|beside| beside.from)).filter(|at| !at.is_zero()).max()
    }

    /// Records that the path could carry in `seconds`, and more.
    pub(crate) fn most_records(&self, seconds: u64) -> u64 {
        let texts = self.changes.iter().filter_map(|change| change.path.as_ref()).chain([&self.path]);
        let rates = texts.filter_map(|text| spec(text).ok()).map(|spec| spec.rate.map_or(1 << 30, Rate::bytes_per_sec));
        rates.max().unwrap_or(0).saturating_mul(seconds) / self.size as u64 + 1
    }

    /// Whether the simulator has models of all that run beside.
    ///
    /// # Errors
    /// The one that it has none of.
    pub fn check_simulated(&self) -> Result<(), PlanError> {
        match self.beside.iter().find(|beside| !beside.peer.carries(Load::Drain)) {
            Some(beside) => {
                Err(PlanError(format!("cell {}: {} is for --real only; it runs beside", self.name, beside.peer)))
            }
            None => Ok(()),
        }
    }

    fn check(&self, seconds: u64) -> Result<(), String> {
        let path = spec(&self.path)?;
        if !(8..=1 << 20).contains(&self.size) {
            return Err("size is from 8 to 1048576 bytes".into());
        }
        if matches!(self.load, Load::Rate(rate) if !(1..=FASTEST).contains(&rate)) {
            return Err(format!("a load is from 1 to {FASTEST} records a second"));
        }
        if self.beside.len() > MOST_BESIDE {
            return Err(format!("at most {MOST_BESIDE} run beside"));
        }
        spec(&self.line)?;
        for beside in &self.beside {
            spec(&beside.line)?;
        }
        for change in &self.changes {
            let wrong = |why: &str| format!("change at {} s: {why}", change.at.as_secs_f64());
            let later = change.path.as_deref().map(spec).transpose().map_err(|why| wrong(&why))?;
            if let Some(word) = later.and_then(|later| path.fixed(&later)) {
                return Err(wrong(&format!("`{word}` stays as it is for a whole run")));
            }
            if later.is_none() && !change.rebind {
                return Err(wrong("it needs a path, or rebind = true"));
            }
        }
        match self.last_event().filter(|last| *last >= Duration::from_secs(seconds)) {
            Some(last) => Err(format!("what happens at {} s comes after its end", last.as_secs_f64())),
            None => Ok(()),
        }
    }
}

fn has_twice<T: PartialEq>(list: &[T]) -> bool {
    list.iter().enumerate().any(|(i, one)| list[..i].contains(one))
}

pub(crate) fn spec(text: &str) -> Result<PathSpec, String> {
    text.parse().map_err(|e: stayfast_sim::PathError| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(words: &str) -> Result<Cell, PlanError> {
        let plan = format!("seconds = 15\n[[cell]]\nname = 'x'\npath = 'rate=50M rtt=20ms'\n{words}");
        Plan::parse(&plan).map(|mut plan| plan.cells.remove(0))
    }

    #[test]
    fn a_cell_says_what_changes_and_who_comes_late() {
        let cell = cell(
            "beside = ['tcp', { peer = 'quinn', from = 2.5, line = 'rtt=60ms' }]
             change = [{ at = 5, path = 'rate=20M rtt=20ms' }, { at = 7, rebind = true }]",
        );
        let cell = cell.expect("it is valid");
        let late = Beside { peer: Kind::Quinn, from: Duration::from_millis(2_500), line: "rtt=60ms".into() };
        assert_eq!(cell.beside[0], Beside { peer: Kind::Tcp, from: Duration::ZERO, line: String::new() });
        assert_eq!(cell.beside[1], late);
        assert_eq!(cell.last_event(), Some(Duration::from_secs(7)));
        let rate = |ms| cell.path_at(Duration::from_millis(ms)).and_then(|path| path.rate).map(Rate::bytes_per_sec);
        assert_eq!([0, 4_999, 5_000, 8_000].map(rate), [6_250_000, 6_250_000, 2_500_000, 2_500_000].map(Some));
        let plan = Plan { seconds: 15, seeds: one_seed(), peers: Vec::new(), cells: vec![cell] };
        assert_eq!(plan.short_seconds(&plan.cells[0]), 10);
        assert!(!plan.peers(&plan.cells[0]).contains(&Kind::Tcp), "a TCP connection ends with its address");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_time() {
        for (words, why) in [
            ("change = [{ at = 5, path = 'rtt=20ms' }]", "change at 5 s: `rate=` stays as it is for a whole run"),
            ("change = [{ at = 5 }]", "change at 5 s: it needs a path, or rebind = true"),
            ("change = [{ at = 0.5, path = 'rtt=1' }]", "change at 0.5 s: `rtt=1`: expected a time"),
            ("change = [{ at = 15, rebind = true }]", "what happens at 15 s comes after its end"),
            ("beside = [{ peer = 'tcp', line = 'x' }]", "`x` is none of"),
            ("load = { rate = 0 }", "a load is from 1 to 1000000 records a second"),
            ("load = { rate = 1000001 }", "a load is from 1 to 1000000 records a second"),
            ("seconds = 86401", "it needs a seed, and from 1 to 86400 seconds"),
            ("seeds = [3, 4, 3]", "a seed or a transport is there twice"),
            ("peers = ['tcp', 'tcp']", "a seed or a transport is there twice"),
            (&format!("beside = [{}]", "'tcp', ".repeat(201)), "at most 200 run beside"),
        ] {
            let error = cell(words).expect_err(words).to_string();
            assert!(error.starts_with(&format!("cell x: {why}")), "{words}: {error}");
        }
        let error = cell("beside = ['udp']").expect_err("there is no such transport").to_string();
        assert!(error.contains("expected a transport, or a table such as"), "{error}");
        assert!(cell("change = [{ at = -1, rebind = true }]").is_err());
        for words in ["load = { rate = 1000000 }", "seconds = 86400", &format!("beside = [{}]", "'tcp', ".repeat(200))]
        {
            assert!(cell(words).is_ok(), "at the limit: {words}");
        }
        let bbr = cell("beside = ['tcp-bbr']").expect("it is for real paths");
        let error = bbr.check_simulated().expect_err("there is no model of it").to_string();
        assert_eq!(error, "cell x: tcp-bbr is for --real only; it runs beside");
        assert!(Plan::parse("seconds = 15\ncell = []").is_err());
    }
}
