use super::rtt::Rtt;
use super::scoreboard::Sent;
use core::time::Duration;
use stayfast_units::Time;

/// So many segments delivered beyond a missing one are proof enough on a path that keeps the order.
const DUPLICATES: u64 = 3;
/// True recoveries without a duplicate after which the patience shrinks again.
const PERSIST: u32 = 16;
/// Quarters of a round trip that patience grows to; the smoothed round trip limits it before.
const QUARTERS_MAX: u32 = 255;

/// RACK (RFC 8985, 6): a segment is lost when one sent after it has been delivered and some patience is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    /// The segment sent last of those delivered: when, and its number.
    newest: (Time, u64),
    /// Its round trip.
    rtt: Duration,
    reordering_seen: bool,
    /// Patience in quarters of the least round trip.
    quarters: u32,
    persist: u32,
    /// The segment that must be acknowledged before another duplicate adds to the patience.
    grown_until: Option<u64>,
}

impl Rack {
    pub(super) fn new() -> Rack {
        Rack {
            newest: (Time::ZERO, 0),
            rtt: Duration::ZERO,
            reordering_seen: false,
            quarters: 1,
            persist: PERSIST,
            grown_until: None,
        }
    }

    pub(super) fn newest(&self) -> (Time, u64) {
        self.newest
    }

    /// A segment was delivered, and before it one with the number `highest - 1` (steps 2 and 3).
    pub(super) fn on_delivered(&mut self, now: Time, number: u64, sent: &Sent, highest: u64, least: Duration) {
        if number < highest && !sent.resent {
            self.reordering_seen = true;
        }
        let rtt = now - sent.at;
        // A copy cannot be answered in less than the least round trip: this answers an earlier one.
        if sent.resent && rtt < least {
            return;
        }
        if (sent.at, number) >= self.newest {
            self.newest = (sent.at, number);
            self.rtt = rtt;
        }
    }

    /// The receiver got something twice: waiting would have spared it (step 4). At most once per round trip.
    pub(super) fn on_duplicate(&mut self, acked: u64, next: u64) {
        if self.grown_until.is_some_and(|until| acked < until) {
            return;
        }
        self.grown_until = Some(next);
        self.quarters = (self.quarters + 1).min(QUARTERS_MAX);
        self.persist = PERSIST;
    }

    /// A recovery has ended, and it was not a mistake (step 4; as in Linux, mistakes do not count).
    pub(super) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }

    /// How long after it was sent a segment is lost (step 4).
    pub(super) fn patience(&self, rtt: &Rtt, recovering: bool, sacked: u64) -> Duration {
        let in_order = !self.reordering_seen && (recovering || sacked >= DUPLICATES);
        let wait = if in_order { Duration::ZERO } else { rtt.least() / 4 * self.quarters };
        self.rtt + wait.min(rtt.smoothed().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::scoreboard::Scoreboard;

    fn rtt(ms: u64) -> Rtt {
        let mut rtt = Rtt::default();
        rtt.sample(Duration::from_millis(ms));
        rtt.sample_least(Duration::from_millis(ms));
        rtt
    }

    fn sent(at: u64, resent: bool) -> Sent {
        let mut board = Scoreboard::default();
        board.send(Time::from_millis(at));
        if resent {
            board.resend(0, Time::from_millis(at));
        }
        let mut copy = None;
        board.acknowledge(1, |_, sent| copy = Some(*sent));
        copy.unwrap()
    }

    #[test]
    fn patience_is_nothing_in_order_and_grows_with_duplicates_up_to_a_round_trip() {
        let ms = Duration::from_millis;
        let (mut rack, rtt) = (Rack::new(), rtt(40));
        assert_eq!(rack.patience(&rtt, false, 2), ms(10));
        assert_eq!(rack.patience(&rtt, false, 3), ms(0));
        assert_eq!(rack.patience(&rtt, true, 0), ms(0));
        rack.on_delivered(Time::from_millis(40), 3, &sent(0, false), 7, ms(40));
        assert_eq!(rack.patience(&rtt, true, 9), ms(40 + 10));
        rack.on_duplicate(5, 10);
        rack.on_duplicate(9, 20);
        assert_eq!(rack.patience(&rtt, true, 9), ms(40 + 20), "once per round trip");
        (10..100).for_each(|n| rack.on_duplicate(n, n));
        assert_eq!(rack.patience(&rtt, true, 9), ms(40 + 40));
        (0..PERSIST).for_each(|_| rack.on_recovered());
        assert_eq!(rack.patience(&rtt, true, 9), ms(40 + 10));
    }

    #[test]
    fn an_answer_too_quick_for_a_copy_is_that_of_the_original() {
        let mut rack = Rack::new();
        let least = Duration::from_millis(40);
        rack.on_delivered(Time::from_millis(100), 3, &sent(70, true), 7, least);
        assert_eq!((rack.newest(), rack.reordering_seen), ((Time::ZERO, 0), false));
        rack.on_delivered(Time::from_millis(110), 3, &sent(70, true), 7, least);
        assert_eq!(rack.newest(), (Time::from_millis(70), 3));
    }
}
