//! What changes under way does so at its time, and who comes late comes late.

use stayfast_matrix::peers::Kind;
use stayfast_matrix::plan::{ALL, Cell, Plan};
use stayfast_matrix::run::{Outcome, run, run_in_full};
use stayfast_matrix::trace;
use stayfast_units::Time;
use std::time::Duration;

const SECONDS: u64 = 9;
/// One of each kind.
const PEERS: [Kind; 3] = [Kind::Stayfast, Kind::Quinn, Kind::Tcp];

fn cell(words: &str) -> Cell {
    let plan = format!("seconds = {SECONDS}\n[[cell]]\nname = 'x'\n{words}");
    Plan::parse(&plan).expect("it is valid").cells.remove(0)
}

fn go(words: &str, peer: Kind) -> Outcome {
    run_in_full(&cell(words), SECONDS, peer, 1).expect("a valid path")
}

/// Mbit/s of records of 1,013 B between two times after the first record.
fn mbit(outcome: &Outcome, from: f64, until: f64) -> f64 {
    let first = outcome.points.iter().find(|point| point.taken > 0).expect("records came").at;
    let taken = |seconds: f64| {
        let at = first + Duration::from_secs_f64(seconds);
        outcome.points.iter().rfind(|point| point.at <= at).map_or(0, |point| point.taken)
    };
    (taken(until) - taken(from)) as f64 * 1_013.0 * 8.0 / (until - from) / 1e6
}

#[test]
fn a_rate_steps_down_and_up() {
    let words = "path = 'rate=50M rtt=20ms'
                 change = [{ at = 3, path = 'rate=10M rtt=20ms' }, { at = 6, path = 'rate=50M rtt=20ms' }]";
    for peer in PEERS {
        let outcome = go(words, peer);
        let rates = [(1.0, 3.0), (4.0, 6.0), (7.5, 9.0)].map(|(from, until)| mbit(&outcome, from, until));
        assert!(rates[0] > 42.0 && (8.0..9.7).contains(&rates[1]) && rates[2] > 35.0, "{peer}: {rates:?}");
        assert_eq!(outcome.marks.len(), 2, "{:?}", outcome.marks);
        assert!(outcome.back_ms.is_some_and(|ms| (200..2_900).contains(&ms)), "{peer}: {:?}", outcome.back_ms);
    }
}

#[test]
fn an_outage_carries_nothing_and_ends() {
    let words = "path = 'rate=50M rtt=20ms'
                 change = [{ at = 3, path = 'rate=50M rtt=20ms loss=100%' }, { at = 5, path = 'rate=50M rtt=20ms' }]";
    for peer in PEERS {
        let outcome = go(words, peer);
        assert_eq!(mbit(&outcome, 3.1, 5.0), 0.0, "{peer}");
        // The ceiling knows that there was nothing to be had: what is lost of it is the time until the next probe.
        assert!(outcome.of_path.is_some_and(|share| (0.65..1.0).contains(&share)), "{peer}: {:?}", outcome.of_path);
        assert!(outcome.back_ms.is_some_and(|ms| ms < 4_000), "{peer}: {:?}", outcome.back_ms);
    }
}

#[test]
fn of_changes_at_the_same_time_the_last_one_holds() {
    let words = "path = 'rate=50M rtt=20ms'
                 change = [{ at = 3, path = 'rate=1M rtt=20ms' }, { at = 3, path = 'rate=10M rtt=20ms' }]";
    let rate = mbit(&go(words, Kind::Stayfast), 4.0, 9.0);
    assert!((8.5..9.7).contains(&rate), "{rate}");
}

#[test]
fn of_what_is_not_there_nothing_is_told() {
    let words = "path = 'rate=50M rtt=20ms'
                 change = [{ at = 3, path = 'rate=50M rtt=20ms loss=100%' }]";
    let outcome = go(words, Kind::Stayfast);
    assert_eq!((outcome.back_ms, outcome.resent_later_permille.is_some()), (None, true), "it ends in the outage");
    let outcome = go("path = 'rate=50M rtt=20ms loss=100%'", Kind::Stayfast);
    assert_eq!((outcome.mbit, outcome.resent_permille, outcome.resent_later_permille), (0.0, None, None));
}

