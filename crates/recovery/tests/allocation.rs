//! Once the ring has grown to its size, no packet costs an allocation.

use core::time::Duration;
use stayfast_recovery::{Config, Ledger, Timeout};
use stayfast_units::{PacketNumber, Time};

/// A path that loses every 97th packet for good and brings every 31st 30 ms late, for `packets` packets, one each
/// millisecond over 20 ms, acknowledged one by one.
fn run(ledger: &mut Ledger<[u64; 2]>, from: u64, packets: u64) {
    for n in from..from + packets {
        let now = Time::from_millis(n);
        while let Some((at, _)) = ledger.next_timeout().filter(|(at, _)| *at <= now) {
            if let (Timeout::Probe { .. }, _) = ledger.timeout(at, &mut |_, _| {}) {
                break;
            }
        }
        ledger.sent(PacketNumber(n), now, 1200, true, false, [n, n]).expect("room");
        let late = n.saturating_sub(50);
        let ranges = (0..30).map(|back| n.saturating_sub(20 + back)).filter(|n| n % 97 != 0 && n % 31 != 0);
        let ranges = ranges.chain((late % 31 == 0 && late % 97 != 0).then_some(late));
        let largest = ranges.clone().next().unwrap_or_default();
        let ranges = ranges.map(|n| (PacketNumber(n), PacketNumber(n)));
        ledger.acknowledge(now, PacketNumber(largest), Duration::ZERO, ranges, &mut |_, _| {}).expect("used numbers");
    }
}

#[test]
fn no_packet_costs_an_allocation() {
    let mut ledger = Ledger::new(Config::default());
    run(&mut ledger, 0, 1_000);
    let allocations = allocation_counter::measure(|| run(&mut ledger, 1_000, 100_000)).count_total;
    let stats = ledger.stats();
    assert!(stats.acked > 90_000 && stats.late > 1_000 && stats.gone > 500, "{stats:?}");
    assert_eq!(allocations, 0);
}
