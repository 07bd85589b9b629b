//! Tests of single rules, and of the oracle itself.

mod congestion;
mod cost;
mod loss;
mod oracle;
mod probe;

use crate::{Config, Ledger, Outcome, Report, Timeout};
use core::time::Duration;
use stayfast_units::{PacketNumber, Time};
use std::vec::Vec;

const BYTES: u16 = 1000;

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A ledger, and what it told: numbers and milliseconds in place of types.
struct Desk {
    ledger: Ledger<()>,
    told: Vec<(Outcome, u64)>,
}

impl Desk {
    fn new() -> Desk {
        Desk::with_capacity(1000)
    }

    fn with_capacity(capacity: usize) -> Desk {
        Desk { ledger: Ledger::new(Config { capacity, ..Config::default() }), told: Vec::new() }
    }

    /// A desk on a path whose RTT has been seen to be `rtt` (packet 0, sent at 0 ms, settled at `rtt`).
    fn with_rtt(rtt: u64) -> Desk {
        let mut desk = Desk::new();
        desk.send(0, 0..=0);
        desk.ack(rtt, &[(0, 0)]);
        desk.told.clear();
        desk
    }

    fn send(&mut self, at: u64, numbers: core::ops::RangeInclusive<u64>) {
        for number in numbers {
            self.ledger.sent(PacketNumber(number), ms(at), BYTES, true, false, ()).unwrap();
        }
    }

    fn ack(&mut self, at: u64, ranges: &[(u64, u64)]) -> Report {
        let numbers = ranges.iter().map(|(first, last)| (PacketNumber(*first), PacketNumber(*last)));
        let told = &mut self.told;
        self.ledger
            .acknowledge(ms(at), PacketNumber(ranges[0].1), Duration::ZERO, numbers, &mut |outcome, sent| {
                told.push((outcome, sent.number.0));
            })
            .unwrap()
    }

    fn timeout(&mut self, at: u64) -> (Timeout, Report) {
        self.timeout_at(ms(at))
    }

    fn timeout_at(&mut self, at: Time) -> (Timeout, Report) {
        let told = &mut self.told;
        self.ledger.timeout(at, &mut |outcome, sent| told.push((outcome, sent.number.0)))
    }

    /// What was told since the last call, of one kind.
    fn take(&mut self, outcome: Outcome) -> Vec<u64> {
        let mut taken = Vec::new();
        self.told.retain(|(which, number)| {
            let hit = *which == outcome;
            if hit {
                taken.push(*number);
            }
            !hit
        });
        taken
    }
}
