//! The property, what the operations reach, and what the oracle sees.

use crate::fuzzing::{Op, Rare, check, check_mutant, ledger, run};
use crate::{Mutant, Stats};
use std::panic::catch_unwind;
use std::vec::Vec;

#[test]
fn the_ledger_agrees_with_the_truth() {
    bolero::check!()
        .with_test_time(core::time::Duration::from_secs(3))
        .with_max_len(4096)
        .with_arbitrary::<Vec<Op>>()
        .for_each(|ops| check(ops));
}

/// The same for every run.
fn drawn(seed: u64, count: usize) -> Vec<Op> {
    stayfast_testkit::drawn(seed, count, 16)
}

#[test]
fn the_operations_reach_every_rule() {
    let mut sum = Stats::default();
    for seed in 0..1_000 {
        let stats = run(&drawn(seed, 120), ledger());
        for (total, count) in [
            (&mut sum.acked, stats.acked),
            (&mut sum.late, stats.late),
            (&mut sum.gone, stats.gone),
            (&mut sum.unsent, stats.unsent),
            (&mut sum.abandoned, stats.abandoned),
            (&mut sum.spurious, stats.spurious),
            (&mut sum.episodes, stats.episodes),
            (&mut sum.probes, stats.probes),
            (&mut sum.persistent, stats.persistent),
        ] {
            *total += count;
        }
    }
    let Stats { acked, late, gone, unsent, abandoned, episodes, spurious, probes, persistent, .. } = sum;
    let reached = [acked, late, gone, unsent, abandoned, episodes, spurious, probes, persistent];
    assert!(reached.iter().all(|count| *count >= 20), "{sum:?}");
}

/// Six packets go, the last arrives and is acknowledged: the first three are lost.
const LOSS: [Op; 4] = [
    Op::Send { count: 5, bytes: 1000, limited: false },
    Op::Wait { steps: 160 },
    Op::Arrive { which: 5 },
    Op::Ack { delay: 0 },
];

/// After [`LOSS`], what shows each mutant.
fn revealing(mutant: Mutant) -> Vec<Op> {
    let all_late = [Op::Wait { steps: 32 }, Op::ArriveAll, Op::Ack { delay: 0 }];
    let rest: Vec<Op> = match mutant {
        Mutant::UndoDespiteGone => [Op::Drop { which: 0 }].into_iter().chain(all_late).collect(),
        Mutant::SavedAtSecondEvent => {
            let further = Op::Send { count: 5, bytes: 1000, limited: false };
            let event = [Op::Wait { steps: 32 }, further, Op::Arrive { which: 10 }, Op::Ack { delay: 0 }];
            event.into_iter().chain(all_late).collect()
        }
        Mutant::MarkUndone => [Op::Rarely(Rare::Mark)].into_iter().chain(all_late).collect(),
    };
    LOSS.into_iter().chain(rest).chain([Op::Rarely(Rare::Idle { seconds: 1 })]).collect()
}

const MUTANTS: [Mutant; 3] = [Mutant::UndoDespiteGone, Mutant::SavedAtSecondEvent, Mutant::MarkUndone];

#[test]
fn the_oracle_sees_every_mutant() {
    for mutant in MUTANTS {
        let ops = revealing(mutant);
        check(&ops);
        assert!(catch_unwind(|| check_mutant(&ops, mutant)).is_err(), "{mutant:?} passes for right");
    }
}

#[test]
fn drawn_operations_find_every_mutant() {
    for mutant in MUTANTS {
        let found = (0..2_000).any(|seed| catch_unwind(|| check_mutant(&drawn(seed, 120), mutant)).is_err());
        assert!(found, "{mutant:?} passes for right");
    }
}
