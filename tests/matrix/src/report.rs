//! The outcomes as a page with plots that needs no server.

use crate::peers::Kind;
use crate::plan::Plan;
use crate::run::{Outcome, Point, median_of};
use crate::table::table;
use plotters::prelude::{ChartBuilder, IntoDrawingArea, IntoFont, LineSeries, RGBColor, SVGBackend, WHITE};
use std::fmt::Write;

const SIZE: (u32, u32) = (560, 220);

/// What is plotted: a name with its unit, and the value of a point (and of the one before it).
type Series = (&'static str, fn(&Point, &Point, usize) -> f64);

const SERIES: [Series; 8] = [
    ("records, Mbit/s", |before, point, size| {
        let bits = (point.taken - before.taken) as f64 * size as f64 * 8.0;
        bits * 1e3 / ((point.at - before.at).as_nanos().max(1) as f64)
    }),
    ("window, kB", |_, point, _| point.sample.window as f64 / 1e3),
    ("queue, ms", |_, point, _| point.queue_us as f64 / 1e3),
    ("round trip, ms", |_, point, _| point.sample.rtt_us as f64 / 1e3),
    ("lost and gone, packets", |_, point, _| point.sample.lost.saturating_sub(point.sample.late) as f64),
    ("lost and late, packets", |_, point, _| point.sample.late as f64),
    ("congestion episodes that stand", |_, point, _| point.sample.episodes.saturating_sub(point.sample.undone) as f64),
    ("undone", |_, point, _| point.sample.undone as f64),
];

/// What became of a plan.
#[derive(Debug)]
pub struct Ran {
    /// Its name.
    pub name: String,
    /// The plan.
    pub plan: Plan,
    /// Of all its runs.
    pub outcomes: Vec<Outcome>,
}

/// The page.
///
/// # Errors
/// A plot could not be drawn: which, and why.
pub fn html(all: &[Ran]) -> Result<String, String> {
    let mut page = String::from(
        "<!doctype html><meta charset=utf-8><title>stayfast matrix</title><style>body{font:15px system-ui;margin:2em;\
         max-width:1200px}pre{overflow-x:auto}figure{display:inline-block;margin:0 1em 1em 0}summary{cursor:pointer;\
         font-weight:600;margin:.5em 0}</style><h1>Matrix</h1>",
    );
    page.push_str("<p>");
    for peer in Kind::ALL {
        let RGBColor(r, g, b) = color(peer);
        let _ = write!(page, "<b style='color:rgb({r},{g},{b})'>{peer}</b> ");
    }
    page.push_str("</p>");
    for ran in all {
        section(ran, &mut page)?;
    }
    Ok(page)
}

fn section(Ran { name, plan, outcomes }: &Ran, page: &mut String) -> Result<(), String> {
    let _ = write!(page, "<h2>{}</h2><pre>{}</pre>", escape(name), escape(&table(plan, outcomes)));
    for cell in &plan.cells {
        let runs: Vec<&Outcome> =
            Kind::ALL.into_iter().filter_map(|peer| median_of(outcomes, &cell.name, peer)).collect();
        if runs.is_empty() {
            continue;
        }
        let open = if plan.cells.len() == 1 { " open" } else { "" };
        let _ = write!(page, "<details{open}><summary>{} · {}</summary>", escape(&cell.name), escape(&cell.path));
        for series in SERIES {
            let svg = plot(series, &runs, cell.size).map_err(|e| format!("{}, {}: {e}", cell.name, series.0))?;
            let _ = write!(page, "<figure>{svg}</figure>");
        }
        page.push_str("</details>");
    }
    Ok(())
}

fn plot((name, value): Series, runs: &[&Outcome], size: usize) -> Result<String, Box<dyn std::error::Error>> {
    let lines: Vec<(Kind, Vec<(f64, f64)>)> = runs
        .iter()
        .map(|run| {
            let seconds = |point: &Point| point.at.as_nanos() as f64 / 1e9;
            let line = run.points.windows(2).map(|pair| (seconds(&pair[1]), value(&pair[0], &pair[1], size)));
            (run.peer, line.collect())
        })
        .collect();
    let most =
        |of: fn(&(f64, f64)) -> f64| lines.iter().flat_map(|(_, line)| line.iter().map(of)).fold(1e-3, f64::max) * 1.05;
    let (width, height) = (most(|point| point.0), most(|point| point.1));
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(6)
            .caption(name, ("sans-serif", 14).into_font())
            .x_label_area_size(24)
            .y_label_area_size(48)
            .build_cartesian_2d(0.0..width, 0.0..height)?;
        chart.configure_mesh().x_desc("s").max_light_lines(1).light_line_style(WHITE).draw()?;
        for (peer, line) in &lines {
            chart.draw_series(LineSeries::new(line.iter().copied(), color(*peer)))?;
        }
        area.present()?;
    }
    Ok(svg)
}

fn color(peer: Kind) -> RGBColor {
    match peer {
        Kind::Stayfast => RGBColor(0, 90, 200),
        Kind::Quinn => RGBColor(200, 60, 40),
        Kind::QuinnWide => RGBColor(230, 150, 30),
        Kind::QuinnBbr => RGBColor(120, 60, 160),
        Kind::Tcp => RGBColor(90, 90, 90),
        Kind::TcpBbr => RGBColor(40, 150, 90),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
