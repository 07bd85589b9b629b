//! When a packet is lost, late, gone.

use super::{Desk, millis, ms};
use crate::{Deadline, Outcome, Timeout};
use core::time::Duration;
use stayfast_units::PacketNumber;
use std::vec;

#[test]
fn three_later_packets_are_enough_until_reordering_is_seen() {
    let mut desk = Desk::with_rtt(100);
    desk.send(100, 1..=5);
    desk.ack(200, &[(3, 3)]);
    assert_eq!(desk.take(Outcome::Lost), []);
    desk.ack(200, &[(3, 4)]);
    assert_eq!(desk.take(Outcome::Lost), [1]);
    // Packet 2 was overtaken and arrives: from now on, counts prove nothing.
    desk.ack(201, &[(2, 4)]);
    desk.send(201, 6..=100);
    desk.ack(301, &[(100, 100)]);
    assert_eq!(desk.take(Outcome::Lost), [5], "by time, and none by count");
}

#[test]
fn an_overtaken_packet_is_lost_after_nine_eighths_of_a_round_trip() {
    let mut desk = Desk::with_rtt(80);
    desk.send(100, 1..=2);
    desk.ack(180, &[(2, 2)]);
    assert_eq!(desk.ledger.next_timeout(), Some((ms(190), Deadline::Loss)));
    assert_eq!(desk.timeout(189).0, Timeout::None);
    assert_eq!(desk.timeout(190).0, Timeout::LossDetected);
    assert_eq!(desk.told.last(), Some(&(Outcome::Lost, 1)));
}

#[test]
fn a_lost_packet_is_late_for_two_round_trips_and_then_gone() {
    for (at, outcome) in [(359, Outcome::Late), (360, Outcome::Gone)] {
        let mut desk = Desk::with_rtt(80);
        desk.send(100, 1..=4);
        desk.ack(200, &[(4, 4)]);
        assert_eq!(desk.take(Outcome::Lost), [1]);
        // The sample of 100 ms counts, because it is above the smoothed RTT.
        assert_eq!(desk.ledger.in_flight(), 2000);
        desk.ack(201, &[(2, 4)]);
        desk.timeout(at + 40);
        let report = desk.ack(at + 40, &[(1, 4)]);
        assert_eq!(desk.told.last().map(|told| told.0), Some(outcome));
        assert_eq!(report.late_bytes, if outcome == Outcome::Late { 1000 } else { 0 });
        assert_eq!(desk.ledger.in_flight(), 0);
        assert_eq!(desk.ledger.next_timeout(), None);
    }
}

#[test]
fn the_window_covers_the_lateness_in_steps_and_stops_at_a_round_trip() {
    let late = |by: u64| {
        let mut desk = Desk::with_rtt(80);
        desk.send(100, 1..=4);
        desk.ack(180, &[(4, 4)]);
        assert_eq!(desk.take(Outcome::Lost), [1]);
        desk.ack(180 + by, &[(1, 4)]);
        desk.ledger.reordering_window()
    };
    assert_eq!(late(1), millis(20));
    assert_eq!(late(20), millis(20));
    assert_eq!(late(21), millis(40));
    // The round trip of the two packets, on average: 7/8 of 80 ms and 1/8 of 230 ms.
    assert_eq!(late(150), Duration::from_micros(98_750));
}

#[test]
fn the_window_is_used_and_halves_after_sixteen_quiet_episodes() {
    let mut desk = Desk::with_rtt(80);
    desk.send(100, 1..=4);
    desk.ack(180, &[(4, 4)]);
    desk.ack(240, &[(1, 4)]);
    assert_eq!(desk.ledger.reordering_window(), millis(60));

    let (mut number, mut now) = (5, 1000);
    for window in [60; 16].into_iter().chain([20; 16]).chain([0]) {
        assert_eq!(desk.ledger.reordering_window(), millis(window));
        desk.send(now, number..=number + 1);
        desk.ack(now + 80, &[(number + 1, number + 1)]);
        // Its mean still has some of the packet that took 140 ms.
        let round_trip = desk.ledger.rtt().mean();
        let lost = ms(now) + round_trip + millis(window).max(round_trip / 8);
        assert_eq!(desk.ledger.next_timeout(), Some((lost, Deadline::Loss)));
        desk.timeout_at(lost);
        let gone = lost + round_trip * 2;
        assert_eq!(desk.ledger.next_timeout(), Some((gone, Deadline::Gone)));
        desk.timeout_at(gone);
        (number, now) = (number + 2, now + 1000);
    }
    assert_eq!(desk.take(Outcome::Gone).len(), 33);
}

