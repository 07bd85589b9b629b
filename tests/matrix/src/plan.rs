//! What to run: cells as data.

use crate::peers::Kind;
use serde::Deserialize;
use stayfast_sim::PathSpec;
use std::fmt;
use std::time::Duration;

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
    /// What runs on the same path beside it, from the beginning.
    #[serde(default)]
    pub beside: Vec<Kind>,
    /// Instead of the plan's.
    pub seconds: Option<u64>,
    /// Instead of the plan's.
    pub seeds: Option<Vec<u64>>,
    /// Instead of the plan's.
    pub peers: Option<Vec<Kind>>,
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
            Load::Rate(a_second) => Some(Duration::from_secs(1) / a_second.max(1)),
        }
    }
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

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// What is wrong, and in which cell.
    pub fn parse(text: &str) -> Result<Plan, PlanError> {
        let plan: Plan = toml::from_str(text).map_err(|e| PlanError(e.to_string()))?;
        let wrong = |cell: &Cell, why: &str| PlanError(format!("cell {}: {why}", cell.name));
        for (i, cell) in plan.cells.iter().enumerate() {
            cell.path().map_err(|e| wrong(cell, &e.0))?;
            if plan.cells[..i].iter().any(|other| other.name == cell.name) {
                return Err(wrong(cell, "there is another of this name"));
            }
            if !(8..=1 << 20).contains(&cell.size) {
                return Err(wrong(cell, "size is from 8 to 1048576 bytes"));
            }
            if let Some(peer) = cell.beside.iter().find(|peer| !peer.carries(cell.load)) {
                return Err(wrong(cell, &format!("{peer} carries drains only")));
            }
            if plan.seconds(cell) == 0 || plan.seeds(cell).is_empty() {
                return Err(wrong(cell, "it needs at least a second and a seed"));
            }
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

    /// The transports of a cell that can carry its load: of all, if neither it nor the plan names any.
    pub fn peers(&self, cell: &Cell) -> Vec<Kind> {
        let named = cell.peers.as_deref().unwrap_or(&self.peers);
        let named = if named.is_empty() { &Kind::ALL } else { named };
        named.iter().copied().filter(|peer| peer.carries(cell.load)).collect()
    }
}

impl Cell {
    /// The path.
    ///
    /// # Errors
    /// The word that is wrong.
    pub fn path(&self) -> Result<PathSpec, PlanError> {
        self.path.parse().map_err(|e: stayfast_sim::PathError| PlanError(e.to_string()))
    }

    /// Records that the path could carry in `seconds`, and more.
    pub(crate) fn most_records(&self, spec: &PathSpec, seconds: u64) -> u64 {
        let bytes = spec.rate.map_or(1 << 30, |rate| rate.bytes_per_sec().saturating_mul(seconds));
        bytes / self.size as u64 + 1
    }
}
