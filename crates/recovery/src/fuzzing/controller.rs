use alloc::vec::Vec;
use stayfast_units::Time;

/// Why the window was reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Loss,
    Mark,
    Persistent,
}

/// One reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reduction {
    pub(super) id: usize,
    pub(super) at: Time,
    pub(super) kind: Kind,
}

/// A congestion controller, as the list of the reductions in force: all that saving and restoring must get
/// right, and nothing else.
#[derive(Default)]
pub(super) struct Controller {
    pub(super) in_force: Vec<Reduction>,
    saved: Option<Vec<Reduction>>,
    drawn: usize,
}

impl Controller {
    pub(super) fn save(&mut self) {
        self.saved = Some(self.in_force.clone());
    }

    pub(super) fn forget(&mut self) {
        self.saved = None;
    }

    /// Returns to the saved state; gives the reductions that this undid.
    pub(super) fn restore(&mut self) -> Vec<Reduction> {
        let saved = self.saved.take().expect("an episode ended as spurious that never began");
        let undone = self.in_force.split_off(saved.len());
        assert_eq!(self.in_force, saved, "reductions are only ever added at the end");
        undone
    }

    /// RFC 9002, B.6: a reduction, unless the packet was sent before the recovery period began.
    pub(super) fn reduce(&mut self, at: Time, sent: Time, kind: Kind) -> bool {
        let outside = match self.in_force.last() {
            Some(last) => last.kind == Kind::Persistent || sent > last.at,
            None => true,
        };
        if outside || kind == Kind::Persistent {
            self.drawn += 1;
            self.in_force.push(Reduction { id: self.drawn, at, kind });
        }
        outside
    }

    pub(super) fn newest(&self) -> Option<usize> {
        self.in_force.last().map(|reduction| reduction.id)
    }

    pub(super) fn holds(&self, id: usize) -> bool {
        self.in_force.iter().any(|reduction| reduction.id == id)
    }
}
