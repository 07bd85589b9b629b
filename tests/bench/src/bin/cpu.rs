//! CPU time per record over loopback, stayfast beside quinn: `cargo xtask bench cpu --help`.
#![forbid(unsafe_code)]

use clap::Parser;
use stayfast_bench::plan::{Plan, Transport};
use stayfast_bench::report::{Row, included, object, table};
use stayfast_bench::{Failure, ours, quic};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&Plan::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(plan: &Plan) -> Result<(), Failure> {
    let row = |load| Row { load, ours: Vec::new(), quinn: Vec::new() };
    let mut rows: Vec<Row> = plan.loads()?.into_iter().map(row).collect();
    for round in 0..plan.rounds {
        for row in &mut rows {
            // Whoever comes second finds a warmer machine: by turns.
            let mut order = [Transport::Stayfast, Transport::Quinn];
            order.rotate_left(round as usize % 2);
            for transport in order {
                if plan.only.is_none_or(|only| only == transport) {
                    transfer(row, transport).map_err(|e| format!("{transport:?}, {} B records: {e}", row.load.size))?;
                }
            }
        }
        eprintln!("round {} of {} done", round + 1, plan.rounds);
    }
    if plan.json {
        println!("{:#}", object(plan, &rows));
    } else {
        println!("{}\n{}", included(plan), table(&rows));
    }
    Ok(())
}

fn transfer(row: &mut Row, transport: Transport) -> Result<(), Failure> {
    match transport {
        Transport::Stayfast => row.ours.push(ours::run(&row.load)?),
        Transport::Quinn => row.quinn.push(quic::run(&row.load)?),
    }
    Ok(())
}
