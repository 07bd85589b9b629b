use crate::StoreError;
use alloc::collections::VecDeque;
use alloc::string::ToString;

/// Which operation a fault waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// [`Outbox::append`](crate::Outbox::append).
    Append,
    /// [`Outbox::read`](crate::Outbox::read) and [`Outbox::tails`](crate::Outbox::tails).
    Read,
    /// [`Outbox::trim`](crate::Outbox::trim).
    Trim,
    /// [`Inbox::deliver`](crate::Inbox::deliver).
    Deliver,
    /// [`Inbox::cursor`](crate::Inbox::cursor) and [`Inbox::cursors`](crate::Inbox::cursors).
    Cursor,
}

/// What goes wrong, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// EIO before anything was written: [`StoreError::Io`].
    Io,
    /// ENOSPC: [`StoreError::DiskFull`], nothing was written.
    DiskFull,
    /// The commit is done, its answer is lost: [`StoreError::Io`].
    Unknown,
    /// fsync fails: [`StoreError::Poisoned`], now and for every later call until the store is opened again; the
    /// write itself may turn out to have survived or not.
    Sync,
    /// A delivery: another node stores the same records a moment before. Other operations: as [`Stall`](Fault::Stall).
    Conflict,
    /// Another writer holds the store: [`StoreError::Busy`] for this many calls.
    Stall(u32),
}

/// What an operation that may write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Works,
    WorksUnseen,
    Poisons,
    Races,
}

/// Takes the first fault that waits for `on`.
pub(super) fn meet(faults: &mut VecDeque<(On, Fault)>, on: On) -> Result<Outcome, StoreError> {
    let Some(at) = faults.iter().position(|&(waits_for, _)| waits_for == on) else {
        return Ok(Outcome::Works);
    };
    let writes = matches!(on, On::Append | On::Trim | On::Deliver);
    if let (_, Fault::Stall(calls @ 2..)) = &mut faults[at] {
        *calls -= 1;
        return Err(StoreError::Busy);
    }
    match faults.remove(at) {
        Some((_, Fault::DiskFull)) if writes => Err(StoreError::DiskFull),
        Some((_, Fault::Unknown)) if writes => Ok(Outcome::WorksUnseen),
        Some((_, Fault::Sync)) if writes => Ok(Outcome::Poisons),
        Some((_, Fault::Conflict)) if on == On::Deliver => Ok(Outcome::Races),
        Some((_, Fault::Stall(0))) | None => Ok(Outcome::Works),
        Some((_, Fault::Conflict | Fault::Stall(_))) => Err(StoreError::Busy),
        Some(_) => Err(StoreError::Io("injected: input/output error".to_string())),
    }
}
