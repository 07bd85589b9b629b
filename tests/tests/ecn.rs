//! Marks of congestion in virtual time: queues that mark, paths that clear or drop marks.

use stayfast_link::{Ecn, Status};
use stayfast_sim::{Bleach, CoDel, Discipline, Element, Limit, Path, Probability, Red};
use stayfast_store::Outbox;
use stayfast_tests::Pair;
use stayfast_units::{Rate, RecordNumber, Time};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const RATE: Rate = Rate::from_bits_per_sec(50_000_000);
const SIZE: usize = 1_013;

/// A sender with a backlog on a path of 50 Mbit/s and 20 ms.
fn backlog(seed: u64, count: u64, there: Path) -> Pair {
    Pair::with_outbox(seed, there, Path::new().delay(10 * MS), |outbox| {
        for n in 0..count {
            outbox.append("log", &[&n.to_be_bytes().repeat(127)[..SIZE]]).expect("memory");
        }
    })
}

fn bottleneck(discipline: Discipline) -> Path {
    Path::new().delay(10 * MS).with(Element::Bottleneck(RATE, Limit::Bytes(RATE.bytes_in(100 * MS)), discipline))
}

struct Run {
    mbit: f64,
    status: Status,
    marked: u64,
    /// Dropped in the first second, and later.
    dropped: [u64; 2],
    /// The longest smoothed round trip after the first second.
    slowest: Duration,
}

/// Lets a backlog drain.
fn drain(count: u64, there: Path) -> Run {
    let mut pair = backlog(1, count, there);
    let (mut slowest, mut early) = (Duration::ZERO, 0);
    let mut at = None;
    while at.is_none() && pair.world.now() < Time::from_millis(60_000) {
        let until = pair.world.now() + 10 * MS;
        at = pair.run_until_stored("log", RecordNumber(count), until);
        let dropped = pair.world.path(pair.paths[0]).expect("there").stats().dropped();
        match pair.world.now() < Time::from_millis(1_000) {
            true => early = dropped,
            false => slowest = slowest.max(pair.sending().status().rtt),
        }
    }
    let (status, at) = (pair.sending().status(), at.expect("all is stored"));
    assert_eq!(pair.stored("log").len() as u64, count);
    let stats = pair.world.path(pair.paths[0]).expect("there").stats();
    let mbit = count as f64 * SIZE as f64 * 8_000.0 / at.as_nanos() as f64;
    Run { mbit, status, marked: stats.marked, dropped: [early, stats.dropped() - early], slowest }
}

#[test]
fn a_queue_that_marks_drops_nothing() {
    for (name, discipline) in [
        ("CoDel", Discipline::CoDel(CoDel { ecn: true, ..CoDel::default() })),
        ("FQ-CoDel", Discipline::FqCoDel(CoDel { ecn: true, ..CoDel::default() })),
        ("RED", Discipline::Red(Red { min: 30, max: 90, probability: Probability::percent(5), weight: 9, ecn: true })),
    ] {
        let Run { mbit, status, marked, dropped, slowest } = drain(60_000, bottleneck(discipline));
        println!("{name}: {mbit:.1} Mbit/s, {marked} marks, {dropped:?} dropped, RTT {slowest:?}, {status:?}");
        assert_eq!(status.ecn, Ecn::InUse, "{name}");
        assert!(marked > 0 && status.marks > 0 && status.marks <= marked, "{name}: {marked} {status:?}");
        assert_eq!((dropped[1], status.bytes_resent), (0, 0), "{name}: {dropped:?} {status:?}");
        assert!(mbit >= 45.0, "{name}: {mbit:.1} Mbit/s");
        assert!(slowest < 42 * MS, "{name}: {slowest:?}");
    }
}

#[test]
fn a_path_that_clears_marks_is_as_good_as_one_without() {
    let [plain, bleached] = [Bleach::Off, Bleach::Clear].map(|bleach| {
        drain(20_000, Path::new().bleach(bleach).delay(10 * MS).rate(RATE, Limit::Bytes(RATE.bytes_in(20 * MS))))
    });
    println!("{:.1} Mbit/s, {:.1} bleached", plain.mbit, bleached.mbit);
    assert_eq!((plain.status.ecn, bleached.status.ecn), (Ecn::InUse, Ecn::Unusable));
    assert!(bleached.mbit > plain.mbit * 0.99, "{:.1} {:.1} Mbit/s", plain.mbit, bleached.mbit);
    assert_eq!(bleached.status.bytes_resent, plain.status.bytes_resent);
}

/// Ten packets, and with them the first slow start.
#[test]
fn a_path_that_drops_what_is_marked_costs_a_flight() {
    let line = || Path::new().bleach(Bleach::Drop).delay(10 * MS);
    let run = drain(20_000, line().rate(RATE, Limit::Bytes(RATE.bytes_in(20 * MS))));
    println!("{:.1} Mbit/s, {:?}", run.mbit, run.status);
    assert_eq!((run.status.ecn, run.status.undos), (Ecn::Unusable, 0), "{:?}", run.status);
    assert!((10..15).contains(&run.status.lost), "{:?}", run.status);
    assert!(run.mbit > 35.0, "{:.1} Mbit/s", run.mbit);
}
