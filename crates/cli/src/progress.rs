//! A bar on a terminal for work that takes long; nothing elsewhere.

use crate::human;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::{IsTerminal, stderr};
use std::time::Duration;

/// Records on their way.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Frames a second.
    const FRAMES: u8 = 10;

    /// Of `total` records; the total may grow.
    pub fn new(total: u64) -> Progress {
        let target = match stderr().is_terminal() {
            true => ProgressDrawTarget::stderr_with_hz(Progress::FRAMES),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let template = "{bar:30.green} {human_pos} of {human_len} stored  {rate:>11}  {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            let write = |state: &ProgressState, out: &mut dyn Write| {
                let _ = out.write_str(&rate(state.per_sec()));
            };
            bar.set_style(style.with_key("rate", write));
        }
        Progress { bar }
    }

    /// So many of so many are stored.
    pub fn set(&self, stored: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(stored);
    }

    /// What else there is to say.
    pub fn say(&self, message: String) {
        self.bar.set_message(message);
    }

    /// Prints a line above the bar, or without one if there is none.
    pub fn remark(&self, text: &str) {
        match self.bar.is_hidden() {
            true => crate::output::remark(text),
            false => self.bar.println(text),
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Records a second, to the record: more digits are noise.
fn rate(per_second: f64) -> String {
    format!("{}/s", human::count(per_second as u64))
}

/// Says now and then that nobody answers, first after a few seconds.
pub struct Silence {
    host: String,
    next: Duration,
}

impl Silence {
    const FIRST: Duration = Duration::from_secs(5);

    /// The peer at `host`.
    pub fn new(host: &str) -> Silence {
        Silence { host: host.to_string(), next: Silence::FIRST }
    }

    /// What to say when nothing was heard for so long, if it is time to say it.
    pub fn after(&mut self, silent_for: Option<Duration>) -> Option<String> {
        let Some(silent_for) = silent_for else {
            self.next = Silence::FIRST;
            return None;
        };
        if silent_for < self.next {
            return None;
        }
        while self.next <= silent_for {
            self.next *= 2;
        }
        Some(no_answer(&self.host, silent_for))
    }
}

/// Says what does not pass by itself: at once when it is new, and then now and then while it lasts.
#[derive(Default)]
pub struct Reminder {
    what: Option<String>,
    again: Duration,
    pause: Duration,
}

impl Reminder {
    const FIRST: Duration = Duration::from_secs(5);
    const LONGEST: Duration = Duration::from_secs(60);

    /// What to say `now` (since any fixed moment), if it is time to say it.
    pub fn of(&mut self, what: Option<&str>, now: Duration) -> Option<String> {
        if self.what.as_deref() != what {
            let over = self.what.take().filter(|_| what.is_none()).map(|_| "it goes on".to_string());
            (self.what, self.pause) = (what.map(str::to_string), Reminder::FIRST);
            self.again = now + self.pause;
            return self.what.clone().or(over);
        }
        if self.what.is_some() && now >= self.again {
            self.pause = (2 * self.pause).min(Reminder::LONGEST);
            self.again = now + self.pause;
            return self.what.clone();
        }
        None
    }
}

/// What a silent peer means.
pub fn no_answer(host: &str, silent_for: Duration) -> String {
    let silent = human::duration(Duration::from_secs(silent_for.as_secs()));
    format!("no answer from {host} for {silent}; is it running, and is this node's key listed there?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_no_digits_that_mean_nothing() {
        assert_eq!((rate(51_677.605_604), rate(0.4)), ("51,677/s".to_string(), "0/s".to_string()));
    }

    #[test]
    fn trouble_is_told_at_once_again_and_when_it_ends() {
        let mut reminder = Reminder::default();
        let mut said = |what, range: std::ops::Range<u64>| {
            let at = |s: &u64| reminder.of(what, Duration::from_secs(*s)).is_some();
            range.filter(at).collect::<Vec<_>>()
        };
        assert_eq!(said(None, 0..10), Vec::<u64>::new());
        assert_eq!(said(Some("a"), 10..200), [10, 15, 25, 45, 85, 145]);
        assert_eq!(said(Some("b"), 200..206), [200, 205]);
        assert_eq!(said(None, 206..300), [206]);
    }

    #[test]
    fn silence_is_remarked_less_and_less_often() {
        let mut silence = Silence::new("hub:4711");
        let said: Vec<u64> = (0..100).filter(|s| silence.after(Some(Duration::from_secs(*s))).is_some()).collect();
        assert_eq!(said, [5, 10, 20, 40, 80]);
        assert!(silence.after(None).is_none());
        let text = silence.after(Some(Duration::from_secs(12))).unwrap();
        assert_eq!(text, "no answer from hub:4711 for 12s; is it running, and is this node's key listed there?");
    }
}
