//! The table that a change of behaviour shows in a pull request, and that the same seed gives it again.

use stayfast_matrix::peers::Kind;
use stayfast_matrix::plan::Plan;
use stayfast_matrix::report::{Ran, html};
use stayfast_matrix::run::{Outcome, run};
use stayfast_matrix::table::table;
use std::path::Path;

const SECONDS: u64 = 5;

fn plan() -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plans/origin.toml");
    Plan::parse(&std::fs::read_to_string(path).expect("it is in the repository")).expect("it is valid")
}

fn outcomes(plan: &Plan) -> Vec<Outcome> {
    let run = |cell| run(cell, SECONDS, Kind::Stayfast, 1).expect("a valid path");
    plan.cells.iter().map(run).collect()
}

#[test]
fn ours() {
    let plan = plan();
    insta::assert_snapshot!(table(&plan, &outcomes(&plan)));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let plan = plan();
    let cell = plan.cells.iter().find(|cell| cell.name == "20/1/3").expect("a cell of the plan");
    for peer in [Kind::Stayfast, Kind::QuinnWide] {
        let run = |seed| {
            let outcome = run(cell, 2, peer, seed).expect("a valid path");
            (outcome.mbit.to_bits(), outcome.lost, outcome.late, outcome.queue_us)
        };
        assert_eq!(run(7), run(7), "{peer}");
        assert_ne!(run(7), run(8), "{peer}");
    }
}

/// What is known of the others from real paths, coarsely: who suffers from reordering, and who holds loss.
#[test]
fn the_peers_behave_as_they_do_on_real_paths() {
    let plan = plan();
    let mbit = |cell: &str, peer| {
        let cell = plan.cells.iter().find(|c| c.name == cell).expect("a cell of the plan");
        run(cell, SECONDS, peer, 1).expect("a valid path").mbit
    };
    assert!(mbit("20/0/0", Kind::Quinn) > 45.0);
    assert!(mbit("20/0/3", Kind::Quinn) < 5.0, "jitter looks like loss to it");
    assert!(mbit("20/0/3", Kind::QuinnWide) > 30.0);
    assert!(mbit("20/1/0", Kind::QuinnBbr) > 35.0, "random loss does not stop a model of the path");
    assert!(mbit("20/1/0", Kind::Quinn) < 15.0);
}

#[test]
fn a_paced_load_is_measured_record_by_record() {
    let plan = plan();
    let cell = plan.cells.iter().find(|cell| cell.name == "20/1 50/s").expect("a cell of the plan");
    for peer in plan.peers(cell) {
        let outcome = run(cell, SECONDS, peer, 1).expect("a valid path");
        let latency = outcome.latency.expect("a paced load");
        assert_eq!(latency.missing, 0, "{peer}");
        assert!((10_000..11_000).contains(&latency.p50), "{peer}: {latency:?}");
        assert!((0.39..0.42).contains(&outcome.mbit), "{peer}: {} Mbit/s", outcome.mbit);
    }
}

#[test]
fn the_page_has_a_plot_for_each_series() {
    let plan = plan();
    let outcomes = vec![run(&plan.cells[0], 1, Kind::Stayfast, 1).expect("a valid path")];
    let ran = |name: &str| Ran { name: name.into(), plan: plan.clone(), outcomes: outcomes.clone() };
    let page = html(&[ran("a"), ran("b < c")]).expect("it can be drawn");
    assert_eq!((page.matches("<svg").count(), page.matches("<!doctype").count()), (16, 1));
    assert!(page.contains("<h2>b &lt; c</h2>"));
    assert!(page.contains("<details><summary>20/0/0 · rate=50M rtt=20ms</summary>"));
}

/// The bar of the design: between 0.40 and 0.60 beside one TCP, where TCP beside TCP is as near to a half as that.
#[test]
fn one_tcp_beside_us_gets_its_share() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plans/share.toml");
    let plan = Plan::parse(&std::fs::read_to_string(path).expect("it is in the repository")).expect("it is valid");
    let cell = plan.cells.iter().find(|cell| cell.name == "20 beside tcp").expect("a cell of the plan");
    for peer in [Kind::Stayfast, Kind::Tcp] {
        let share = run(cell, 30, peer, 1).expect("a valid path").share.expect("another runs beside");
        assert!((0.40..0.60).contains(&share), "{peer}: {share:.2}");
    }
}
