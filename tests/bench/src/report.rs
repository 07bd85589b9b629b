//! What was measured, for people and for programs.

use crate::load::{Append, Load, Outcome};
use crate::plan::Plan;
use serde_json::{Value, json};
use std::fmt::Write;

/// All rounds of one size.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was transferred.
    pub load: Load,
    /// By stayfast, one outcome per round.
    pub ours: Vec<Outcome>,
    /// By quinn, likewise.
    pub quinn: Vec<Outcome>,
}

/// The middle of `values` (the upper one of two), or nothing.
///
/// ```
/// assert_eq!(stayfast_bench::report::median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
/// ```
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

impl Row {
    /// The median of the rounds' ratios, and the smallest and the largest of them.
    pub fn ratio(&self) -> Option<[f64; 3]> {
        let ratios = || self.ours.iter().zip(&self.quinn).map(|(ours, quinn)| ours.micros() / quinn.micros());
        Some([median(ratios())?, ratios().reduce(f64::min)?, ratios().reduce(f64::max)?])
    }
}

/// What is part of the measured time.
pub fn included(plan: &Plan) -> String {
    let append = match plan.append {
        Append::Handle => "through the driver's handle",
        Append::Store => "into the store by the application itself",
    };
    format!(
        "\
CPU time of this process (user and kernel, all threads, both ends), over loopback, {datagram} B datagrams,
AES-256-GCM and segmentation offload in both; handshake and first tenth of the records not counted.
  stayfast  two nodes with their threads. Records go {append} in batches of 64 KiB into an
            outbox in memory, {ahead} KiB ahead; are read back, sent, acknowledged, put in order; the receiving
            application checks each, copies it, moves a cursor in memory; ends when the last is known as STORED.
            No disk.
  quinn     one connection, one stream, each end on one thread; 64 KiB writes of records with their lengths.
            The receiving application cuts the stream into records, checks and copies each; ends when the last is
            there. Nothing tells the sender what the application has stored.
",
        datagram = plan.datagram,
        ahead = plan.ahead,
    )
}

/// A table, one line per size.
pub fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:>7} {:>9}  {:>12} {:>12}  {:>8} {:>13}  {:>11}  {:>13}  {:>13}  {:>11}\n{:>7} {:>9}  {:>12} {:>12}  {:>8} {:>13}  {:>11}  {:>13}  {:>13}  {:>11}\n",
        "record",
        "records",
        "stayfast",
        "quinn",
        "ratio",
        "of rounds",
        "kernel",
        "speed",
        "datagrams",
        "lost",
        "B",
        "a round",
        "us/record",
        "us/record",
        "median",
        "least, most",
        "%",
        "MB/s",
        "thousands",
        "packets",
    );
    for row in rows {
        let over = |outcomes: &[Outcome], f: fn(&Outcome) -> f64| median(outcomes.iter().map(f));
        let number = |value: Option<f64>, digits: usize| value.map_or("-".into(), |v| format!("{v:.digits$}"));
        let pair = |f: fn(&Outcome) -> f64, digits| {
            format!("{} / {}", number(over(&row.ours, f), digits), number(over(&row.quinn, f), digits))
        };
        let (size, records) = (row.load.size, row.load.records);
        let [ours, quinn] = [&row.ours, &row.quinn].map(|outcomes| number(over(outcomes, Outcome::micros), 3));
        let [middle, range] = match row.ratio() {
            Some([middle, least, most]) => [format!("{middle:.2}"), format!("{least:.2}, {most:.2}")],
            None => ["-".to_owned(), "-".to_owned()],
        };
        let kernel = pair(|o| o.spent.kernel * 100.0, 0);
        let speed = pair(|o| o.bytes as f64 / 1e6 / o.spent.wall.as_secs_f64(), 0);
        let datagrams = pair(|o| o.datagrams as f64 / 1e3, 0);
        let lost = pair(|o| o.lost as f64, 0);
        let _ = writeln!(
            text,
            "{size:>7} {records:>9}  {ours:>12} {quinn:>12}  {middle:>8} {range:>13}  {kernel:>11}  {speed:>13}  {datagrams:>13}  {lost:>11}"
        );
    }
    text.push_str("Where a column has two values: stayfast / quinn, medians. Absolute times drift with the machine;\n");
    text.push_str("the ratios of interleaved rounds do so less.\n");
    text
}

/// The same and every round, as one object.
pub fn object(plan: &Plan, rows: &[Row]) -> Value {
    let outcome = |o: &Outcome| {
        json!({
            "cpu_us_per_record": o.micros(),
            "cpu_s": o.spent.cpu.as_secs_f64(),
            "wall_s": o.spent.wall.as_secs_f64(),
            "kernel_share": o.spent.kernel,
            "records": o.records,
            "bytes": o.bytes,
            "datagrams": o.datagrams,
            "send_calls": o.calls,
            "lost_packets": o.lost,
        })
    };
    let row = |row: &Row| {
        json!({
            "record_bytes": row.load.size,
            "stayfast_us_per_record": median(row.ours.iter().map(Outcome::micros)),
            "quinn_us_per_record": median(row.quinn.iter().map(Outcome::micros)),
            "ratio": row.ratio().map(|[middle, least, most]| json!({ "median": middle, "least": least, "most": most })),
            "stayfast": row.ours.iter().map(outcome).collect::<Vec<_>>(),
            "quinn": row.quinn.iter().map(outcome).collect::<Vec<_>>(),
        })
    };
    json!({
        "measured": included(plan),
        "rounds": plan.rounds,
        "datagram_bytes": plan.datagram,
        "sizes": rows.iter().map(row).collect::<Vec<_>>(),
    })
}
