//! Results on standard output, for people or for programs; remarks on standard error.

use crate::failure::Outcome;
use crate::text::printable;
use serde_json::Value;
use std::io::{IsTerminal, Write, stderr, stdout};

/// How results are printed.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Format {
    /// Print results as JSON, one value a line
    #[arg(long)]
    pub json: bool,
}

impl Format {
    /// Prints a result: `json` if that was asked for, else the text.
    pub fn print(self, json: &Value, text: &str) -> Outcome {
        let mut out = stdout().lock();
        match self.json {
            true => writeln!(out, "{json}")?,
            false => writeln!(out, "{text}")?,
        }
        Ok(out.flush()?)
    }
}

/// A remark for the person at the terminal, on standard error. If nobody can read it, that is no reason to stop.
pub fn remark(text: impl std::fmt::Display) {
    drop(writeln!(stderr(), "{text}"));
}

/// Colours, where they are shown and wanted: on a terminal, unless `NO_COLOR` is set.
#[derive(Clone, Copy, Debug)]
pub struct Paint(bool);

impl Paint {
    /// For standard output.
    pub fn stdout() -> Paint {
        Paint(stdout().is_terminal() && wanted())
    }

    /// For standard error.
    pub fn stderr() -> Paint {
        Paint(stderr().is_terminal() && wanted())
    }

    /// What went wrong.
    pub fn red(self, text: &str) -> String {
        self.paint("31;1", text)
    }

    /// What went well.
    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Headings.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

fn wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Columns of text; those that begin with a digit throughout stand to the right. What a terminal would obey is escaped.
pub fn table(header: &[&str], rows: &[Vec<String>], paint: Paint) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([header[column].len()]).max().unwrap_or(0)
    };
    let right = |column: usize| {
        !rows.is_empty()
            && rows
                .iter()
                .all(|row| row.get(column).is_some_and(|c| c == "-" || c.starts_with(|d: char| d.is_ascii_digit())))
    };
    let line = |cells: &[String]| {
        let cells = cells.iter().enumerate().map(|(column, cell)| match right(column) {
            true => format!("{cell:>0$}", width(column)),
            false => format!("{cell:<0$}", width(column)),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    let head: Vec<String> = header.iter().map(ToString::to_string).collect();
    let mut lines = vec![paint.bold(&line(&head))];
    lines.extend(rows.iter().map(|row| line(row)));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right() {
        let rows = [vec!["a".to_string(), "1,000".to_string()], vec!["longer".to_string(), "7".to_string()]];
        assert_eq!(table(&["stream", "n"], &rows, Paint(false)), "stream      n\na       1,000\nlonger      7");
    }

    #[test]
    fn a_table_without_rows_is_its_header() {
        assert_eq!(table(&["stream", "n"], &[], Paint(true)), "\x1b[1mstream  n\x1b[0m");
    }
}
