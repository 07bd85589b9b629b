//! What an acknowledgement costs.

use super::{Desk, ms};
use core::time::Duration;
use stayfast_units::PacketNumber;

/// Every 64th packet is missing while all others pass, and each acknowledgement repeats up to 64 ranges of them:
/// it steps once over each range, and once to each packet that is new.
#[test]
fn what_ranges_repeat_costs_nothing() {
    for window in [1 << 10, 1 << 12, 1 << 14] {
        let mut desk = Desk::with_capacity(1 << 20);
        for number in 0..window {
            desk.ledger.sent(PacketNumber(number), ms(1), 100, true, false, ()).unwrap();
        }
        let mut told = 0;
        for largest in (2..window).step_by(2).filter(|number| number % 64 != 0) {
            let ranges = (0..=largest / 64).rev().take(64).map(|hole| {
                told += 1;
                (PacketNumber(hole * 64 + 1), PacketNumber(largest.min(hole * 64 + 63)))
            });
            desk.ledger.acknowledge(ms(2), PacketNumber(largest), Duration::ZERO, ranges, &mut |_, _| {}).unwrap();
        }
        assert!(desk.ledger.ring_steps() <= told + 2 * window, "{window}: {}", desk.ledger.ring_steps());
    }
}
