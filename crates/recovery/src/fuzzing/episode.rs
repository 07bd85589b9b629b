use super::controller::{Controller, Reduction};
use crate::EpisodeChange;
use alloc::vec::Vec;

/// The rule of episodes in its simplest form: the losses by name, and what the window was before the first.
pub(super) struct Episode {
    losses: Vec<u64>,
    late: Vec<u64>,
    before: Vec<Reduction>,
}

/// The open episode, if there is one.
#[derive(Default)]
pub(super) struct Episodes(Option<Episode>);

impl Episodes {
    /// What the losses of `numbers` must lead to, if the controller is about to reduce its window or not.
    pub(super) fn lost(&mut self, numbers: &[u64], reduces: bool, controller: &Controller) -> EpisodeChange {
        match &mut self.0 {
            Some(open) => {
                open.losses.extend(numbers);
                EpisodeChange::None
            }
            None if reduces => {
                let before = controller.in_force.clone();
                self.0 = Some(Episode { losses: numbers.into(), late: Vec::new(), before });
                EpisodeChange::Began
            }
            None => EpisodeChange::None,
        }
    }

    /// Packet `number` was late. If that ends the episode: the state to return to.
    pub(super) fn late(&mut self, number: u64) -> Option<Vec<Reduction>> {
        let open = self.0.as_mut()?;
        if open.losses.contains(&number) {
            open.late.push(number);
        }
        let spurious = open.late.len() == open.losses.len();
        self.0.take_if(|_| spurious).map(|open| open.before)
    }

    /// Packet `number` is gone.
    pub(super) fn gone(&mut self, number: u64) -> EpisodeChange {
        match self.0.take_if(|open| open.losses.contains(&number)) {
            Some(_) => EpisodeChange::Real,
            None => EpisodeChange::None,
        }
    }

    /// Something else says that there is congestion.
    pub(super) fn close(&mut self) -> EpisodeChange {
        match self.0.take() {
            Some(_) => EpisodeChange::Real,
            None => EpisodeChange::None,
        }
    }
}
