use super::segment::Block;
use super::window::Window;
use stayfast_units::Time;

/// A reduction of the window, and what proves it wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Episode {
    /// The window before.
    pub(super) before: Window,
    /// The first segment that was not acknowledged then.
    first: u64,
    /// When the first segment was sent again.
    resent_at: Option<Time>,
    /// Segments sent again, and copies that the receiver had no use for.
    resent: u64,
    useless: u64,
}

impl Episode {
    pub(super) fn new(before: Window, first: u64) -> Episode {
        Episode { before, first, resent_at: None, resent: 0, useless: 0 }
    }

    pub(super) fn on_resent(&mut self, now: Time) {
        self.resent_at.get_or_insert(now);
        self.resent += 1;
    }

    /// The receiver got these twice.
    pub(super) fn on_duplicate(&mut self, block: Block) {
        if block.start >= self.first {
            self.useless += block.end - block.start;
        }
    }

    /// Was every copy useless? (RFC 3708)
    pub(super) fn all_useless(&self) -> bool {
        self.resent > 0 && self.useless >= self.resent
    }

    /// Does an acknowledgement of something new echo a stamp from before the first copy? Then the original has
    /// arrived (RFC 3522).
    pub(super) fn original_arrived(&self, echo: Time) -> bool {
        self.resent_at.is_some_and(|at| echo < at)
    }
}
