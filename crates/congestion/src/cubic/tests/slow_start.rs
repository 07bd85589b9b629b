//! The end of the first slow start, packet by packet.

use super::{Acked, Controller, Cubic, Duration, SEGMENT, Time};
use stayfast_units::Rate;
use std::collections::VecDeque;
use std::vec::Vec;

/// A paced sender before a bottleneck with a drop-tail queue. Every second packet is acknowledged.
struct Bottleneck {
    cubic: Cubic,
    rtt: Duration,
    /// Packets that the path holds without its queue, and packets that the queue holds.
    path: u32,
    queue: u32,
    /// When the last packet in the queue will have left it.
    busy_until: Time,
    /// When each packet in flight was sent, will be acknowledged, and what had arrived when it was sent.
    flight: VecDeque<(Time, Time, u64)>,
    smoothed: Duration,
    delivered: u64,
    lost: u64,
    /// When the first packet found the queue full.
    lost_at: Option<Time>,
}

impl Bottleneck {
    fn new(rtt: Duration, path: u32, queue: u32) -> Bottleneck {
        Bottleneck {
            cubic: Cubic::new(SEGMENT as u16, Time::ZERO),
            rtt,
            path,
            queue,
            busy_until: Time::ZERO,
            flight: VecDeque::new(),
            smoothed: rtt,
            delivered: 0,
            lost: 0,
            lost_at: None,
        }
    }

    /// Sends what window and pacer allow until `until`. Lost packets stay in flight: nobody tells of them here.
    fn send(&mut self, next: &mut Time, until: Time) {
        while *next < until && (self.flight.len() as u64 + self.lost + 1) * SEGMENT <= self.cubic.window() {
            let now = *next;
            let service = self.rtt / self.path;
            *next = now + self.cubic.pacing_rate(self.smoothed).time_for(SEGMENT);
            if self.busy_until.max(now) - now > service * self.queue {
                self.lost += 1;
                self.lost_at.get_or_insert(now);
                continue;
            }
            self.busy_until = self.busy_until.max(now) + service;
            self.flight.push_back((now, self.busy_until + self.rtt, self.delivered));
        }
    }

    /// Runs until slow start is over, or something sent after a lost packet is acknowledged, which would end it.
    fn run(&mut self) {
        let (mut next, mut newest) = (Time::ZERO, Time::ZERO);
        while self.cubic.in_slow_start() && self.lost_at.is_none_or(|lost| newest <= lost) {
            let now = self.flight.get(1).map_or(next + self.rtt, |packet| packet.1);
            self.send(&mut next, now);
            next = next.max(now);
            let in_flight = self.flight.len() as u64 * SEGMENT;
            let Some((sent, _, delivered)) = self.flight.drain(..self.flight.len().min(2)).next_back() else {
                continue;
            };
            self.delivered += 2 * SEGMENT;
            newest = sent;
            let latest = now - sent;
            self.smoothed = (self.smoothed * 7 + latest) / 8;
            self.cubic.on_acked(&Acked {
                now,
                bytes: 2 * SEGMENT,
                newest_sent: sent,
                latest_rtt: latest,
                smoothed_rtt: self.smoothed,
                min_rtt: self.rtt,
                in_flight,
                limited: false,
                rate: Some(Rate::per(self.delivered - delivered, latest)),
            });
        }
    }
}

/// Lost packets in thousandths of what path and queue hold, the worst of many path lengths; and the least window at the
/// end in thousandths of the path.
fn worst(rtt: u64, tenths: u32) -> (u64, u64) {
    let ends: Vec<_> = (40..=800)
        .step_by(20)
        .map(|path| {
            let queue = path * tenths / 10;
            let mut bottleneck = Bottleneck::new(Duration::from_millis(rtt), path, queue);
            bottleneck.run();
            let window = bottleneck.cubic.window() / SEGMENT;
            (1_000 * bottleneck.lost / u64::from(path + queue), 1_000 * window / u64::from(path))
        })
        .collect();
    (ends.iter().map(|end| end.0).max().unwrap(), ends.iter().map(|end| end.1).min().unwrap())
}

/// The table in docs/congestion.md. Plain doubling loses up to all of it, whatever the queue.
#[test]
fn a_queue_of_one_path_length_loses_next_to_nothing_and_a_longer_one_nothing() {
    for rtt in [10, 20, 50, 100, 200] {
        for (tenths, bound) in [(5, 370), (10, 25), (20, 0), (40, 0)] {
            let (lost, window) = worst(rtt, tenths);
            assert!(lost <= bound, "{lost} of 1,000 lost: rtt {rtt} ms, queue {tenths}/10 of the path");
            assert!(window >= 1_000, "slow start ends at {window}/1,000 of a path of {rtt} ms");
        }
    }
}
