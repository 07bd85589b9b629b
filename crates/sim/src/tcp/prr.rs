/// Proportional rate reduction (RFC 6937): during a recovery, for so many segments that were delivered so many
/// are sent that the window comes down evenly, and not below what it comes down to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    delivered: u64,
    sent: u64,
    /// The window when the recovery began.
    before: f64,
}

impl Prr {
    pub(super) fn new(window: f64) -> Prr {
        Prr { delivered: 0, sent: 0, before: window.max(1.0) }
    }

    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// The window, in segments, after an acknowledgement of `delivered` segments leaves `in_flight`. `progress` says
    /// that it acknowledged the next one and showed no further loss.
    pub(super) fn window(&mut self, delivered: u64, in_flight: u64, threshold: f64, progress: bool) -> f64 {
        self.delivered += delivered;
        let goal = threshold as u64;
        let send = if in_flight > goal {
            let share = threshold * self.delivered as f64 / self.before;
            // Rounded up, as in the RFC: the whole part, and one more if there is a rest.
            let whole = share as u64;
            (whole + u64::from(whole as f64 != share)).saturating_sub(self.sent)
        } else {
            // Slow-start reduction bound while it goes well, else conservation of packets.
            let bound = self.delivered.saturating_sub(self.sent).max(delivered) + u64::from(progress);
            bound.min(goal - in_flight)
        };
        // The first retransmission leaves at once.
        let send = if self.sent == 0 { send.max(1) } else { send };
        (in_flight + send) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_20_comes_down_to_14_with_7_sent_for_10_delivered() {
        // RFC 6937, 4, but with CUBIC's 0.7: one of 20 segments lost, the others delivered one by one.
        let mut prr = Prr::new(20.0);
        let (mut in_flight, mut sent) = (19, 0);
        for _ in 0..19 {
            in_flight -= 1;
            let window = prr.window(1, in_flight, 14.0, false) as u64;
            while in_flight < window {
                prr.on_sent();
                in_flight += 1;
                sent += 1;
            }
        }
        assert_eq!((in_flight, sent), (14, 14));
    }

    #[test]
    fn after_a_heavy_loss_it_grows_as_in_slow_start_up_to_the_threshold() {
        let mut prr = Prr::new(20.0);
        let mut in_flight = 3;
        let mut flights = std::vec![];
        for _ in 0..12 {
            in_flight -= 1;
            let window = prr.window(1, in_flight, 10.0, true) as u64;
            while in_flight < window {
                prr.on_sent();
                in_flight += 1;
            }
            flights.push(in_flight);
        }
        assert_eq!(flights, [4, 5, 6, 7, 8, 9, 10, 10, 10, 10, 10, 10]);
    }
}
