use crate::report::EpisodeChange;
use stayfast_units::Time;

/// The episode that is open, if one is (`docs/undo.md`).
///
/// An episode begins with a loss outside the recovery period and takes in every loss that follows, as long
/// as the fate of one of its losses is unknown. It ends as spurious when the last of them is known to be late,
/// as real with the first that is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Episodes {
    open: Option<Open>,
    /// Names given so far. A loss carries the name of its episode, so one whose episode has ended says nothing.
    drawn: u64,
    /// Start of the newest recovery period: losses of packets sent up to here are part of the event that
    /// started it (RFC 9002, 7.3.2).
    recovery: Option<Time>,
    #[cfg(any(test, feature = "mutants"))]
    pub(crate) mutant: Option<crate::Mutant>,
}

#[derive(Clone, Debug)]
struct Open {
    id: u64,
    /// Losses whose fate is unknown.
    pending: u64,
    /// One of the losses was late.
    late: bool,
    /// The recovery period before this episode: it is part of what a spurious end returns to.
    recovery_before: Option<Time>,
}

impl Episodes {
    /// The name of no episode: what happens to a loss under it changes nothing.
    pub(crate) const NONE: u64 = 0;

    /// The name that losses found now get: of the open episode, or of the one they may begin.
    pub(crate) fn name(&mut self) -> u64 {
        match &self.open {
            Some(open) => open.id,
            None => {
                self.drawn += 1;
                self.drawn
            }
        }
    }

    /// `count` packets named `id` were given up, the newest of them sent at `newest`.
    pub(crate) fn lost(&mut self, now: Time, id: u64, count: u64, newest: Time) -> EpisodeChange {
        let recovery_before = self.recovery;
        let event = self.enter_recovery(now, newest);
        if let Some(open) = &mut self.open {
            open.pending += count;
            #[cfg(any(test, feature = "mutants"))]
            if event && self.mutant == Some(crate::Mutant::SavedAtSecondEvent) {
                return EpisodeChange::Began;
            }
            return EpisodeChange::None;
        }
        if !event {
            return EpisodeChange::None;
        }
        self.open = Some(Open { id, pending: count, late: false, recovery_before });
        EpisodeChange::Began
    }

    /// A packet lost under the name `id` arrived.
    pub(crate) fn late(&mut self, id: u64) -> EpisodeChange {
        let Some(open) = self.open.as_mut().filter(|open| open.id == id) else { return EpisodeChange::None };
        open.pending -= 1;
        open.late = true;
        if open.pending > 0 {
            return EpisodeChange::None;
        }
        self.recovery = open.recovery_before;
        self.open = None;
        EpisodeChange::Spurious
    }

    /// A packet lost under the name `id` is gone. Also says whether the episode saw no late packet at all.
    pub(crate) fn gone(&mut self, id: u64) -> (EpisodeChange, bool) {
        #[cfg(any(test, feature = "mutants"))]
        if self.mutant == Some(crate::Mutant::UndoDespiteGone) {
            return (self.late(id), false);
        }
        match self.open.take_if(|open| open.id == id) {
            Some(open) => (EpisodeChange::Real, !open.late),
            None => (EpisodeChange::None, false),
        }
    }

    /// Congestion was signalled by something else than a loss, for a packet sent at `sent`.
    pub(crate) fn signalled(&mut self, now: Time, sent: Time) -> EpisodeChange {
        self.enter_recovery(now, sent);
        #[cfg(any(test, feature = "mutants"))]
        if self.mutant == Some(crate::Mutant::MarkUndone) {
            return EpisodeChange::None;
        }
        self.close()
    }

    /// Persistent congestion ends the episode and the recovery period (RFC 9002, B.8:
    /// `congestion_recovery_start_time = 0`).
    pub(crate) fn persistent(&mut self) -> EpisodeChange {
        self.recovery = None;
        self.close()
    }

    /// Ends the episode, if one is open: nothing of it will be undone.
    pub(crate) fn close(&mut self) -> EpisodeChange {
        match self.open.take() {
            Some(_) => EpisodeChange::Real,
            None => EpisodeChange::None,
        }
    }

    /// RFC 9002, B.6: no new event "if already in a recovery period", that is, if the packet was sent
    /// before it started. Says whether this is one.
    fn enter_recovery(&mut self, now: Time, sent: Time) -> bool {
        let event = self.recovery.is_none_or(|start| sent > start);
        if event {
            self.recovery = Some(now);
        }
        event
    }
}
