//! What congestion control is told: episodes, persistent congestion, delivery rate.

use super::{BYTES, Desk, millis, ms};
use crate::{EpisodeChange, Outcome, Rtt};
use core::time::Duration;
use stayfast_units::{PacketNumber, Time};

use EpisodeChange::{Began, None as Nothing, Real, Spurious};

/// Packets 1 to 6 under way on a path of 80 ms, the last of them acknowledged: 1, 2 and 3 are lost.
fn with_losses() -> Desk {
    let mut desk = Desk::with_rtt(80);
    desk.send(100, 1..=6);
    assert_eq!(desk.ack(180, &[(6, 6)]).episode, [Nothing, Began]);
    assert_eq!(desk.take(Outcome::Lost), [1, 2, 3]);
    desk
}

#[test]
fn an_episode_is_spurious_when_its_last_loss_is_late() {
    let mut desk = with_losses();
    assert_eq!(desk.ack(190, &[(2, 6)]).episode, [Nothing; 2]);
    assert_eq!(desk.ack(191, &[(1, 6)]).episode, [Spurious, Nothing]);
}

#[test]
fn one_gone_packet_makes_it_real_and_nothing_later_changes_that() {
    let mut desk = Desk::with_rtt(80);
    desk.send(100, 1..=2);
    desk.send(130, 3..=4);
    // Packets 1 and 2 are lost at once, packet 3 some time later.
    desk.ack(195, &[(4, 4)]);
    assert_eq!(desk.take(Outcome::Lost), [1, 2]);
    desk.timeout(230);
    assert_eq!(desk.take(Outcome::Lost), [3]);
    let gone_at = desk.ledger.next_timeout().unwrap().0.as_micros().div_ceil(1000);
    assert_eq!(desk.timeout(gone_at).1.episode, [Real, Nothing]);
    assert_eq!(desk.ack(gone_at + 1, &[(2, 4)]).episode, [Nothing; 2]);
    assert_eq!((desk.take(Outcome::Gone).len(), desk.take(Outcome::Late).len()), (2, 1));
}

#[test]
fn a_second_event_joins_the_open_episode() {
    let mut desk = with_losses();
    desk.send(181, 7..=16);
    assert_eq!(desk.ack(261, &[(16, 16), (6, 6)]).episode, [Nothing; 2]);
    assert_eq!(desk.take(Outcome::Lost).len(), 2 + 7);
    assert_eq!(desk.ack(262, &[(4, 16)]).episode, [Nothing; 2]);
    assert_eq!(desk.ack(263, &[(1, 16)]).episode, [Spurious, Nothing]);
    assert_eq!((desk.ledger.stats().episodes, desk.ledger.stats().spurious), (1, 1));
}

#[test]
fn a_mark_closes_the_episode() {
    let mut desk = with_losses();
    assert_eq!(desk.ledger.congestion_signalled(ms(185), ms(100)), Real);
    assert_eq!(desk.ledger.congestion_signalled(ms(186), ms(100)), Nothing);
    assert_eq!(desk.ack(190, &[(1, 6)]).episode, [Nothing; 2]);
}

#[test]
fn a_loss_inside_a_recovery_period_begins_nothing() {
    let mut desk = Desk::with_rtt(80);
    desk.send(100, 1..=6);
    assert_eq!(desk.ledger.congestion_signalled(ms(170), ms(100)), Nothing);
    assert_eq!(desk.ack(180, &[(6, 6)]).episode, [Nothing; 2]);
    assert_eq!(desk.take(Outcome::Lost), [1, 2, 3]);
}

#[test]
fn a_spurious_episode_leaves_no_recovery_period_behind() {
    let mut desk = with_losses();
    desk.send(179, 7..=8);
    assert_eq!(desk.ack(185, &[(1, 6)]).episode, [Spurious, Nothing]);
    // Sent before the undone reduction, truly lost after it: that reduction is no answer to it.
    desk.send(186, 9..=9);
    desk.ack(266, &[(9, 9), (1, 6)]);
    let (at, _) = desk.ledger.next_timeout().unwrap();
    assert_eq!(desk.timeout(at.as_micros().div_ceil(1000)).1.episode, [Nothing, Began]);
}

/// Packets 1 and 2 are sent `span` ms apart and not heard of until packet 3 is. The RTT stays 80 ms.
fn outage(span: u64, late: bool) -> (u64, bool) {
    let mut desk = Desk::with_rtt(80);
    // A second sample makes the variation small: 80 + max(4 * 30, 1) + 25.
    desk.send(100, 1..=1);
    desk.ack(180, &[(1, 1)]);
    desk.send(1000, 2..=2);
    desk.send(1000 + span, 3..=3);
    desk.send(1000 + span, 4..=4);
    desk.ack(1080 + span, &[(4, 4)]);
    let pto = desk.ledger.pto().as_millis() as u64;
    let mut persistent = false;
    if late {
        desk.timeout(1095 + span);
        desk.ack(1096 + span, &[(2, 4)]);
    }
    while let Some((at, _)) = desk.ledger.next_timeout() {
        persistent |= desk.timeout(at.as_micros().div_ceil(1000)).1.persistent;
    }
    (pto, persistent)
}

