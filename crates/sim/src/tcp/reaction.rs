//! What a sender does when an acknowledgement arrives or a deadline passes.

use super::episode::Episode;
use super::hystart::Sign;
use super::prr::Prr;
use super::segment::{Ack, Block};
use super::sender::{Phase, Probe, TcpSender};
use core::time::Duration;
use stayfast_units::Time;

/// How long a receiver may delay the acknowledgement of a single segment (RFC 8985, 7.2), as Linux has it.
const ACK_DELAY_MAX: Duration = Duration::from_millis(200);
/// The probe's timeout before there is a round trip (RFC 8985, 7.2).
const PROBE_INITIAL: Duration = Duration::from_secs(1);

/// What an acknowledgement brought.
struct News {
    /// Segments that are known to have arrived only now.
    delivered: u64,
    /// It acknowledged the next segment.
    advanced: bool,
    /// It spoke of segments beyond that.
    sacked: bool,
    /// These had arrived before.
    duplicate: Option<Block>,
    /// The newest round trip of a segment sent only once.
    rtt: Option<Duration>,
}

impl TcpSender {
    pub(super) fn on_ack(&mut self, now: Time, ack: &Ack) {
        let flight = self.board.in_flight();
        let news = self.take(now, ack);
        self.answer_probe(ack, &news);
        self.reconsider(ack, &news);
        let lost = self.look_for_losses(now);
        self.adapt(now, &news, flight, lost);
        if news.advanced {
            self.rtt.progress();
            self.timers.timeout = Some(now + self.rtt.timeout());
        }
        if self.board.is_empty() {
            (self.timers.timeout, self.timers.reorder) = (None, None);
        }
        self.plan_probe(now);
    }

    /// Brings the scoreboard, the round-trip times and RACK up to date.
    fn take(&mut self, now: Time, ack: &Ack) -> News {
        let advanced = ack.next > self.board.first();
        let duplicate = duplicate(ack);
        let before = self.board.sacked();
        let least = self.rtt.least();
        let (mut delivered, mut newest, mut oldest) = (0, None, None);
        let (rack, mut highest) = (&mut self.rack, self.board.highest());
        let mut each = |number, sent: &_| {
            delivered += 1;
            rack.on_delivered(now, number, sent, highest, least);
            highest = highest.max(number + 1);
            if !sent.resent {
                newest = newest.max(Some(sent.at));
                oldest = Some(oldest.map_or(sent.at, |at: Time| at.min(sent.at)));
            }
        };
        self.board.acknowledge(ack.next, &mut each);
        for block in ack.blocks.iter().flatten().skip(usize::from(duplicate.is_some())) {
            self.board.sack(*block, &mut each);
        }
        let rtt = newest.map(|at| now - at);
        if let Some(rtt) = rtt {
            self.rtt.sample_least(rtt);
        }
        // Time stamps measure when something new is acknowledged (RFC 7323, 4.1); between, SACK measures.
        if let Some(begin) = if advanced { Some(ack.echo) } else { oldest } {
            self.rtt.sample(now - begin);
        }
        if let Some(block) = duplicate {
            self.rack.on_duplicate(self.board.first(), self.board.next());
            if let Some(episode) = &mut self.episode {
                episode.on_duplicate(block);
            }
        }
        News { delivered, advanced, sacked: self.board.sacked() > before, duplicate, rtt }
    }

    /// Ends a recovery, or takes it back.
    fn reconsider(&mut self, ack: &Ack, news: &News) {
        // An old stamp may also be that of an earlier episode's copy; so, as in Linux, no copy may be under way.
        let wrong = self.episode.is_some_and(|episode| {
            let original = news.advanced && episode.original_arrived(ack.echo);
            episode.all_useless() || original && !self.board.has_copies()
        });
        let end = match self.phase {
            Phase::Open => None,
            Phase::Recovery { end, .. } | Phase::Timeout { end } => Some(end),
        };
        if wrong && let Some(episode) = self.episode.take() {
            self.counts.undone += 1;
            self.board.forgive();
            let size = self.window.size.max(episode.before.size);
            self.window = episode.before;
            self.window.size = size;
            self.phase = Phase::Open;
        } else if end.is_some_and(|end| self.board.first() >= end) {
            if let Phase::Recovery { .. } = self.phase {
                self.window.size = self.window.threshold;
            }
            self.phase = Phase::Open;
            self.rack.on_recovered();
        }
    }

    /// RACK. Returns whether there is a new loss.
    fn look_for_losses(&mut self, now: Time) -> bool {
        let before = self.board.lost();
        let recovering = !matches!(self.phase, Phase::Open);
        let patience = self.rack.patience(&self.rtt, recovering, self.board.sacked());
        self.timers.reorder = self.board.detect(now, self.rack.newest(), patience);
        let lost = self.board.lost() > before;
        if lost && !recovering {
            self.reduce();
            self.counts.recoveries += 1;
            let prr = Prr::new(self.window.size);
            self.phase = Phase::Recovery { end: self.board.next(), prr };
        }
        lost
    }

