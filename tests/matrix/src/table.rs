//! The outcomes as a text that a pull request can show.

use crate::peers::Kind;
use crate::plan::Plan;
use crate::run::{Outcome, median_of};
use std::fmt::Write;

/// One line for each cell: for each transport what its median run reached, then what ours did on the way.
///
/// Drains are in Mbit/s of record bytes, with the share in brackets where others run beside; paced loads are in milliseconds (p50 / p99 /
/// longest).
pub fn table(plan: &Plan, outcomes: &[Outcome]) -> String {
    let peers: Vec<Kind> =
        Kind::ALL.into_iter().filter(|peer| outcomes.iter().any(|outcome| outcome.peer == *peer)).collect();
    let columns = columns(outcomes);
    let mut rows = vec![header(&peers, &columns)];
    for cell in &plan.cells {
        let of = |peer| median_of(outcomes, &cell.name, peer);
        let medians: Vec<Option<&Outcome>> = peers.iter().map(|peer| of(*peer)).collect();
        if medians.iter().all(Option::is_none) {
            continue;
        }
        let mut row = vec![cell.name.clone()];
        row.extend(medians.iter().map(|outcome| outcome.map_or(String::from("-"), reached)));
        row.push(share(&medians, &peers));
        let ours = of(Kind::Stayfast);
        row.extend(columns.iter().map(|(_, says)| ours.map_or(String::from("-"), says)));
        rows.push(row);
    }
    align(&rows)
}

fn header(peers: &[Kind], columns: &[Column]) -> Vec<String> {
    let peers = peers.iter().map(|peer| peer.name());
    let columns = columns.iter().map(|(heading, _)| *heading);
    ["cell"].into_iter().chain(peers).chain(["of best"]).chain(columns).map(String::from).collect()
}

fn reached(outcome: &Outcome) -> String {
    let ms = |us: u64| if us < 100_000 { format!("{:.1}", us as f64 / 1e3) } else { format!("{:.0}", us as f64 / 1e3) };
    match outcome.latency {
        None => {
            let digits = if outcome.mbit < 0.1 { 4 } else { 2 };
            let share = outcome.share.map_or(String::new(), |share| format!(" ({share:.2})"));
            format!("{:.digits$}{share}", outcome.mbit)
        }
        Some(latency) => {
            let missing = if latency.missing > 0 { format!(" ({} missing)", latency.missing) } else { String::new() };
            format!("{} / {} / {}{missing}", ms(latency.p50), ms(latency.p99), ms(latency.max))
        }
    }
}

/// Ours over the best of the others: goodput, or for a paced load their 99th percentile over ours.
fn share(medians: &[Option<&Outcome>], peers: &[Kind]) -> String {
    let mut ours = None;
    let mut best: Option<f64> = None;
    for (outcome, peer) in medians.iter().zip(peers) {
        let Some(outcome) = outcome else { continue };
        let value = match outcome.latency {
            None => outcome.mbit,
            Some(latency) => 1.0 / latency.p99.max(1) as f64,
        };
        match peer {
            Kind::Stayfast => ours = Some(value),
            _ => best = Some(best.map_or(value, |best| best.max(value))),
        }
    }
    match (ours, best) {
        (Some(ours), Some(best)) if best > 0.0 => format!("{:.2}", ours / best),
        _ => String::from("-"),
    }
}

/// A column about ours: its heading, and what it says of a run.
type Column = (&'static str, fn(&Outcome) -> String);

const COLUMNS: [Column; 9] = [
    ("of path", |run| run.of_path.map_or(String::from("-"), |share| format!("{share:.2}"))),
    ("resent %", |run| percent(run.resent_permille)),
    ("later %", |run| percent(run.resent_later_permille)),
    ("dropped", |run| run.dropped.to_string()),
    ("lost", |run| run.lost.to_string()),
    ("late", |run| run.late.to_string()),
    ("episodes", |run| run.episodes.to_string()),
    ("undone", |run| run.undone.to_string()),
    ("queue ms", |run| format!("{:.1} / {:.1}", run.queue_us.0 as f64 / 1e3, run.queue_us.1 as f64 / 1e3)),
];

/// Columns that are there if a run has something to say in them.
const OPTIONAL: [Column; 2] = [
    ("marked", |run| run.marked.to_string()),
    ("back ms", |run| run.back_ms.map_or(String::from("-"), |ms| ms.to_string())),
];

fn columns(outcomes: &[Outcome]) -> Vec<Column> {
    let ours = || outcomes.iter().filter(|run| run.peer == Kind::Stayfast);
    let says = |column: &&Column| ours().any(|run| !["0", "-"].contains(&&*column.1(run)));
    COLUMNS.iter().chain(OPTIONAL.iter().filter(says)).copied().collect()
}

fn percent(permille: Option<u64>) -> String {
    permille.map_or(String::from("-"), |permille| format!("{}.{}", permille / 10, permille % 10))
}

/// The first column to the left, all others to the right.
pub(crate) fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (i, cell) in row.iter().enumerate() {
            let width = widths[i];
            let _ = if i == 0 { write!(line, "{cell:<width$}") } else { write!(line, "  {cell:>width$}") };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
