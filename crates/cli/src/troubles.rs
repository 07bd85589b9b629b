//! What stands in the way of an inbox, told while it lasts.

use crate::failure::{Failure, Outcome};
use crate::output::remark;
use stayfast::{AuthorizedError, Inbox};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often the same trouble is told.
const AGAIN: Duration = Duration::from_secs(60);

/// Looks at an inbox now and then.
#[derive(Debug)]
pub struct Troubles {
    path: PathBuf,
    store: Said,
    list: Said,
}

impl Troubles {
    /// Of the inbox at `path`.
    pub fn new(path: &Path) -> Troubles {
        Troubles { path: path.to_path_buf(), store: Said::default(), list: Said::default() }
    }

    /// Tells what is new, or old enough to be told again. A store that serves nothing more is a failure.
    pub fn look(&mut self, inbox: &Inbox) -> Outcome {
        let (path, now) = (self.path.display(), Instant::now());
        let store = match inbox.trouble() {
            Some(error) if error.is_lasting() => return Err(Failure::store(&self.path, &error)),
            trouble => trouble.map(|error| format!("{path}: {error}; records wait at their senders, and come by then")),
        };
        self.store.tell(now, store, || format!("{path}: it stores again"));
        let troubles = inbox.list_troubles();
        let list = troubles.first().map(|first| match (first, troubles.len()) {
            (AuthorizedError::Line { .. }, 1) => format!("{first}; the other lines count"),
            (AuthorizedError::Line { .. }, more) => format!("{first}; {more} lines are wrong, the others count"),
            _ => format!("{first}; until then it stays as it was"),
        });
        self.list.tell(now, list, || "the list of authorized keys is in order again".to_string());
        Ok(())
    }
}

/// What was told of one kind of trouble.
#[derive(Debug, Default)]
struct Said {
    last: Option<(String, Instant)>,
    lasts: bool,
}

impl Said {
    fn tell(&mut self, now: Instant, trouble: Option<String>, over: impl FnOnce() -> String) {
        if let Some(text) = self.next(now, trouble, over) {
            remark(text);
        }
    }

    /// A trouble that comes and goes is told no more often than one that stays.
    fn next(&mut self, now: Instant, trouble: Option<String>, over: impl FnOnce() -> String) -> Option<String> {
        let Some(text) = trouble else {
            return std::mem::take(&mut self.lasts).then(over);
        };
        if self.last.as_ref().is_some_and(|(said, at)| *said == text && now < *at + AGAIN) {
            return None;
        }
        (self.last, self.lasts) = (Some((text.clone(), now)), true);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_told_when_it_changes_and_once_a_minute() {
        let (start, mut said) = (Instant::now(), Said::default());
        let mut at = |seconds, trouble: Option<&str>| {
            let now = start + Duration::from_secs(seconds);
            said.next(now, trouble.map(str::to_string), || "over".to_string()).unwrap_or_default()
        };
        assert_eq!((at(0, None), at(1, Some("full")), at(2, Some("full"))), ("".into(), "full".into(), "".into()));
        assert_eq!((at(3, Some("busy")), at(4, None), at(5, None)), ("busy".into(), "over".into(), "".into()));
        assert_eq!((at(6, Some("busy")), at(7, None)), ("".into(), "".into()), "it comes and goes");
        assert_eq!((at(63, Some("busy")), at(64, None)), ("busy".into(), "over".into()));
    }
}
