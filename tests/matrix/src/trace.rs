//! One run over time, for a person.

use crate::run::{Outcome, Point};
use crate::table::align;
use serde::Serialize;
use std::time::Duration;

/// What happened in one stretch of a run, and how things stood at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// End of the stretch, milliseconds from the beginning.
    pub at_ms: u64,
    /// Record bytes that came in it, kbit/s.
    pub kbit: u64,
    /// Congestion window, bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Smoothed round trip, microseconds.
    pub rtt_us: u64,
    /// The longest wait at the bottleneck in it, microseconds.
    pub queue_us: u64,
    /// Packets declared lost in it.
    pub lost: u64,
    /// Lost ones acknowledged after all in it.
    pub late: u64,
    /// Congestion episodes begun in it.
    pub episodes: u64,
    /// Episodes undone in it.
    pub undone: u64,
    /// What was planned and happened at its end.
    pub marks: Vec<String>,
}

/// The rows of a run with all its points ([`run_in_full`](crate::run::run_in_full)): one each `every`, and one that ends
/// where something planned happens. `size` is that of a record.
pub fn rows(outcome: &Outcome, every: Duration, size: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let Some(mut begin) = outcome.points.first() else { return rows };
    let (mut queue_us, mut marks) = (0, outcome.marks.iter().peekable());
    for point in &outcome.points {
        queue_us = point.queue_us.max(queue_us);
        let mut happened = Vec::new();
        while let Some((_, text)) = marks.next_if(|(at, _)| *at <= point.at) {
            happened.push(text.clone());
        }
        if point.at >= begin.at + every || !happened.is_empty() {
            rows.push(row(begin, point, size, queue_us, happened));
            (begin, queue_us) = (point, 0);
        }
    }
    rows
}

fn row(begin: &Point, end: &Point, size: usize, queue_us: u64, marks: Vec<String>) -> Row {
    let (before, after) = (&begin.sample, &end.sample);
    let bits = (end.taken - begin.taken) * size as u64 * 8;
    Row {
        at_ms: end.at.as_micros() / 1_000,
        kbit: bits * 1_000 / ((end.at - begin.at).as_micros() as u64).max(1),
        window: after.window,
        in_flight: after.in_flight,
        rtt_us: after.rtt_us,
        queue_us,
        lost: after.lost - before.lost,
        late: after.late - before.late,
        episodes: after.episodes - before.episodes,
        undone: after.undone - before.undone,
        marks,
    }
}

/// The rows as a table; nothing stands where nothing happened.
pub fn text(rows: &[Row]) -> String {
    let headings =
        ["s", "Mbit/s", "window kB", "in flight", "rtt ms", "queue ms", "lost", "late", "episodes", "undone", ""];
    let tenths = |n: u64| format!("{}.{}", n / 1_000, n % 1_000 / 100);
    let count = |n: u64| if n > 0 { n.to_string() } else { String::new() };
    let cells = |row: &Row| {
        let numbers = [
            format!("{}.{:02}", row.at_ms / 1_000, row.at_ms % 1_000 / 10),
            tenths(row.kbit),
            tenths(row.window),
            tenths(row.in_flight),
            tenths(row.rtt_us),
            tenths(row.queue_us),
        ];
        let counts = [row.lost, row.late, row.episodes, row.undone].map(count);
        numbers.into_iter().chain(counts).chain([row.marks.join("; ")]).collect()
    };
    let head = headings.map(String::from).to_vec();
    align(&[head].into_iter().chain(rows.iter().map(cells)).collect::<Vec<Vec<String>>>())
}
