//! Whole scenarios: any interleaving of traffic, faults, kills, restored copies and clones.

use proptest::prelude::*;
use stayfast_tests::schedule::{Op, check, ops};

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn delivered_is_a_prefix_and_nobody_is_left_in_the_dark(
        seed in any::<u64>(),
        ops in prop::collection::vec(any::<u8>(), 0..160).prop_map(|bytes| ops(&bytes)),
    ) {
        check(seed, &ops);
    }
}

/// The hazard that connections hide: an old copy of the sender goes on under numbers that are already taken.
#[test]
fn a_restored_copy_is_fenced_and_never_silent() {
    for seed in 0..20 {
        let append = Op::Append { records: 9, size: 20 };
        check(
            seed,
            &[append, Op::Run(200), Op::Snapshot, append, Op::Run(250), Op::RestoreSender, append, Op::Run(250)],
        );
    }
}

#[test]
fn a_clone_and_its_original_cannot_both_go_on() {
    for seed in 0..20 {
        let append = Op::Append { records: 3, size: 20 };
        let clone = Op::AppendClone { records: 3 };
        check(seed, &[append, Op::Run(100), Op::CloneSender, clone, append, Op::Run(100), append, clone]);
    }
}

/// Found by the property above: two children of one lineage, of which neither may hold the other up for ever.
#[test]
fn a_clone_that_appends_at_the_same_moment() {
    let append = |records, size| Op::Append { records, size };
    let clone = Op::AppendClone { records: 10 };
    let ops = [append(144, 208), append(35, 49), Op::CloneSender, Op::KillReceiver, append(2, 77), clone];
    check(6_366_831_328_888_190_957, &ops);
}

/// After kills on both ends and a clone, the sender's newest session was one that the receiver had let go, while the
/// receiver answered in an older one: the sender's new message 1 was heard and never answered.
#[test]
fn who_asks_anew_is_answered_although_another_session_is_current() {
    let (append, kill) = (|records, size| Op::Append { records, size }, Op::KillSender);
    let twice = |first, second| [Op::Outage(first), second];
    let mut ops = vec![kill, Op::KillReceiver, Op::Snapshot, Op::AppendClone { records: 48 }, Op::CloneSender];
    ops.extend([append(215, 99), kill, Op::Snapshot, kill]);
    ops.extend(twice(159, Op::Snapshot));
    ops.extend([append(91, 69), Op::RestoreSender, Op::KillReceiver]);
    ops.extend(twice(243, Op::SlowStore(94)));
    ops.extend([
        Op::SlowStore(190),
        append(99, 226),
        Op::Snapshot,
        Op::Snapshot,
        kill,
        Op::AppendClone { records: 102 },
    ]);
    ops.extend([append(141, 142), Op::Snapshot, Op::KillReceiver, kill]);
    check(11_684_083_516_385_652_269, &ops);
}

/// All that was sent was lost, and the oldest packet in flight carried no records: every probe brought new records, which
/// the receiver could not place, and never the first.
#[test]
fn probes_come_back_to_the_first_record_that_is_missing() {
    let (append, kill) = (|records, size| Op::Append { records, size }, Op::KillSender);
    let mut ops = vec![Op::CloneSender, kill, kill, kill, append(84, 29), Op::Snapshot, Op::Run(38), Op::Snapshot];
    ops.extend([Op::RestoreSender, Op::SlowStore(68), append(102, 13), Op::SlowStore(167), Op::Snapshot]);
    ops.extend([Op::SlowStore(68), Op::Snapshot, kill, append(247, 130), Op::Outage(144), append(0, 0)]);
    check(974_994_906_467_892_023, &ops);
}
