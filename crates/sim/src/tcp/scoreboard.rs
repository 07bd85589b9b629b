use super::segment::Block;
use alloc::collections::VecDeque;
use core::time::Duration;
use stayfast_units::Time;

/// Where a segment is thought to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    InFlight,
    /// It is to be sent again.
    Lost,
    /// The receiver has it, but not yet all before it.
    Sacked,
}

/// A segment that was sent and not yet acknowledged cumulatively.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// When it was last sent.
    pub(super) at: Time,
    /// More than once.
    pub(super) resent: bool,
    place: Place,
}

/// The sender's view of its segments (RFC 6675), from the first that is not acknowledged to the last that was sent.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<Sent>,
    /// The number of the first of them.
    first: u64,
    /// One more than the highest number that was ever delivered.
    highest: u64,
    in_flight: u64,
    lost: u64,
    sacked: u64,
    /// No segment before this one is lost.
    lost_from: u64,
}

impl Scoreboard {
    /// The first segment that is not acknowledged.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The next that was never sent.
    pub(super) fn next(&self) -> u64 {
        self.first + self.segments.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn sacked(&self) -> u64 {
        self.sacked
    }

    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// A segment for the first time; its number is what was [`Scoreboard::next`].
    pub(super) fn send(&mut self, now: Time) {
        self.segments.push_back(Sent { at: now, resent: false, place: Place::InFlight });
        self.in_flight += 1;
    }

    /// The first of the lost segments.
    pub(super) fn first_lost(&mut self) -> Option<u64> {
        if self.lost == 0 {
            return None;
        }
        let from = self.lost_from.saturating_sub(self.first) as usize;
        let offset = self.segments.iter().skip(from).position(|sent| sent.place == Place::Lost)?;
        self.lost_from = self.first + (from + offset) as u64;
        Some(self.lost_from)
    }

    /// The last segment, unless the receiver has it.
    pub(super) fn last(&self) -> Option<u64> {
        let sent = self.segments.back()?;
        (sent.place != Place::Sacked).then(|| self.next() - 1)
    }

    /// A segment again.
    pub(super) fn resend(&mut self, number: u64, now: Time) {
        let Some(sent) = self.segments.get_mut((number - self.first) as usize) else { return };
        if sent.place == Place::Lost {
            self.lost -= 1;
            self.in_flight += 1;
        }
        *sent = Sent { at: now, resent: true, place: Place::InFlight };
    }

    /// Everything before `next` has arrived. Tells of what is news.
    pub(super) fn acknowledge(&mut self, next: u64, mut news: impl FnMut(u64, &Sent)) {
        while self.first < next
            && let Some(sent) = self.segments.pop_front()
        {
            match sent.place {
                Place::InFlight => self.in_flight -= 1,
                Place::Lost => self.lost -= 1,
                Place::Sacked => self.sacked -= 1,
            }
            if sent.place != Place::Sacked {
                news(self.first, &sent);
            }
            self.first += 1;
        }
        self.highest = self.highest.max(self.first);
    }

    /// What lies in `block` has arrived. Tells of what is news.
    pub(super) fn sack(&mut self, block: Block, mut news: impl FnMut(u64, &Sent)) {
        let start = block.start.saturating_sub(self.first) as usize;
        let end = block.end.saturating_sub(self.first).min(self.segments.len() as u64) as usize;
        for i in start..end {
            let sent = &mut self.segments[i];
            match sent.place {
                Place::InFlight => self.in_flight -= 1,
                Place::Lost => self.lost -= 1,
                Place::Sacked => continue,
            }
            self.sacked += 1;
            sent.place = Place::Sacked;
            news(self.first + i as u64, sent);
        }
        if start < end {
            self.highest = self.highest.max(self.first + end as u64);
        }
    }

    /// Declares lost what was sent before segment `(at, number)`, which has been delivered, and so long ago that
    /// `patience` is over (RFC 8985, 6.2, step 5). Returns when to look again, if there is more that was sent before.
    pub(super) fn detect(&mut self, now: Time, before: (Time, u64), patience: Duration) -> Option<Time> {
        let mut look_again: Option<Time> = None;
        for i in 0..self.segments.len() {
            let sent = self.segments[i];
            let number = self.first + i as u64;
            if (sent.at, number) >= before && !sent.resent {
                // Later numbers were sent later still, and again later than that.
                break;
            }
            if sent.place != Place::InFlight || (sent.at, number) >= before {
                continue;
            }
            let deadline = sent.at + patience;
            if deadline <= now {
                self.lose(i);
            } else {
                look_again = look_again.max(Some(deadline));
            }
        }
        look_again
    }

    /// The timeout has passed: the first segment is lost, and what has been on its way for longer than `patience`
    /// (RFC 8985, 6.3). If the receiver has taken back what it said it had, nothing that it said counts.
    pub(super) fn time_out(&mut self, now: Time, patience: Duration) {
        if self.segments.front().is_some_and(|sent| sent.place == Place::Sacked) {
            self.segments.iter_mut().for_each(|sent| {
                if sent.place == Place::Sacked {
                    sent.place = Place::InFlight;
                }
            });
            self.in_flight += self.sacked;
            self.sacked = 0;
        }
        for i in 0..self.segments.len() {
            let sent = self.segments[i];
            if sent.place == Place::InFlight && (i == 0 || sent.at + patience <= now) {
                self.lose(i);
            }
        }
    }

    /// Is something under way that was sent more than once?
    pub(super) fn has_copies(&self) -> bool {
        self.segments.iter().any(|sent| sent.resent && sent.place == Place::InFlight)
    }

    /// Nothing was lost, after all.
    pub(super) fn forgive(&mut self) {
        self.segments.iter_mut().for_each(|sent| {
            if sent.place == Place::Lost {
                sent.place = Place::InFlight;
            }
        });
        self.in_flight += self.lost;
        self.lost = 0;
    }

    fn lose(&mut self, i: usize) {
        self.segments[i].place = Place::Lost;
        self.in_flight -= 1;
        let number = self.first + i as u64;
        self.lost_from = if self.lost == 0 { number } else { self.lost_from.min(number) };
        self.lost += 1;
    }

    /// Counts again what is counted along the way.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn audit(&self) {
        let count = |place| self.segments.iter().filter(|sent| sent.place == place).count() as u64;
        let counted = (count(Place::InFlight), count(Place::Lost), count(Place::Sacked));
        assert_eq!((self.in_flight, self.lost, self.sacked), counted);
        let lost = self.segments.iter().position(|sent| sent.place == Place::Lost);
        assert!(lost.is_none_or(|i| self.lost_from <= self.first + i as u64));
        assert!(self.highest <= self.next());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn sent(count: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..count).for_each(|n| board.send(Time::from_millis(n)));
        board
    }

