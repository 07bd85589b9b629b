use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::time::Duration;
use stayfast_units::Time;

/// The most rows of a [`Trace::table`]; when a run grows longer, two rows become one.
pub const ROWS_MAX: usize = 25;

/// Numbers over time, in a few rows that a person can read and a snapshot can keep.
///
/// Whoever watches a run feeds it; it holds [`ROWS_MAX`] rows at most, whatever the run's length.
///
/// ```
/// use core::time::Duration;
/// use stayfast_sim::Trace;
/// use stayfast_units::Time;
///
/// let mut trace = Trace::new(Duration::from_secs(1));
/// for ms in 0..3_000 {
///     trace.add(Time::from_millis(ms), "delivered", ms / 1_000);
///     trace.peak(Time::from_millis(ms), "queue", ms % 100);
/// }
/// trace.mark(Time::from_millis(1_500), "killed");
/// assert_eq!(trace.table().lines().collect::<Vec<_>>(), [
///     "  time  delivered  queue",
///     "   0 s          0     99",
///     "   1 s       1000     99  ########## killed",
///     "   2 s       2000     99  ####################",
/// ]);
/// assert_eq!(trace.summary(), "delivered: 3000 in 3 s, 1000 a second\nqueue: at most 99\n");
/// ```
#[derive(Clone, Debug)]
pub struct Trace {
    row: Duration,
    rows: usize,
    series: Vec<Series>,
    marks: Vec<(Time, String)>,
}

#[derive(Clone, Debug)]
struct Series {
    name: &'static str,
    kind: Kind,
    cells: [Option<u64>; ROWS_MAX],
    total: u64,
    lowest: u64,
    highest: u64,
    last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Peak,
    Level,
}

/// Marks beyond these are not kept.
const MARKS_MAX: usize = 25;
/// Lines of a summary.
const LINES_MAX: usize = 5;
/// Characters of the longest bar.
const BAR: u64 = 20;

impl Trace {
    /// A trace whose rows are `row` long each, and 2, 4, 8 ... times as long when they would become too many.
    pub fn new(row: Duration) -> Trace {
        Trace { row: row.max(Duration::from_nanos(1)), rows: 0, series: Vec::new(), marks: Vec::new() }
    }

    /// Adds `amount`: a row shows the sum of its time.
    pub fn add(&mut self, now: Time, name: &'static str, amount: u64) {
        self.feed(now, name, Kind::Sum, amount);
    }

    /// A value of which a row shows the highest of its time.
    pub fn peak(&mut self, now: Time, name: &'static str, value: u64) {
        self.feed(now, name, Kind::Peak, value);
    }

    /// A value that stays until it is set again: a row shows how it was at the end.
    pub fn level(&mut self, now: Time, name: &'static str, value: u64) {
        self.feed(now, name, Kind::Level, value);
    }

    /// Something that happened once; it is written beside its row. At most 25 are kept.
    pub fn mark(&mut self, now: Time, text: &str) {
        self.row_of(now);
        if self.marks.len() < MARKS_MAX {
            self.marks.push((now, String::from(text)));
        }
    }

