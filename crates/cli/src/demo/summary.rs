//! What the kills did.

use super::kills::Side;
use crate::human;
use serde_json::{Value, json};
use std::time::Duration;

/// A process was killed and started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// Which.
    pub side: Side,
    /// From the start of the new process to the next stored record; `None` if it was killed again before.
    pub took: Option<Duration>,
}

/// The run in numbers.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// From the first start to the sender's knowledge that all is stored.
    pub took: Duration,
    /// Kills that took place.
    pub killed: u32,
    /// In the order in which they happened; without a kill after which nothing was left to be stored.
    pub restarts: Vec<Restart>,
}

impl Summary {
    /// How often this side was killed.
    fn kills(&self, side: Side) -> usize {
        self.restarts.iter().filter(|restart| restart.side == side).count()
    }

    /// Median and maximum of the times to the next stored record, of one side or of both.
    fn times(&self, side: Option<Side>) -> Option<(Duration, Duration)> {
        let of_side = self.restarts.iter().filter(|restart| side.is_none_or(|side| restart.side == side));
        let mut times: Vec<Duration> = of_side.filter_map(|restart| restart.took).collect();
        times.sort_unstable();
        Some((*times.get(times.len() / 2)?, *times.last()?))
    }

    /// For people.
    pub fn text(&self) -> String {
        let (sender, receiver) = (self.kills(Side::Sender), self.kills(Side::Receiver));
        let mut lines = vec![format!(
            "{} with {} kills: the sender {sender} times, the receiver {receiver} times",
            human::duration(self.took),
            self.killed
        )];
        for (name, side) in [("both", None), ("sender", Some(Side::Sender)), ("receiver", Some(Side::Receiver))] {
            if let Some((median, max)) = self.times(side) {
                let (median, max) = (human::duration(median), human::duration(max));
                lines.push(format!("restart to next stored record, {name:<8}  median {median:>7}  max {max:>7}"));
            }
        }
        lines.join("\n")
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let millis = |time: Duration| time.as_micros() as f64 / 1e3;
        let times =
            |side| self.times(side).map(|(median, max)| json!({ "median_ms": millis(median), "max_ms": millis(max) }));
        let restart = |r: &Restart| json!({ "side": r.side.to_string(), "next_stored_ms": r.took.map(millis) });
        json!({
            "seconds": self.took.as_secs_f64(), "kills": self.killed,
            "sender": times(Some(Side::Sender)), "receiver": times(Some(Side::Receiver)), "both": times(None),
            "each": self.restarts.iter().map(restart).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_leave_out_what_was_killed_again() {
        let restart = |side, ms: Option<u64>| Restart { side, took: ms.map(Duration::from_millis) };
        let restarts = vec![
            restart(Side::Sender, Some(30)),
            restart(Side::Receiver, None),
            restart(Side::Receiver, Some(80)),
            restart(Side::Sender, Some(50)),
        ];
        let summary = Summary { took: Duration::from_secs(40), killed: 4, restarts };
        assert_eq!(summary.times(None), Some((Duration::from_millis(50), Duration::from_millis(80))));
        assert_eq!(summary.json()["receiver"]["median_ms"], 80.0);
        assert_eq!((summary.kills(Side::Sender), summary.kills(Side::Receiver)), (2, 2));
        assert!(summary.text().starts_with("40s with 4 kills"));
        assert_eq!(Summary::default().times(None), None);
    }
}
