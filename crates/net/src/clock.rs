use stayfast_units::Time;
use std::time::{Duration, Instant};

/// The only clock: nanoseconds since the driver was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// From `earlier` to `later`; nothing if they are the other way round.
pub(crate) fn between(earlier: Time, later: Time) -> Duration {
    Duration::from_nanos(later.as_nanos().saturating_sub(earlier.as_nanos()))
}