#[test]
fn a_packet_that_only_made_room_says_nothing_about_reordering() {
    let mut desk = Desk::with_capacity(4);
    desk.send(0, 1..=4);
    assert!(desk.ledger.is_full());
    for probe in 5..=6 {
        let (at, _) = desk.ledger.next_timeout().unwrap();
        assert!(matches!(desk.timeout(at.as_micros() / 1000).0, Timeout::Probe { .. }));
        desk.send(at.as_micros() / 1000, probe..=probe);
    }
    assert_eq!(desk.take(Outcome::Lost), [1]);
    desk.ack(1000, &[(1, 1)]);
    assert_eq!(desk.take(Outcome::Late), [1]);
    assert_eq!(desk.ledger.reordering_window(), Duration::ZERO);
    desk.ack(1001, &[(5, 6)]);
    assert_eq!(desk.take(Outcome::Lost), [2, 3, 4]);
    desk.send(1002, 7..=10);
    desk.ack(1003, &[(10, 10)]);
    assert_eq!(desk.take(Outcome::Lost), [7], "the packet threshold still holds");
}

#[test]
fn what_never_left_is_charged_to_nobody() {
    let mut desk = Desk::with_rtt(80);
    desk.send(100, 1..=4);
    for number in [2, 3, 1, 9] {
        desk.ledger.unsent(PacketNumber(number));
    }
    assert_eq!(desk.ledger.in_flight(), 1000);
    let report = desk.ack(300, &[(4, 4)]);
    assert_eq!((report.lost_bytes, report.acked_bytes), (0, 1000));
    assert_eq!(desk.told, vec![(Outcome::Acked, 4)]);
    assert_eq!((desk.ledger.stats().unsent, desk.ledger.next_timeout()), (3, None));
}

#[test]
fn what_never_left_gives_its_place_back() {
    let mut desk = Desk::with_capacity(4);
    desk.send(0, 0..=0);
    for round in 0..100 {
        desk.send(0, 3 * round + 1..=3 * round + 3);
        assert!(desk.ledger.is_full());
        (1..=3).for_each(|n| desk.ledger.unsent(PacketNumber(3 * round + n)));
        assert!(!desk.ledger.is_full());
    }
}

#[test]
fn an_unused_number_is_refused_and_an_unrecorded_one_measures_the_path() {
    let mut desk = Desk::with_rtt(80);
    desk.send(100, 1..=1);
    let ranges = || [(PacketNumber(1), PacketNumber(2))].into_iter();
    let mut ledger = desk.ledger;
    let bogus = ledger.acknowledge(ms(150), PacketNumber(2), Duration::ZERO, ranges(), &mut |_, _| {});
    assert_eq!(bogus.unwrap_err().used, Some(PacketNumber(1)));
    assert_eq!(ledger.in_flight(), 1000);

    ledger.sent_unrecorded(PacketNumber(2), ms(110));
    let report = ledger.acknowledge(ms(150), PacketNumber(2), Duration::ZERO, ranges(), &mut |_, _| {}).unwrap();
    assert_eq!((report.rtt, report.acked_bytes), (Some(millis(40)), 1000));
    assert_eq!(ledger.next_timeout(), None);
}

#[test]
fn ranges_that_make_no_sense_do_no_harm() {
    let mut desk = Desk::with_rtt(80);
    desk.send(100, 1..=8);
    desk.ack(150, &[(8, 2), (7, 7), (0, u64::MAX), (u64::MAX, 0)]);
    assert_eq!(
        desk.ledger.in_flight() + 1000 * desk.ledger.stats().lost,
        8000 - 1000 * (desk.ledger.stats().acked - 1)
    );
}

#[test]
fn numbers_and_times_that_go_back_are_refused_or_held() {
    let mut desk = Desk::with_rtt(80);
    desk.send(100, 5..=5);
    assert!(desk.ledger.sent(PacketNumber(5), ms(101), 1, true, false, ()).is_err());
    desk.send(50, 6..=6);
    assert_eq!(desk.ledger.outstanding().last().unwrap().time, ms(100));
}
