use crate::Acked;
use core::time::Duration;
use stayfast_units::Time;

/// A round trip that is longer by this part of the shortest one, and by at least a millisecond, is not the path's own.
/// RFC 9406, 4.3 has the same part, and 4 to 16 ms.
const MIN_RTT_DIVISOR: u32 = 8;
const MIN_RTT_THRESH: Duration = Duration::from_millis(1);
/// RFC 9406, 4.3.
const N_RTT_SAMPLE: usize = 8;
/// In a short flight fewer have to do: those of a third of it, but never fewer than this.
const FEWEST_SAMPLES: usize = 4;
/// So many times the mean step from one sample to the next are chance as well.
const NOISE_FACTOR: u32 = 2;
/// The mean goes back over about so many samples.
const NOISE_SAMPLES: u32 = 16;

/// How the window may grow in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// By what was acknowledged.
    Grow,
    /// Not until it is known whether the queue stays.
    Hold,
    /// The path is full: slow start is over.
    Leave,
}

/// Ends the first slow start before a window is lost.
///
/// Like HyStart++ (RFC 9406) it becomes suspicious when round trips get longer. It looks at the last eight samples
/// rather than at the shortest of the round, because a queue of one path length fills within a round; and it does not
/// go on with care for five rounds, in which the window would triple, but holds the window for one round trip. A queue
/// that comes from sending faster than the path for a moment is gone by then, and chance does not strike twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hystart {
    count: usize,
    recent: [Duration; N_RTT_SAMPLE],
    last: Option<Duration>,
    /// The mean step from one sample to the next.
    noise: Duration,
    held_since: Option<Time>,
}

impl Hystart {
    /// Whether the window is held.
    pub fn is_holding(&self) -> bool {
        self.held_since.is_some()
    }

    /// Takes in one acknowledgement. While the window is not full its round trips say nothing about a queue of ours,
    /// so they move nothing.
    pub fn on_acked(&mut self, acked: &Acked) -> Advice {
        let rtt = acked.latest_rtt;
        // Held, the round trips fall as the queue of our own burst goes: a step that is not chance.
        if let Some(last) = self.last.replace(rtt)
            && !self.is_holding()
        {
            self.noise = (self.noise * (NOISE_SAMPLES - 1) + last.abs_diff(rtt)) / NOISE_SAMPLES;
        }
        if acked.limited {
            self.count = 0;
        } else if self.held_since.is_none_or(|since| acked.newest_sent >= since) {
            self.recent[self.count % N_RTT_SAMPLE] = rtt;
            self.count += 1;
        }
        let samples = samples(acked);
        if self.count < samples {
            return if self.is_holding() { Advice::Hold } else { Advice::Grow };
        }
        match (self.is_longer(acked.min_rtt, samples), self.held_since.take()) {
            (false, _) => Advice::Grow,
            (true, Some(_)) => Advice::Leave,
            (true, None) => {
                self.held_since = Some(acked.now);
                self.count = 0;
                Advice::Hold
            }
        }
    }

    /// Are all of the last `samples` longer than path and chance explain?
    fn is_longer(&self, min_rtt: Duration, samples: usize) -> bool {
        let threshold = (min_rtt / MIN_RTT_DIVISOR).max(MIN_RTT_THRESH).saturating_add(self.noise * NOISE_FACTOR);
        let mut last = (self.count - samples..self.count).map(|i| self.recent[i % N_RTT_SAMPLE]);
        last.all(|rtt| rtt >= min_rtt.saturating_add(threshold))
    }
}