    fn sack(board: &mut Scoreboard, start: u64, end: u64) -> Vec<u64> {
        let mut news = Vec::new();
        board.sack(Block { start, end }, |number, _| news.push(number));
        board.audit();
        news
    }

    #[test]
    fn news_is_told_once() {
        let mut board = sent(10);
        assert_eq!(sack(&mut board, 4, 6), [4, 5]);
        assert_eq!(sack(&mut board, 3, 99), [3, 6, 7, 8, 9]);
        assert_eq!(sack(&mut board, 50, 99), []);
        let mut news = Vec::new();
        board.acknowledge(5, |number, _| news.push(number));
        board.audit();
        assert_eq!(news, [0, 1, 2]);
        assert_eq!((board.first(), board.next(), board.sacked(), board.in_flight()), (5, 10, 5, 0));
        assert_eq!(sack(&mut board, 0, 5), []);
    }

    #[test]
    fn what_was_sent_long_before_a_delivered_one_is_lost() {
        let mut board = sent(10);
        sack(&mut board, 7, 8);
        let patience = Duration::from_millis(20);
        // Of 0 to 6, sent at 0 to 6 ms, the patience with the first four is over.
        let again = board.detect(Time::from_millis(23), (Time::from_millis(7), 7), patience);
        assert_eq!((board.lost(), again), (4, Some(Time::from_millis(26))));
        assert_eq!(board.first_lost(), Some(0));
        board.resend(0, Time::from_millis(23));
        assert_eq!(board.first_lost(), Some(1));
        // The new copy of 0 was sent after 7 and is not judged by it.
        let again = board.detect(Time::from_millis(99), (Time::from_millis(7), 7), patience);
        assert_eq!((board.lost(), board.in_flight(), again), (6, 3, None));
        board.audit();
        board.forgive();
        assert_eq!((board.lost(), board.in_flight(), board.first_lost()), (0, 9, None));
        board.audit();
    }

    #[test]
    fn a_timeout_spares_what_was_sent_just_now() {
        let mut board = sent(10);
        sack(&mut board, 2, 3);
        board.time_out(Time::from_millis(25), Duration::from_millis(20));
        assert_eq!((board.lost(), board.first_lost()), (5, Some(0)));
        board.audit();
    }

    #[test]
    fn a_receiver_that_takes_back_what_it_had_gets_it_again() {
        let mut board = sent(10);
        sack(&mut board, 0, 4);
        board.time_out(Time::from_millis(100), Duration::from_millis(20));
        assert_eq!((board.lost(), board.sacked()), (10, 0));
        board.audit();
    }
}
