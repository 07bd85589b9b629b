//! `stayfast listen --exec`: a batch of records on the standard input of a command.

use crate::input::Framing;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The command, and how records are written to it.
#[derive(Clone, Debug)]
pub struct Exec {
    command: String,
    framing: Framing,
}

/// Consecutive records of one stream.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    /// Name of the sender.
    pub sender: &'a str,
    /// Id of the sender's store.
    pub store: u64,
    /// Name of the stream.
    pub stream: &'a str,
    /// Number of the first record.
    pub first: u64,
    /// The records.
    pub records: Vec<&'a [u8]>,
}

/// Why a command has not stored its records.
#[derive(Debug)]
pub enum NotStored {
    /// It could not be started or fed.
    Io(io::Error),
    /// It said so.
    Exit(ExitStatus),
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotStored::Io(e) => write!(f, "the command cannot be run: {e}"),
            NotStored::Exit(status) => write!(f, "the command ended with {status}"),
        }
    }
}

impl Exec {
    /// `command` is given to the shell.
    pub fn new(command: &str, framing: Framing) -> Exec {
        Exec { command: command.to_string(), framing }
    }

    /// Runs the command once, and waits for it. Exit code 0 means that it has stored all of the records.
    pub fn run(&self, slice: &Slice<'_>) -> Result<(), NotStored> {
        let count = slice.records.len() as u64;
        let mut child = Command::new("/bin/sh")
            .args(["-c", &self.command])
            .env("STAYFAST_SENDER", slice.sender)
            .env("STAYFAST_STORE", format!("{:016x}", slice.store))
            .env("STAYFAST_STREAM", slice.stream)
            .env("STAYFAST_FIRST", slice.first.to_string())
            .env("STAYFAST_LAST", (slice.first + count).saturating_sub(1).to_string())
            .env("STAYFAST_COUNT", count.to_string())
            .stdin(Stdio::piped())
            .spawn()
            .map_err(NotStored::Io)?;
        let fed = match child.stdin.take() {
            Some(input) => self.feed(input, slice),
            None => Ok(()),
        };
        let status = child.wait().map_err(NotStored::Io)?;
        match fed {
            // It may know enough before it has read everything: its exit code decides.
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(NotStored::Io(e)),
            _ if status.success() => Ok(()),
            _ => Err(NotStored::Exit(status)),
        }
    }

    fn feed(&self, input: impl Write, slice: &Slice<'_>) -> io::Result<()> {
        let mut input = BufWriter::with_capacity(1 << 16, input);
        slice.records.iter().try_for_each(|record| self.framing.write(&mut input, record))?;
        input.flush()
    }
}

/// The pause before a batch is tried again: a second, and twice as long after each failure in a row, up to a minute.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    until: Instant,
    next: Duration,
}

impl Pause {
    /// The first one.
    pub const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);

    /// After the first failure.
    pub fn new(now: Instant) -> Pause {
        Pause { until: now + Pause::FIRST, next: 2 * Pause::FIRST }
    }

    /// After one more. Returns how long it is.
    pub fn again(&mut self, now: Instant) -> Duration {
        let pause = self.next;
        self.until = now + pause;
        self.next = (2 * self.next).min(Pause::LONGEST);
        pause
    }

    /// Is it over?
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice<'a>(records: &[&'a [u8]]) -> Slice<'a> {
        Slice { sender: "edge", store: 255, stream: "logs", first: 7, records: records.to_vec() }
    }

    fn run(command: &str, framing: Framing, records: &[&[u8]]) -> Result<(), NotStored> {
        Exec::new(command, framing).run(&slice(records))
    }

    #[test]
    fn records_and_their_numbers_reach_the_command() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let names = "$STAYFAST_SENDER $STAYFAST_STORE $STAYFAST_STREAM $STAYFAST_FIRST $STAYFAST_LAST $STAYFAST_COUNT";
        let command = format!("(cat; echo {names}) > {}", out.display());
        run(&command, Framing::Lines, &[b"one", b"two"]).unwrap();
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "one\ntwo\nedge 00000000000000ff logs 7 8 2\n");
        run(&format!("cat > {}", out.display()), Framing::Lengths, &[b"a\nb"]).unwrap();
        assert_eq!(std::fs::read(&out).unwrap(), b"\0\0\0\x03a\nb");
    }

    #[test]
    fn the_exit_code_decides_even_if_nothing_is_read() {
        let large = vec![b'x'; 1 << 20];
        run("exit 0", Framing::Lines, &[&large]).unwrap();
        let failed = run("cat > /dev/null; exit 3", Framing::Lines, &[&large]).unwrap_err();
        assert!(matches!(&failed, NotStored::Exit(status) if status.code() == Some(3)), "{failed}");
        assert!(matches!(run("kill -9 $$", Framing::Lines, &[b"x"]), Err(NotStored::Exit(_))));
    }

    #[test]
    fn pauses_grow_to_a_minute() {
        let now = Instant::now();
        let mut pause = Pause::new(now);
        assert!(!pause.is_over(now) && pause.is_over(now + Duration::from_secs(1)));
        let pauses: Vec<_> = (0..7).map(|_| pause.again(now).as_secs()).collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60]);
    }
}
