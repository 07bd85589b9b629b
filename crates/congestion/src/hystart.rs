use crate::Acked;
use core::time::Duration;
use stayfast_units::Time;

// RFC 9406, 4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u32 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_ROUNDS: u32 = 5;

/// How the window may grow in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// By what was acknowledged.
    Fast,
    /// By a quarter of it.
    Slowly,
    /// The queue is filling: slow start is over.
    Leave,
}

/// HyStart++ (RFC 9406): ends the first slow start when round trips get longer, before a window is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hystart {
    /// A packet sent from here on belongs to the next round.
    round_began: Time,
    last_round: Option<Duration>,
    this_round: Option<Duration>,
    samples: u32,
    css: Option<Css>,
}

/// Conservative slow start: longer round trips were seen, and it is being checked that they stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Css {
    baseline: Duration,
    rounds: u32,
}

impl Hystart {
    pub fn new(now: Time) -> Hystart {
        Hystart { round_began: now, last_round: None, this_round: None, samples: 0, css: None }
    }

    /// Whether conservative slow start is on.
    pub fn is_conservative(&self) -> bool {
        self.css.is_some()
    }

    /// Takes in one acknowledgement. While the window is not full its round trips are known, but they say
    /// nothing about a queue of ours, so they move nothing.
    pub fn on_acked(&mut self, acked: &Acked) -> Advice {
        let round_ended = acked.newest_sent >= self.round_began;
        if round_ended {
            self.round_began = acked.now;
            self.last_round = self.this_round.take();
            self.samples = 0;
        }
        self.this_round = Some(self.this_round.map_or(acked.latest_rtt, |least| least.min(acked.latest_rtt)));
        self.samples = self.samples.saturating_add(1);
        if !acked.limited {
            self.judge(round_ended);
        }
        match self.css {
            None => Advice::Fast,
            Some(css) if css.rounds < CSS_ROUNDS => Advice::Slowly,
            Some(_) => Advice::Leave,
        }
    }

    fn judge(&mut self, round_ended: bool) {
        if let Some(css) = &mut self.css
            && round_ended
        {
            css.rounds += 1;
        }
        let (Some(last), Some(this)) = (self.last_round, self.this_round) else { return };
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.css {
            None if this >= last.saturating_add((last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)) => {
                self.css = Some(Css { baseline: this, rounds: 0 });
            }
            // The longer round trips were a passing thing.
            Some(css) if this < css.baseline => self.css = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One round of `count` acknowledgements of `rtt`; the advice of the last one.
    fn round(hystart: &mut Hystart, now: &mut Time, rtt: Duration, count: u32, limited: bool) -> Advice {
        let sent = *now;
        *now += rtt;
        let mut advice = Advice::Fast;
        for _ in 0..count {
            advice = hystart.on_acked(&Acked {
                now: *now,
                bytes: 2_400,
                newest_sent: sent,
                latest_rtt: rtt,
                smoothed_rtt: rtt,
                min_rtt: rtt,
                in_flight: 48_000,
                limited,
                rate: None,
            });
        }
        advice
    }

    const FLAT: Duration = Duration::from_millis(100);
    const LONGER: Duration = Duration::from_micros(112_500);

    fn started() -> (Hystart, Time) {
        let (mut hystart, mut now) = (Hystart::new(Time::ZERO), Time::ZERO);
        assert_eq!(round(&mut hystart, &mut now, FLAT, 8, false), Advice::Fast);
        (hystart, now)
    }

    #[test]
    fn an_eighth_longer_round_trip_slows_and_five_rounds_of_it_end_slow_start() {
        let (mut hystart, mut now) = started();
        for _ in 0..5 {
            assert_eq!(round(&mut hystart, &mut now, LONGER, 8, false), Advice::Slowly);
        }
        assert_eq!(round(&mut hystart, &mut now, LONGER, 1, false), Advice::Leave);
    }

    #[test]
    fn just_below_an_eighth_nothing_happens() {
        let (mut hystart, mut now) = started();
        assert_eq!(round(&mut hystart, &mut now, LONGER - Duration::from_nanos(1), 8, false), Advice::Fast);
    }

    #[test]
    fn seven_samples_are_not_enough() {
        let (mut hystart, mut now) = started();
        assert_eq!(round(&mut hystart, &mut now, LONGER, 7, false), Advice::Fast);
    }

    #[test]
    fn the_threshold_stays_within_4_and_16_ms() {
        for (rtt, threshold) in [(1, 4), (20, 4), (80, 10), (400, 16)] {
            let (rtt, threshold) = (Duration::from_millis(rtt), Duration::from_millis(threshold));
            for (longer, expected) in
                [(rtt + threshold, Advice::Slowly), (rtt + threshold - Duration::from_micros(1), Advice::Fast)]
            {
                let (mut hystart, mut now) = (Hystart::new(Time::ZERO), Time::ZERO);
                round(&mut hystart, &mut now, rtt, 8, false);
                assert_eq!(round(&mut hystart, &mut now, longer, 8, false), expected, "{rtt:?} then {longer:?}");
            }
        }
    }

    #[test]
    fn shorter_round_trips_resume_slow_start() {
        let (mut hystart, mut now) = started();
        assert_eq!(round(&mut hystart, &mut now, LONGER, 8, false), Advice::Slowly);
        assert_eq!(round(&mut hystart, &mut now, FLAT, 8, false), Advice::Fast);
    }

    #[test]
    fn a_window_that_is_not_full_is_not_blamed_for_longer_round_trips() {
        let (mut hystart, mut now) = started();
        assert_eq!(round(&mut hystart, &mut now, LONGER, 20, true), Advice::Fast);
    }
}