    /// At most [`ROWS_MAX`] rows under one of headings: the row's first moment, each series in the order of its first
    /// feeding, a bar for the first series, marks. All numbers are whole.
    pub fn table(&self) -> String {
        let mut text = String::from("  time");
        for series in &self.series {
            let _ = write!(text, "  {:>1$}", series.name, series.width());
        }
        text.push('\n');
        let mut levels: Vec<u64> = self.series.iter().map(|_| 0).collect();
        for row in 0..self.rows {
            let mut line = format!("{:>6}", self.span(row));
            for (series, level) in self.series.iter().zip(&mut levels) {
                let carried = if series.kind == Kind::Level { *level } else { 0 };
                *level = series.cells[row].unwrap_or(carried);
                let _ = write!(line, "  {:>1$}", *level, series.width());
            }
            self.decorate(&mut line, row, levels.first().copied().unwrap_or(0));
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// At most five lines, one for each series.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let shown = if self.series.len() > LINES_MAX { LINES_MAX - 1 } else { self.series.len() };
        for series in &self.series[..shown] {
            let Series { name, total, lowest, highest, last, .. } = series;
            let _ = match series.kind {
                Kind::Sum => {
                    let nanos = self.row.as_nanos() * self.rows as u128;
                    let rate = u128::from(*total) * 1_000_000_000 / nanos.max(1);
                    writeln!(text, "{name}: {total} in {}, {rate} a second", self.span(self.rows))
                }
                Kind::Peak => writeln!(text, "{name}: at most {highest}"),
                Kind::Level => writeln!(text, "{name}: {last} at the end, {lowest} to {highest}"),
            };
        }
        if shown < self.series.len() {
            let _ = writeln!(text, "and {} more", self.series.len() - shown);
        }
        text
    }

    fn feed(&mut self, now: Time, name: &'static str, kind: Kind, value: u64) {
        let row = self.row_of(now);
        let i = match self.series.iter().position(|series| series.name == name) {
            Some(i) => i,
            None => {
                self.series.push(Series::new(name, kind));
                self.series.len() - 1
            }
        };
        self.series[i].feed(row, value);
    }

    /// The row of a moment; makes rows longer until there is one.
    fn row_of(&mut self, now: Time) -> usize {
        let mut row = u128::from(now.as_nanos()) / self.row.as_nanos();
        while row >= ROWS_MAX as u128 {
            self.row = self.row.saturating_mul(2);
            self.rows = self.rows.div_ceil(2);
            self.series.iter_mut().for_each(Series::fold);
            row /= 2;
        }
        self.rows = self.rows.max(row as usize + 1);
        row as usize
    }

    /// The length of so many rows, in the largest unit of which one row is a whole number.
    fn span(&self, rows: usize) -> String {
        const UNITS: [(&str, u128); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
        let row = self.row.as_nanos();
        let (unit, size) = UNITS.into_iter().find(|(_, size)| row.is_multiple_of(*size)).unwrap_or(("ns", 1));
        format!("{} {unit}", row * rows as u128 / size)
    }

    /// The bar and the marks of a row.
    fn decorate(&self, line: &mut String, row: usize, value: u64) {
        let highest = self.series.first().map_or(0, Series::highest_cell).max(1);
        let length = (u128::from(value) * u128::from(BAR) / u128::from(highest)) as usize;
        line.push_str("  ");
        line.extend(core::iter::repeat_n('#', length));
        for (time, text) in &self.marks {
            if u128::from(time.as_nanos()) / self.row.as_nanos() == row as u128 {
                let _ = write!(line, " {text}");
            }
        }
    }
}

impl Series {
    fn new(name: &'static str, kind: Kind) -> Series {
        Series { name, kind, cells: [None; ROWS_MAX], total: 0, lowest: u64::MAX, highest: 0, last: 0 }
    }

    fn feed(&mut self, row: usize, value: u64) {
        self.total = self.total.saturating_add(value);
        self.lowest = self.lowest.min(value);
        self.highest = self.highest.max(value);
        self.last = value;
        self.cells[row] = self.merged(self.cells[row], Some(value));
    }

    /// Makes one row of two.
    fn fold(&mut self) {
        let mut cells = [None; ROWS_MAX];
        for (cell, pair) in cells.iter_mut().zip(self.cells.chunks(2)) {
            *cell = self.merged(pair[0], pair.get(1).copied().flatten());
        }
        self.cells = cells;
    }

    fn merged(&self, earlier: Option<u64>, later: Option<u64>) -> Option<u64> {
        match (earlier, later) {
            (Some(a), Some(b)) => Some(match self.kind {
                Kind::Sum => a.saturating_add(b),
                Kind::Peak => a.max(b),
                Kind::Level => b,
            }),
            (one, other) => one.or(other),
        }
    }

    fn highest_cell(&self) -> u64 {
        self.cells.iter().flatten().copied().max().unwrap_or(0)
    }

    fn width(&self) -> usize {
        let digits = self.highest_cell().checked_ilog10().map_or(1, |n| n as usize + 1);
        digits.max(self.name.chars().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_still_fits_and_loses_nothing() {
        let mut trace = Trace::new(Duration::from_millis(1));
        for second in 0..1_000 {
            trace.add(Time::from_millis(second * 1_000), "packets", 1);
            trace.level(Time::from_millis(second * 1_000), "window", second);
        }
        assert!(trace.table().lines().count() <= ROWS_MAX + 1);
        assert_eq!(trace.series[0].cells.iter().flatten().sum::<u64>(), 1_000);
        assert_eq!(trace.row, Duration::from_millis(65_536));
        insta::assert_snapshot!(trace.summary(), @r"
        packets: 1000 in 1048576 ms, 0 a second
        window: 999 at the end, 0 to 999
        ");
    }

    #[test]
    fn a_level_stays_a_sum_and_a_peak_do_not() {
        let mut trace = Trace::new(Duration::from_secs(1));
        for time in [0, 3] {
            let now = Time::from_millis(time * 1_000);
            trace.level(now, "window", 10 + time);
            trace.add(now, "sent", 4);
            trace.peak(now, "queue", 9);
        }
        trace.mark(Time::from_millis(2_100), "outage");
        insta::assert_snapshot!(trace.table(), @r"
          time  window  sent  queue
           0 s      10     4      9  ###############
           1 s      10     0      0  ###############
           2 s      10     0      0  ############### outage
           3 s      13     4      9  ####################
        ");
    }

    #[test]
    fn a_summary_has_five_lines_at_most() {
        let mut trace = Trace::new(Duration::from_secs(1));
        for name in ["a", "b", "c", "d", "e", "f", "g"] {
            trace.add(Time::ZERO, name, 1);
        }
        assert_eq!(trace.summary().lines().count(), LINES_MAX);
        assert!(trace.summary().ends_with("and 3 more\n"));
    }

    #[test]
    fn the_end_of_time_and_no_time_are_rows_too() {
        let mut trace = Trace::new(Duration::ZERO);
        assert_eq!(trace.table(), "  time\n");
        trace.add(Time::MAX, "n", u64::MAX);
        trace.add(Time::MAX, "n", 1);
        assert!(trace.table().lines().count() <= ROWS_MAX + 1);
        assert!(trace.summary().starts_with("n: 18446744073709551615 in "));
    }
}
