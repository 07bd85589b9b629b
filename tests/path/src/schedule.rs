use stayfast_sim::PathSpec;
use std::time::Duration;

/// A path and what it becomes under way: each so long after the moment that [`Emulator::begin`](crate::Emulator::begin)
/// names.
///
/// ```
/// use std::time::Duration;
/// use stayfast_path::Schedule;
///
/// let (wide, narrow) = ("rtt=20ms mtu=1500".parse()?, "rtt=20ms mtu=1280".parse()?);
/// let schedule = Schedule::new(wide).then(Duration::from_secs(5), narrow).expect("it may become that");
/// assert_eq!(schedule.at(Duration::from_millis(4_999)).mtu, Some(1_500));
/// assert_eq!(schedule.at(Duration::from_secs(5)).mtu, Some(1_280));
/// assert_eq!(schedule.then(Duration::from_secs(6), "rate=5M rtt=20ms".parse()?).err(), Some("rate="));
/// # Ok::<(), stayfast_sim::PathError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Schedule {
    first: PathSpec,
    /// In order of time.
    later: Vec<(Duration, PathSpec)>,
}

impl Schedule {
    /// A path that stays as it is.
    pub fn new(first: PathSpec) -> Schedule {
        Schedule { first, later: Vec::new() }
    }

    /// It becomes another one.
    ///
    /// # Errors
    /// The word of it that a path cannot change under way, after [`PathSpec::fixed`].
    pub fn then(mut self, after: Duration, spec: PathSpec) -> Result<Schedule, &'static str> {
        match self.first.fixed(&spec) {
            Some(word) => Err(word),
            None => {
                let place = self.later.partition_point(|(earlier, _)| *earlier <= after);
                self.later.insert(place, (after, spec));
                Ok(self)
            }
        }
    }

    /// The path before all changes.
    pub fn first(&self) -> &PathSpec {
        &self.first
    }

    /// The path so long after that moment.
    pub fn at(&self, after: Duration) -> &PathSpec {
        let gone = self.later.partition_point(|(earlier, _)| *earlier <= after);
        self.later[..gone].last().map_or(&self.first, |(_, spec)| spec)
    }

    /// What it becomes, and when, in order of time.
    pub fn changes(&self) -> &[(Duration, PathSpec)] {
        &self.later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_in_order_of_time_however_they_are_given() {
        let spec = |rtt: u64| PathSpec { rtt: Duration::from_millis(rtt), ..PathSpec::default() };
        let schedule =
            [(7, 70), (3, 30), (5, 50), (3, 31)].into_iter().fold(Schedule::new(spec(1)), |schedule, (s, rtt)| {
                schedule.then(Duration::from_secs(s), spec(rtt)).expect("a round trip may change")
            });
        let rtt = |s| schedule.at(Duration::from_secs(s)).rtt.as_millis();
        assert_eq!([0, 2, 3, 4, 5, 6, 7, 9].map(rtt), [1, 1, 31, 31, 50, 50, 70, 70]);
        assert!(schedule.changes().is_sorted_by_key(|(after, _)| *after));
    }
}