#[test]
fn who_can_move_goes_on_from_another_port() {
    let words = "path = 'rate=50M rtt=20ms'\nchange = [{ at = 3, rebind = true }]";
    let plan = Plan { seconds: SECONDS, seeds: vec![1], peers: Vec::new(), cells: vec![cell(words)] };
    let peers = plan.peers(&plan.cells[0]);
    let simulated = Kind::ALL.iter().filter(|kind| kind.carries(plan.cells[0].load)).count();
    assert_eq!(peers.len(), simulated - 1, "all but TCP");
    for peer in peers {
        let after = mbit(&go(words, peer), 4.0, 9.0);
        assert!(after > 44.0, "{peer}: {after}");
    }
}

#[test]
fn who_comes_late_begins_at_its_time() {
    let words = "path = 'rate=50M rtt=20ms jitter=1ms'\nbeside = [{ peer = 'tcp', from = 4 }]";
    let outcome = go(words, Kind::Stayfast);
    let first = outcome.points.iter().find(|point| point.taken > 0).expect("records came").at;
    let joined = outcome.points.iter().find(|point| point.beside > 0).expect("it came").at - first;
    assert!((4_000..4_150).contains(&joined.as_millis()), "{joined:?}");

    let outcome = go("path = 'rate=50M rtt=20ms'\nbeside = ['tcp']\nafter = 4", Kind::Stayfast);
    let first = outcome.points.iter().find(|point| point.taken > 0).expect("records came");
    assert!(first.at > Time::from_millis(4_000) && first.beside > 10_000, "{first:?}");
}

#[test]
fn a_line_of_ones_own_is_part_of_the_round_trip() {
    let rtt = |line: &str, peer| {
        let cell = cell(&format!("path = 'rate=1000M rtt=20ms'\nload = {{ rate = 50 }}\nline = '{line}'"));
        run(&cell, 2, peer, 1).expect("a valid path").rtt_us
    };
    for peer in [Kind::Stayfast, Kind::Quinn] {
        let (short, long) = (rtt("", peer), rtt("rtt=60ms", peer));
        assert!((20_000..22_000).contains(&short) && (80_000..82_000).contains(&long), "{peer}: {short}, {long}");
    }
}

fn plan(name: &str) -> Plan {
    Plan::read(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).expect("it is valid")
}

/// The bar: nine tenths of what it was, within two seconds. That nothing is lost is tested record by record in
/// `tests/tests/sim_link.rs`.
#[test]
fn after_the_mtu_has_shrunk_we_are_back_within_two_seconds() {
    let plan = plan("tests/plans/cells.toml");
    let cell = plan.cells.iter().find(|cell| cell.name == "mtu shrink").expect("a cell of the plan");
    let back = run(cell, SECONDS, Kind::Stayfast, 1).expect("a valid path").back_ms;
    assert!(back.is_some_and(|ms| ms <= 2_000), "{back:?} ms");
}

#[test]
fn every_plan_can_be_read_and_has_somebody_in_each_cell() {
    for name in ALL {
        let plan = plan(name);
        for cell in &plan.cells {
            assert!(!plan.peers(cell).is_empty(), "{name}: {}", cell.name);
            assert!(plan.short_seconds(cell) <= plan.seconds(cell), "{name}: {}", cell.name);
        }
    }
    assert_eq!(plan("tests/plans/scenarios.toml").cells.len(), 12);
}

#[test]
fn a_trace_has_a_row_each_so_often_and_one_for_what_happens() {
    let words = "path = 'rate=50M rtt=20ms'\nchange = [{ at = 1, path = 'rate=50M rtt=20ms loss=20%' }]";
    let outcome = run_in_full(&cell(words), 2, Kind::Stayfast, 1).expect("a valid path");
    let rows = trace::rows(&outcome, Duration::from_millis(100), 1_013);
    assert!((20..23).contains(&rows.len()), "{}", rows.len());
    let i = rows.iter().position(|row| !row.marks.is_empty()).expect("the change has a row");
    assert!((1_000..1_100).contains(&rows[i].at_ms) && rows[i].marks == ["rate=50M rtt=20ms loss=20%"]);
    assert!((40_000..50_000).contains(&rows[i - 1].kbit) && rows[i - 1].queue_us > 0);
    assert_eq!(rows[..=i].iter().map(|row| row.lost).sum::<u64>(), 0);
    assert_eq!(rows.iter().map(|row| row.lost).sum::<u64>(), outcome.lost);
    assert!(outcome.lost > 20 && rows.iter().map(|row| row.episodes).sum::<u64>() == outcome.episodes);
    let text = trace::text(&rows);
    assert_eq!(text.lines().count(), rows.len() + 1);
    assert!(text.contains("rate=50M rtt=20ms loss=20%"), "{text}");
}
