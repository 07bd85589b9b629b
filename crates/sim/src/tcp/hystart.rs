use core::time::Duration;
use stayfast_units::Time;

/// Below this window slow start is not left.
const WINDOW_MIN: f64 = 16.0;
/// Acknowledgements this close together belong to one train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Round-trip times of a round that are looked at.
const SAMPLES: u32 = 8;
/// An eighth of the least round trip, within these, is a queue.
const QUEUE_MIN: Duration = Duration::from_millis(4);
const QUEUE_MAX: Duration = Duration::from_millis(16);

/// Finds the end of slow start before a queue overflows, by the rules of Linux: HyStart's two signs (Ha and Rhee,
/// 2008), a train of acknowledgements half as long as the round trip, and a round trip that has grown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hystart {
    round: Option<Round>,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    began: Time,
    /// The round ends when this segment is acknowledged.
    end: u64,
    last_ack: Time,
    samples: u32,
    least: Duration,
}

/// What an acknowledgement says to slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sign {
    pub(super) now: Time,
    /// The next segment that the receiver expects, and that the sender will send.
    pub(super) acked: u64,
    pub(super) next: u64,
    /// The newest segment's round trip.
    pub(super) rtt: Duration,
    /// The least there ever was.
    pub(super) least: Duration,
    /// Paced segments make long trains by themselves.
    pub(super) paced: bool,
}

impl Hystart {
    /// Is it time to leave slow start?
    pub(super) fn leave(&mut self, window: f64, sign: &Sign) -> bool {
        let begin = Round { began: sign.now, end: sign.next, last_ack: sign.now, samples: 0, least: Duration::MAX };
        let round = self.round.get_or_insert(begin);
        if sign.acked > round.end {
            *round = begin;
        }
        let long = if sign.paced { sign.least } else { sign.least / 2 };
        let in_train = sign.now - round.last_ack <= TRAIN_GAP;
        if in_train {
            round.last_ack = sign.now;
        }
        round.least = round.least.min(sign.rtt);
        round.samples += 1;
        let queue = (sign.least / 8).clamp(QUEUE_MIN, QUEUE_MAX);
        let delayed = round.samples > SAMPLES && round.least > sign.least + queue;
        window >= WINDOW_MIN && (delayed || in_train && sign.now - round.began > long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acknowledgements every `gap` microseconds, all with this round trip on a path of 40 ms: how many until it is left?
    fn until_left(gap: u64, rtt_ms: u64, paced: bool) -> Option<u64> {
        let mut hystart = Hystart::default();
        (1..=200).find(|n| {
            let now = Time::from_nanos(n * gap * 1_000);
            let (rtt, least) = (Duration::from_millis(rtt_ms), Duration::from_millis(40));
            hystart.leave(100.0, &Sign { now, acked: 0, next: 100, rtt, least, paced })
        })
    }

    #[test]
    fn a_long_train_ends_slow_start() {
        assert_eq!(until_left(1_000, 41, false), Some(22));
        assert_eq!(until_left(1_000, 41, true), Some(42));
        assert_eq!(until_left(2_001, 41, false), None, "these are not a train");
    }

    #[test]
    fn a_grown_round_trip_ends_slow_start_after_nine_samples() {
        assert_eq!(until_left(2_001, 46, false), Some(9));
        assert_eq!(until_left(2_001, 45, false), None, "an eighth is no queue yet");
    }

    #[test]
    fn a_small_window_goes_on() {
        let least = Duration::from_millis(40);
        let mut hystart = Hystart::default();
        for ms in 0..1_000 {
            let sign = Sign { now: Time::from_millis(ms), acked: 0, next: 9, rtt: 2 * least, least, paced: false };
            assert!(!hystart.leave(15.9, &sign));
        }
    }
}
