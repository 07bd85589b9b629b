//! What a change of behaviour looks like: a few runs as tables, to be reviewed in a pull request.

use stayfast_sim::{Event, Limit, Path, Probability, Trace};
use stayfast_store::Outbox;
use stayfast_tests::Pair;
use stayfast_units::{Rate, RecordNumber, Time};
use std::fmt::Write;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const COUNT: u64 = 6_000;
const SIZE: usize = 1_013;

/// RTT 20 ms, 50 Mbit/s, a queue of one round trip on the data direction.
fn pair(jitter: Duration, loss: u32) -> Pair {
    let (rate, loss) = (Rate::from_bits_per_sec(50_000_000), Probability::percent(loss));
    let line = || Path::new().loss(loss).jitter(jitter).delay(10 * MS);
    let there = line().rate(rate, Limit::Bytes(rate.bytes_in(20 * MS)));
    let body = [7; SIZE];
    let mut pair = Pair::with_outbox(1, there, line(), |outbox| {
        for _ in 0..COUNT {
            outbox.append("log", &[&body]).expect("memory");
        }
    });
    pair.world.record_digest();
    pair
}

/// Runs until all is stored; `meddle` is called every ten milliseconds.
fn table(mut pair: Pair, row: Duration, mut meddle: impl FnMut(&mut Pair, &mut Trace)) -> String {
    let mut trace = Trace::new(row);
    let mut known = 0;
    while known < COUNT && pair.world.now() < Time::from_millis(60_000) {
        let until = pair.world.now() + 10 * MS;
        let to = pair.receiver.id();
        pair.world.run_observed(until, &mut |now, event| {
            if let Event::Delivered(node, datagram) = event
                && node == to
            {
                trace.add(now, "kbit", datagram.wire_size() * 8 / 1_000);
            }
        });
        let now = pair.world.now();
        let (queued, status) =
            (pair.world.path(pair.paths[0]).map_or(0, |path| path.queued().0), pair.sending().status());
        trace.peak(now, "queue", queued as u64);
        trace.peak(now, "window_kb", status.window / 1_000);
        trace.level(now, "lost", status.lost);
        trace.level(now, "late", status.late);
        trace.level(now, "undone", status.undos);
        known = pair.sending().stored.get("log").map_or(0, |next: &RecordNumber| next.0);
        trace.level(now, "stored", known);
        meddle(&mut pair, &mut trace);
    }
    let (end, status) = (pair.world.now(), pair.sending().status());
    assert_eq!(pair.stored("log").len() as u64, COUNT, "{status:?}");
    let kbit = COUNT * SIZE as u64 * 8 * 1_000_000 / end.as_nanos();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{COUNT} records of {SIZE} B in {} ms: {}.{:02} Mbit/s",
        end.as_micros() / 1_000,
        kbit / 1_000,
        kbit % 1_000 / 10
    );
    let resent = status.bytes_resent * 1_000 / (COUNT * SIZE as u64);
    let _ =
        writeln!(text, "resent {}.{} %, digest {:016x}", resent / 10, resent % 10, pair.world.digest().unwrap_or(0));
    text + &trace.table()
}

#[test]
fn clean() {
    insta::assert_snapshot!(table(pair(Duration::ZERO, 0), 50 * MS, |_, _| {}));
}

#[test]
fn jitter() {
    insta::assert_snapshot!(table(pair(3 * MS, 0), 50 * MS, |_, _| {}));
}

#[test]
fn loss() {
    insta::assert_snapshot!(table(pair(Duration::ZERO, 1), 400 * MS, |_, _| {}));
}

#[test]
fn restart() {
    let mut kills = 0;
    let meddle = |pair: &mut Pair, trace: &mut Trace| {
        if pair.world.now() > Time::from_millis(250 * (kills + 1)) && kills < 4 {
            kills += 1;
            let (now, receiver) = (pair.world.now(), kills % 2 == 1);
            trace.mark(now, if receiver { "receiver killed" } else { "sender killed" });
            if receiver { pair.kill_receiver() } else { pair.kill_sender() }
        }
    };
    insta::assert_snapshot!(table(pair(Duration::ZERO, 0), 100 * MS, meddle));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = || table(pair(3 * MS, 1), 400 * MS, |_, _| {});
    assert_eq!(run(), run());
}
