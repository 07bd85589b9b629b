//! What a simulated run of our own machines costs, in what repeats on every machine: allocations and memory.

use allocation_counter::measure;
use stayfast_matrix::peers::Kind;
use stayfast_matrix::plan::Plan;
use stayfast_matrix::run::run;

const PLAN: &str = r#"
seconds = 2
seeds = [1]
[[cell]]
name = "20"
path = "rate=50M rtt=20ms"
"#;

/// Record bytes of a second, at least.
const SECOND: u64 = 5 << 20;
/// Length of a record.
const SIZE: u64 = 1_013;

#[test]
fn a_record_costs_few_allocations_and_leaves_nothing_behind() {
    let plan = Plan::parse(PLAN).expect("it is valid");
    assert_eq!(plan.cells[0].size as u64, SIZE);
    let [short, long] = [4, 12].map(|seconds| {
        measure(|| {
            let outcome = run(&plan.cells[0], seconds, Kind::Stayfast, 1).expect("a valid path");
            assert!(outcome.mbit * 1e6 > 8.0 * SECOND as f64, "{}", outcome.mbit);
        })
    });
    let records = 8 * SECOND / SIZE;
    let allocations = (long.count_total - short.count_total) as f64 / records as f64;
    assert!(allocations < 1.2, "{allocations} for each record");
    // What is noted of a run: when deliveries came, and the state each 10 ms.
    let kept = long.bytes_max - short.bytes_max;
    println!("{allocations} allocations for each record, {} and {} bytes at once", short.bytes_max, long.bytes_max);
    assert!(kept < SECOND / 2, "{kept} B are kept of 8 s");
}