/// How many acknowledgements decide. On a path of 20 packets eight of them are most of a round trip, in which the window
/// doubles.
fn samples(acked: &Acked) -> usize {
    let flight = usize::try_from(acked.in_flight / acked.bytes.max(1)).unwrap_or(usize::MAX);
    (flight / 3).clamp(FEWEST_SAMPLES, N_RTT_SAMPLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Duration = Duration::from_millis(100);
    const LONGER: Duration = Duration::from_micros(112_500);
    const SENT: Time = Time::from_millis(1_000);

    /// One acknowledgement of a packet sent at `sent` on a path of `min_rtt`.
    fn acked(sent: Time, rtt: Duration, min_rtt: Duration) -> Acked {
        Acked {
            now: sent + rtt,
            bytes: 2_400,
            newest_sent: sent,
            latest_rtt: rtt,
            smoothed_rtt: rtt,
            min_rtt,
            in_flight: 96_000,
            limited: false,
            rate: None,
        }
    }

    /// `count` times the same acknowledgement; the last advice.
    fn acks(hystart: &mut Hystart, count: u32, acked: Acked) -> Advice {
        (0..count).fold(Advice::Grow, |_, _| hystart.on_acked(&acked))
    }

    #[test]
    fn longer_round_trips_hold_the_window_and_after_a_round_of_it_end_slow_start() {
        let mut hystart = Hystart::default();
        let first = acked(SENT, LONGER, MIN);
        assert_eq!(acks(&mut hystart, 7, first), Advice::Grow);
        assert_eq!(acks(&mut hystart, 1, first), Advice::Hold);
        assert_eq!(acks(&mut hystart, 20, first), Advice::Hold, "it was sent before the window was held");
        let second = acked(first.now, LONGER, MIN);
        assert_eq!(acks(&mut hystart, 7, second), Advice::Hold);
        assert_eq!(acks(&mut hystart, 1, second), Advice::Leave);
    }

    #[test]
    fn a_third_of_a_short_flight_is_enough() {
        for (in_flight, samples) in [(0, 4), (12 * 2_400, 4), (18 * 2_400, 6), (24 * 2_400, 8), (1 << 40, 8)] {
            let (mut hystart, short) = (Hystart::default(), Acked { in_flight, ..acked(SENT, LONGER, MIN) });
            assert_eq!(acks(&mut hystart, samples - 1, short), Advice::Grow, "{in_flight} B");
            assert_eq!(acks(&mut hystart, 1, short), Advice::Hold, "{in_flight} B");
        }
    }

    #[test]
    fn the_end_of_our_own_burst_is_not_chance() {
        let mut hystart = Hystart::default();
        let first = acked(SENT, LONGER, MIN);
        assert_eq!(acks(&mut hystart, 8, first), Advice::Hold);
        // The burst makes a queue of 40 ms, and what is left of it is just longer than the path.
        acks(&mut hystart, 1, acked(SENT, LONGER + Duration::from_millis(40), MIN));
        assert_eq!(acks(&mut hystart, 8, acked(first.now, LONGER, MIN)), Advice::Leave);
    }

    #[test]
    fn a_queue_that_is_gone_a_round_trip_later_lets_slow_start_go_on() {
        let mut hystart = Hystart::default();
        let first = acked(SENT, LONGER, MIN);
        assert_eq!(acks(&mut hystart, 8, first), Advice::Hold);
        assert_eq!(acks(&mut hystart, 7, acked(first.now, LONGER, MIN)), Advice::Hold);
        assert_eq!(acks(&mut hystart, 1, acked(first.now, MIN, MIN)), Advice::Grow);
        assert!(!hystart.is_holding());
    }

    #[test]
    fn one_short_sample_among_the_last_eight_clears_the_path() {
        let mut hystart = Hystart::default();
        let slightly = LONGER + Duration::from_millis(2);
        assert_eq!(acks(&mut hystart, 1, acked(SENT, MIN + Duration::from_millis(10), MIN)), Advice::Grow);
        assert_eq!(acks(&mut hystart, 7, acked(SENT, slightly, MIN)), Advice::Grow);
        assert_eq!(acks(&mut hystart, 1, acked(SENT, slightly, MIN)), Advice::Hold);
    }

    #[test]
    fn the_threshold_is_an_eighth_and_at_least_a_millisecond() {
        for (min, threshold) in [(1, 1), (8, 1), (80, 10), (400, 50)] {
            let (min, threshold) = (Duration::from_millis(min), Duration::from_millis(threshold));
            for (rtt, expected) in
                [(min + threshold, Advice::Hold), (min + threshold - Duration::from_nanos(1), Advice::Grow)]
            {
                assert_eq!(acks(&mut Hystart::default(), 8, acked(SENT, rtt, min)), expected, "{rtt:?} on {min:?}");
            }
        }
    }

    #[test]
    fn what_jumps_from_sample_to_sample_is_chance() {
        let mut hystart = Hystart::default();
        for i in 0..200 {
            let rtt = MIN + Duration::from_millis(if i % 2 == 0 { 13 } else { 20 });
            assert_eq!(hystart.on_acked(&acked(SENT, rtt, MIN)), Advice::Grow, "sample {i}");
            hystart.count *= usize::from(i > 50);
        }
    }

    #[test]
    fn a_window_that_is_not_full_is_not_blamed_for_longer_round_trips() {
        let limited = Acked { limited: true, ..acked(SENT, LONGER, MIN) };
        assert_eq!(acks(&mut Hystart::default(), 20, limited), Advice::Grow);
    }
}