#[test]
fn persistent_congestion_needs_two_gone_packets_three_timeouts_apart() {
    let (pto, _) = outage(1, false);
    assert_eq!(outage(3 * pto, false), (pto, false));
    assert_eq!(outage(3 * pto + 1, false), (pto, true));
    assert_eq!(outage(3 * pto + 1, true), (pto, false), "late packets are no outage");
}

#[test]
fn after_persistent_congestion_the_smallest_round_trip_is_measured_anew() {
    for (span, smallest) in [(1, 80), (5_000, 200)] {
        let mut desk = Desk::with_rtt(80);
        desk.send(1_000, 1..=1);
        desk.send(1_000 + span, 2..=3);
        desk.ack(1_100 + span, &[(3, 3)]);
        let persistent = desk.timeout(9_000).1.persistent | desk.timeout(19_000).1.persistent;
        assert_eq!(persistent, span > 1);
        // The path has become longer.
        for (number, rtt) in [(4, 200), (5, 250)] {
            desk.send(10_000 * number, number..=number);
            desk.ack(10_000 * number + rtt, &[(number, number)]);
        }
        assert_eq!(desk.ledger.rtt().min(), millis(smallest));
    }
}

#[test]
fn the_rate_of_a_bottleneck_is_measured() {
    let mut desk = Desk::new();
    let mut rates = std::vec::Vec::new();
    // 20 ms of path, and one packet of 1000 B a millisecond through the bottleneck.
    for tick in 0..100 {
        let limited = tick == 50;
        desk.ledger.sent(PacketNumber(tick), ms(tick), BYTES, true, limited, ()).unwrap();
        if let Some(acked) = tick.checked_sub(20) {
            rates.extend(desk.ack(tick, &[(0, acked)]).rate);
        }
    }
    let steady = &rates[25..];
    assert!(steady.iter().all(|sample| sample.rate().bytes_per_sec() == 1_000_000), "{steady:?}");
    assert!(rates.iter().any(|sample| sample.app_limited) && !rates.last().unwrap().app_limited);
}

#[test]
fn the_round_trip_time_follows_the_rule() {
    let mut rtt = Rtt::new(Duration::MAX);
    assert_eq!(rtt.smoothed(), Duration::from_secs(60));
    rtt.update(Time::ZERO, millis(80), millis(25));
    assert_eq!((rtt.smoothed(), rtt.variation(), rtt.min()), (millis(80), millis(40), millis(80)));
    // 110 - 25 >= 80: the delay is taken off. 3/4 * 40 + 1/4 * 5, and 7/8 * 80 + 1/8 * 85.
    rtt.update(Time::ZERO, millis(110), millis(25));
    assert_eq!((rtt.smoothed(), rtt.variation()), (Duration::from_micros(80_625), Duration::from_micros(31_250)));
    // 90 - 25 < 80: it is not.
    rtt.update(Time::ZERO, millis(90), millis(25));
    assert_eq!(rtt.smoothed(), Duration::from_nanos(81_796_875));
    assert_eq!((rtt.latest(), rtt.min()), (millis(90), millis(80)));
}

#[test]
fn a_lost_probe_of_the_path_size_is_no_congestion() {
    let mut desk = Desk::with_rtt(80);
    desk.ledger.sent_size_probe(PacketNumber(1), ms(100), 1472, false, ()).unwrap();
    desk.send(100, 2..=6);
    assert_eq!(desk.ledger.in_flight(), 1472 + 5 * u64::from(BYTES));
    let report = desk.ack(180, &[(2, 6)]);
    assert_eq!((desk.take(Outcome::Lost), report.lost_bytes, report.largest_lost_sent), ([1].into(), 0, None));
    assert_eq!(report.episode, [Nothing; 2]);
    // Real losses begin an episode, and the fate of the probe has no part in it.
    desk.send(200, 7..=12);
    assert_eq!(desk.ack(280, &[(12, 12)]).episode, [Nothing, Began]);
    assert_eq!(desk.ack(290, &[(7, 12)]).episode, [Spurious, Nothing]);
    desk.timeout(1_000);
    assert_eq!(desk.take(Outcome::Gone), [1]);
}

#[test]
fn probes_of_the_path_size_are_no_persistent_congestion() {
    let mut desk = Desk::with_rtt(80);
    for number in 1..=4 {
        desk.ledger.sent_size_probe(PacketNumber(number), ms(100 + number * 1_000), 1472, false, ()).unwrap();
    }
    desk.send(5_000, 5..=5);
    desk.ack(5_080, &[(5, 5)]);
    assert!(!desk.timeout(9_000).1.persistent);
    assert_eq!(desk.take(Outcome::Gone).len(), 4);
}
