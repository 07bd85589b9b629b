/// A fault, planted in tests to prove that the oracle sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Losses alone make a black hole: nobody asks the path once more.
    LossAlone,
    /// One check decides.
    OneCheckDecides,
    /// A lost probe decides about its size for ten minutes.
    OneProbeDecides,
    /// An old acknowledgement ends a doubt.
    OldAckConvinces,
    /// A doubt is never decided.
    NeverFalls,
    /// A probe that arrives late counts as lost all the same.
    LateIsLost,
}
