//! The same elements without events: each one for all datagrams at once, as a calculation.

use crate::chance::Dice;
use crate::path::COPY;
use crate::{Bleach, Datagram, Deviation, Discipline, Ecn, Element, Limit, Probability};
use alloc::vec::Vec;
use core::time::Duration;
use stayfast_units::{Rate, Time};

/// A datagram at some place on the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) time: Time,
    pub(super) ordinal: u64,
    ecn: Ecn,
    /// On the wire.
    size: u64,
}

/// When each datagram comes out if nothing is changed; none for disciplines that it does not know.
pub(super) fn calculated(elements: &[Element], pushed: &[(Time, Datagram)]) -> Option<Vec<Item>> {
    let unknown = |element: &Element| matches!(element, Element::Bottleneck(_, _, discipline) if *discipline != Discipline::DropTail);
    if elements.iter().any(unknown) {
        return None;
    }
    let item = |(ordinal, (time, datagram)): (u64, &(Time, Datagram))| Item {
        time: *time,
        ordinal,
        ecn: datagram.ecn,
        size: datagram.wire_size(),
    };
    let mut flow: Vec<Item> = (0..).zip(pushed).map(item).collect();
    for (i, element) in elements.iter().enumerate() {
        let nth = elements[..i].iter().filter(|other| kind(other) == kind(element)).count();
        through(*element, Dice::new(1, "test", kind(element), nth), &mut flow);
    }
    Some(flow)
}

fn through(element: Element, dice: Dice, flow: &mut Vec<Item>) {
    match element {
        Element::Loss(probability) => flow.retain(|item| !dice.hit(item.ordinal, probability)),
        Element::BurstLoss(probability, length) => bursts(flow, dice, probability, length),
        Element::LoseNext(count) => drop(flow.drain(..flow.len().min(count as usize))),
        Element::Duplicate(probability) => {
            let copies = |item: &Item| {
                let copy = Item { ordinal: item.ordinal | COPY, ..*item };
                core::iter::once(*item).chain(dice.hit(item.ordinal, probability).then_some(copy))
            };
            *flow = flow.iter().flat_map(copies).collect();
        }
        Element::Corrupt(_) | Element::Outage(false) | Element::Bleach(Bleach::Off) => {}
        Element::Mtu(most) => flow.retain(|item| item.size <= most + 14),
        Element::Bleach(Bleach::Clear) => flow.iter_mut().for_each(|item| item.ecn = Ecn::NotEct),
        Element::Bleach(Bleach::Drop) => flow.retain(|item| item.ecn == Ecn::NotEct),
        Element::Policer(rate, burst) => policed(flow, rate, burst),
        Element::Jitter(most) => scatter(flow, |item| dice.within(item.ordinal, most)),
        Element::Late(late) => {
            scatter(flow, |item| deviation(late, dice, item.ordinal));
        }
        Element::Early(early) => {
            scatter(flow, |item| early.most.max(early.least) - deviation(early, dice, item.ordinal));
        }
        Element::OrderedJitter(most) => {
            let mut last = Time::ZERO;
            for item in flow {
                last = last.max(item.time + dice.within(item.ordinal, most));
                item.time = last;
            }
        }
        Element::Delay(delay) => flow.iter_mut().for_each(|item| item.time += delay),
        Element::Outage(true) | Element::Rate(Rate::ZERO, _) | Element::Bottleneck(Rate::ZERO, ..) => flow.clear(),
        Element::Rate(rate, limit) | Element::Bottleneck(rate, limit, _) => *flow = served(flow, rate, limit),
    }
}

/// Each waits for a time of its own.
fn scatter(flow: &mut [Item], wait: impl Fn(&Item) -> Duration) {
    flow.iter_mut().for_each(|item| item.time += wait(item));
    flow.sort_by_key(|item| item.time);
}

fn deviation(deviation: Deviation, dice: Dice, ordinal: u64) -> Duration {
    let more = dice.second().within(ordinal, deviation.most.saturating_sub(deviation.least));
    if dice.hit(ordinal, deviation.share) { deviation.least + more } else { Duration::ZERO }
}

/// From burst to burst.
fn bursts(flow: &mut Vec<Item>, dice: Dice, probability: Probability, length: u32) {
    let (length, lost) = (u64::from(length.max(1)), u64::from(probability.as_ppm()));
    let mut burst = None;
    flow.retain(|item| {
        let begins = dice.one_in(item.ordinal, lost, length * (1_000_000 - lost));
        let ends = dice.one_in(item.ordinal, 1, length);
        let first = dice.hit(item.ordinal, probability);
        let now = burst.map_or(first, |burst| if burst { !ends } else { begins });
        burst = Some(now);
        lost == 0 || !now
    });
}

/// What may have passed until now is a line: the burst and the rate, from when the bucket was last full.
fn policed(flow: &mut Vec<Item>, rate: Rate, burst: u64) {
    let (rate, burst) = (i128::from(rate.bytes_per_sec()), i128::from(burst) * 1_000_000_000);
    let mut spent = 0i128;
    let mut last = Time::ZERO;
    flow.retain(|item| {
        spent = (spent - rate * (item.time - last).as_nanos() as i128).max(0);
        last = item.time;
        let with = spent + i128::from(item.size) * 1_000_000_000;
        let passes = with <= burst;
        spent = if passes { with } else { spent };
        passes
    });
}

/// Lindley's recursion: a datagram begins when it arrives or when the one before it ends, whichever is later.
/// Moments are in nanoseconds times the rate, in which everything is whole.
fn served(arrivals: &[Item], rate: Rate, limit: Limit) -> Vec<Item> {
    let rate = u128::from(rate.bytes_per_sec());
    let mut end = 0u128;
    let mut waiting: Vec<(u128, u64)> = Vec::new();
    let mut departures = Vec::new();
    for item in arrivals {
        let now = u128::from(item.time.as_nanos());
        waiting.retain(|(begin, _)| *begin > now);
        let bytes = waiting.iter().map(|(_, size)| *size).sum::<u64>() + item.size;
        let fits = match limit {
            Limit::Bytes(most) => bytes <= most,
            Limit::Packets(most) => waiting.len() < most as usize,
        };
        if end.div_ceil(rate) > now && !fits {
            continue;
        }
        waiting.push((now.max(end.div_ceil(rate)), item.size));
        end = end.max(now * rate) + u128::from(item.size) * 1_000_000_000;
        departures.push(Item { time: Time::from_nanos(end.div_ceil(rate) as u64), ..*item });
    }
    departures
}

/// The name under which an element throws its dice.
fn kind(element: &Element) -> &'static str {
    match element {
        Element::Loss(_) => "loss",
        Element::BurstLoss(..) => "burst loss",
        Element::LoseNext(_) => "lose next",
        Element::Duplicate(_) => "duplicate",
        Element::Corrupt(_) => "corrupt",
        Element::Mtu(_) => "mtu",
        Element::Bleach(_) => "bleach",
        Element::Policer(..) => "policer",
        Element::Late(_) => "late",
        Element::Early(_) => "early",
        Element::Jitter(_) => "jitter",
        Element::OrderedJitter(_) => "ordered jitter",
        Element::Delay(_) => "delay",
        Element::Rate(..) | Element::Bottleneck(..) => "rate",
        Element::Outage(_) => "outage",
    }
}
