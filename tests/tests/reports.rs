//! Faults that users of comparable software have reported, on simulated paths: see `docs/reports.md`.

use stayfast_sim::{Element, Event, Limit, Path, Probability};
use stayfast_tests::{Pair, SENDER};
use stayfast_units::{Rate, RecordNumber, Time};
use std::net::SocketAddr;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const RATE: Rate = Rate::from_bits_per_sec(50_000_000);
/// A full packet on the wire at this rate.
const PACKET: Duration = Duration::from_micros(242);

/// A bottleneck that loses nothing: its queue holds ten round trips.
fn deep(rate: Rate, rtt: Duration) -> Path {
    Path::new().rate(rate, Limit::Bytes(10 * rate.bytes_in(rtt))).delay(rtt / 2)
}

// Report 1.
#[test]
fn packets_displaced_by_up_to_23_cost_no_window() {
    for (seed, share) in [(1, 5), (2, 5), (3, 30), (4, 30)] {
        let there = deep(RATE, 20 * MS).late(Probability::percent(share), PACKET, 23 * PACKET);
        let mut pair = Pair::with_backlog(seed, (there, Path::new().delay(10 * MS)), 25_000, 1_013);
        let mut windows = Vec::new();
        for _ in 0..200 {
            let until = pair.world.now() + 20 * MS;
            pair.world.run_until(until);
            windows.push(pair.sending().status().window);
        }
        let status = pair.sending().status();
        assert!(status.lost >= 1 && status.undos >= 1, "nobody learned anything: {status:?}");
        // What was lost for a moment was late, and is undone before anybody looks again.
        assert_eq!(status.lost, status.late, "seed {seed}: {status:?}");
        assert!(windows.is_sorted(), "seed {seed}: the window shrank: {windows:?}");
        assert!(pair.run_until_stored("log", RecordNumber(25_000), Time::from_millis(5_000)).is_some(), "{status:?}");
        pair.assert_whole(25_000);
    }
}

// Report 2.
#[test]
fn a_millisecond_of_jitter_causes_no_resends() {
    for (mbit, rtt) in [(10, 20), (50, 20), (200, 20), (50, 100)] {
        let (rate, rtt, count) = (Rate::from_bits_per_sec(mbit * 1_000_000), rtt * MS, mbit * 300);
        let there = deep(rate, rtt).jitter(MS);
        let mut pair = Pair::with_backlog(1, (there, Path::new().jitter(MS).delay(rtt / 2)), count, 1_013);
        assert!(pair.run_until_stored("log", RecordNumber(count), Time::from_millis(10_000)).is_some());
        let (resent, all) = (pair.sending().status().bytes_resent, count * 1_013);
        assert!(resent * 1_000 <= all, "{mbit} Mbit/s, RTT {rtt:?}: {resent} of {all} B");
    }
}

// The path that shrinks (3) is `a_path_that_shrinks_is_back_within_a_few_round_trips` in `sim_link.rs`.

// Report 8.
#[test]
fn answers_go_to_a_new_port_within_a_round_trip() {
    for millis in [500, 503, 507, 511] {
        let there = Path::new().rate(RATE, Limit::Bytes(RATE.bytes_in(20 * MS))).delay(10 * MS);
        let mut pair = Pair::with_backlog(1, (there, Path::new().delay(10 * MS)), 20_000, 1_013);
        pair.world.run_until(Time::from_millis(millis));
        let (until, new) = (pair.world.now() + 200 * MS, SocketAddr::new(SENDER.ip(), 1_024));
        pair.world.rebind(pair.sender, new);
        let (mut sent, mut answered) = (None, None);
        pair.world.run_observed(until, &mut |now, event| match event {
            Event::Sent(_, datagram) if datagram.from == new => sent = sent.or(Some(now)),
            Event::Delivered(_, datagram) if datagram.to == new => answered = answered.or(Some(now)),
            _ => {}
        });
        // The window may be full at this moment: then the first packet from there is a probe, and the queue is empty.
        let (sent, answered) = (sent.expect("a probe"), answered.expect("an answer"));
        assert!(answered - sent <= 21 * MS, "sent at {sent}, answered at {answered}");
        assert!(pair.run_until_stored("log", RecordNumber(20_000), Time::from_millis(10_000)).is_some());
        pair.assert_whole(20_000);
        assert_eq!(pair.receiving().status().address, Some(new));
    }
}

// Report 17.
#[test]
fn what_was_sent_between_an_outage_and_its_detection_is_not_lost() {
    // The last one is long enough to fill the ledger with probes.
    for outage in [100, 1_000, 30_000, 300_000] {
        let line = || Path::new().outage().delay(10 * MS);
        let there = line().rate(RATE, Limit::Bytes(RATE.bytes_in(20 * MS)));
        let mut pair = Pair::new(1, there, line());
        let mut count = 0_u64;
        let mut append_for = |pair: &mut Pair, millis: u64| {
            for _ in 0..millis / 10 {
                let mut body = [7; 300];
                body[..8].copy_from_slice(&count.to_be_bytes());
                pair.sending().append("log", &[&body]);
                count += 1;
                let until = pair.world.now() + 10 * MS;
                pair.world.run_until(until);
            }
            count
        };
        append_for(&mut pair, 1_000);
        for (on, millis) in [(true, outage), (false, 10)] {
            for path in pair.paths {
                assert!(pair.world.set(path, Element::Outage(on)));
            }
            append_for(&mut pair, millis);
        }
        let (back, count) = (pair.world.now(), append_for(&mut pair, 10));
        let at = pair.run_until_stored("log", RecordNumber(count), back + 10_000 * MS);
        let status = pair.sending().status();
        assert!(at.is_some(), "{outage} ms: {status:?} {:?}", pair.sending().events);
        pair.assert_whole(count);
    }
}
