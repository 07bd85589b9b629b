/// A known fault, planted to prove that the oracle in [`crate::fuzzing`] would see it.
///
/// ```
/// use stayfast_recovery::{Config, Ledger, Mutant};
/// let faulty: Ledger<()> = Ledger::new(Config::default()).with_mutant(Mutant::MarkUndone);
/// assert_eq!(faulty.in_flight(), 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// An episode with a gone packet is undone once its other losses have turned out late.
    UndoDespiteGone,
    /// The state to return to is saved again at a further event of the same episode.
    SavedAtSecondEvent,
    /// A CE mark does not close the episode, so that its reduction is undone with it.
    MarkUndone,
}
