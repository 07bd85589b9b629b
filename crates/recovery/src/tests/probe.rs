//! When to ask.

use super::{Desk, millis, ms};
use crate::{Deadline, EpisodeChange, Outcome, Timeout};
use stayfast_units::PacketNumber;

#[test]
fn two_probes_fit_into_the_first_second_of_a_new_path() {
    let mut desk = Desk::new();
    desk.send(0, 0..=0);
    assert_eq!(desk.ledger.next_timeout(), Some((ms(325), Deadline::Probe)));
    assert_eq!(desk.timeout(325).0, Timeout::Probe { in_a_row: 1 });
    desk.send(325, 1..=1);
    assert_eq!(desk.ledger.next_timeout(), Some((ms(975), Deadline::Probe)));
    assert_eq!(desk.timeout(975).0, Timeout::Probe { in_a_row: 2 });
    desk.send(975, 2..=2);
    desk.ack(1000, &[(2, 2)]);
    assert_eq!(desk.ledger.probes_in_a_row(), 0);
}

#[test]
fn the_back_off_ends_at_thirty_seconds_and_moves_on_without_a_probe() {
    let mut desk = Desk::new();
    desk.send(0, 0..=0);
    let mut now = 0;
    for in_a_row in 1..=50 {
        let (at, deadline) = desk.ledger.next_timeout().unwrap();
        let next = at.as_micros() / 1000;
        assert_eq!((next - now, deadline), ((325 << (in_a_row - 1).min(20)).min(30_000), Deadline::Probe));
        assert_eq!(desk.timeout(next).0, Timeout::Probe { in_a_row });
        now = next;
    }
}

#[test]
fn a_path_slower_than_the_longest_back_off_can_still_answer() {
    let mut desk = Desk::with_rtt(50_000);
    desk.ledger.set_max_pto(millis(1_000));
    desk.send(50_000, 1..=1);
    assert_eq!(desk.ledger.pto(), millis(50_000 + 4 * 25_000 + 25));
    assert_eq!(desk.ledger.next_timeout(), Some((ms(50_000 + 150_025), Deadline::Probe)));
}

#[test]
fn a_week_of_outage_needs_no_more_places_than_there_are() {
    let mut desk = Desk::with_rtt(80);
    for number in 1..=1000 {
        desk.send(100, number..=number);
    }
    assert!(desk.ledger.is_full());
    let mut number = 1001;
    let week = ms(7 * 24 * 3600 * 1000);
    let mut probes = 0;
    while let Some((at, _)) = desk.ledger.next_timeout().filter(|(at, _)| *at < week) {
        if let (Timeout::Probe { .. }, _) = desk.timeout(at.as_nanos().div_ceil(1_000_000)) {
            desk.send(at.as_nanos().div_ceil(1_000_000), number..=number + 1);
            (number, probes) = (number + 2, probes + 1);
        }
    }
    assert!(probes > 20_000, "{probes}");
    // The first answer settles what is left, but for the other probe of the newest pair.
    desk.ack(7 * 24 * 3600 * 1000, &[(number - 1, number - 1)]);
    assert_eq!(desk.ledger.in_flight(), 1000);
    assert!(desk.take(Outcome::Acked).contains(&(number - 1)));
}

#[test]
fn packets_that_elicit_nothing_are_not_waited_for() {
    let mut desk = Desk::new();
    desk.ledger.sent(PacketNumber(0), ms(0), 40, false, false, ()).unwrap();
    assert_eq!((desk.ledger.next_timeout(), desk.ledger.in_flight()), (None, 40));
}

#[test]
fn a_peer_that_is_no_more_is_not_waited_for() {
    let mut desk = Desk::with_rtt(80);
    desk.send(100, 1..=6);
    desk.ack(180, &[(6, 6)]);
    assert_eq!(desk.take(Outcome::Lost), [1, 2, 3]);
    let mut forgotten = std::vec::Vec::new();
    let change = desk.ledger.abandon(&mut |sent| forgotten.push(sent.number.0));
    assert_eq!(change, EpisodeChange::Real);
    assert_eq!(forgotten, [4, 5]);
    assert_eq!((desk.ledger.next_timeout(), desk.ledger.in_flight()), (None, 0));
    let report = desk.ack(200, &[(1, 6)]);
    assert_eq!((report.acked_bytes, report.newest_sent), (0, None));
    assert_eq!(desk.ledger.stats().spurious, 0);
}