    /// Remembers the window and sets the threshold.
    fn reduce(&mut self) {
        self.episode = Some(Episode::new(self.window, self.board.first()));
        self.window.on_loss();
    }

    /// Sets the window.
    fn adapt(&mut self, now: Time, news: &News, flight: u64, lost: bool) {
        if let Phase::Recovery { prr, .. } = &mut self.phase {
            let progress = news.advanced && !lost;
            self.window.size = prr.window(news.delivered, self.board.in_flight(), self.window.threshold, progress);
            return;
        }
        let rtt = self.rtt.smoothed().unwrap_or_default();
        let starting = self.window.in_slow_start();
        if let Some(rtt) = news.rtt.filter(|_| starting) {
            let (acked, next) = (self.board.first(), self.board.next());
            let sign = Sign { now, acked, next, rtt, least: self.rtt.least(), paced: self.config.paced };
            self.window.look_for_end(&sign);
        }
        // A window that is not used proves nothing (RFC 7661): it must have been full within the last round trip, or
        // in slow start half full.
        let used = now - self.full <= rtt || starting && self.window.size < 2.0 * flight as f64;
        if news.delivered > 0 && used {
            self.window.grow(now, news.delivered, rtt);
        }
    }

    /// What an acknowledgement says about a probe (RFC 8985, 7.4).
    fn answer_probe(&mut self, ack: &Ack, news: &News) {
        let Probe::Sent { end, again } = self.probe else { return };
        if ack.next < end {
            return;
        }
        let repeated = news.duplicate.is_some_and(|block| block.end == end);
        let silent = ack.next == end && !news.advanced && !news.sacked;
        if again && ack.next > end && !repeated {
            // The probe itself repaired a loss.
            if let Phase::Open = self.phase {
                self.reduce();
                self.counts.recoveries += 1;
                self.episode = None;
                self.window.size = self.window.threshold;
            }
        } else if again && !repeated && !silent {
            return;
        }
        self.probe = Probe::None;
    }

    /// Sets the probe's timer (RFC 8985, 7.2): when nothing is known to be missing, and no probe is under way.
    pub(super) fn plan_probe(&mut self, now: Time) {
        let quiet = matches!(self.phase, Phase::Open) && self.board.sacked() == 0 && self.board.lost() == 0;
        let wanted = quiet && self.probe == Probe::None && !self.board.is_empty();
        self.timers.probe = wanted.then(|| {
            let wait = self.rtt.smoothed().map_or(PROBE_INITIAL, |rtt| {
                2 * rtt + if self.board.in_flight() == 1 { ACK_DELAY_MAX } else { Duration::ZERO }
            });
            let timeout = self.timers.timeout.unwrap_or(Time::MAX);
            (now + wait).min(timeout)
        });
    }

    /// Deadlines that have passed.
    pub(super) fn on_time(&mut self, now: Time) {
        let passed = |deadline: Option<Time>| deadline.is_some_and(|at| at <= now);
        if passed(self.timers.reorder) {
            if self.look_for_losses(now) {
                self.restart_recovery();
            }
            self.plan_probe(now);
        }
        if passed(self.timers.probe) {
            self.timers.probe = None;
            self.timers.timeout = Some(now + self.rtt.timeout());
            self.probe = Probe::Due;
        } else if passed(self.timers.timeout) {
            self.on_timeout(now);
        } else {
            return;
        }
        self.tell(now);
    }

    /// The recovery that a timer begins has no acknowledgement to set its window.
    fn restart_recovery(&mut self) {
        if let Phase::Recovery { prr, .. } = &mut self.phase {
            self.window.size = prr.window(0, self.board.in_flight(), self.window.threshold, false);
        }
    }

    /// Nothing was heard for too long (RFC 6298, 5.4 to 5.6; RFC 5681, 3.1).
    fn on_timeout(&mut self, now: Time) {
        self.counts.timeouts += 1;
        // As in Linux, one flight reduces the window once: not again in a recovery, nor before there was progress.
        let reduced = match self.phase {
            Phase::Open => false,
            Phase::Recovery { .. } => true,
            Phase::Timeout { .. } => self.rtt.is_backed_off(),
        };
        if !reduced {
            self.reduce();
        }
        let patience = self.rack.patience(&self.rtt, true, self.board.sacked());
        self.board.time_out(now, patience);
        self.window.size = self.board.in_flight() as f64 + 1.0;
        self.phase = Phase::Timeout { end: self.board.next() };
        self.probe = Probe::None;
        (self.timers.probe, self.timers.reorder) = (None, None);
        self.rtt.back_off();
        self.timers.timeout = Some(now + self.rtt.timeout());
    }
}

/// The block that says what arrived twice, if the first one does (RFC 2883, 4).
fn duplicate(ack: &Ack) -> Option<Block> {
    let first = ack.blocks[0]?;
    let repeated = first.end <= ack.next || ack.blocks[1].is_some_and(|second| second.contains(first));
    repeated.then_some(first)
}
