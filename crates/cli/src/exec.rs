//! `stayfast listen --exec`: a batch of records on the standard input of a command.

use crate::human;
use crate::input::Framing;
use crate::interrupt::Interrupt;
use crate::output::remark;
use crate::text::printable;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fmt;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often a signal is looked for while a command runs.
const TICK: Duration = Duration::from_millis(100);
/// A command that runs for so long may hang.
const LONG: Duration = Duration::from_secs(10);
/// How often that is told.
const AGAIN: Duration = Duration::from_secs(60);
/// How long a command that was killed is waited for: something may keep it in the kernel.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// The command, and how records are written to it.
#[derive(Clone, Debug)]
pub struct Exec {
    command: String,
    framing: Framing,
    /// How long a command may go on after the first signal.
    grace: Duration,
    interrupt: Interrupt,
}

/// Whether the command took its input, and how it ended.
type Ended = (io::Result<()>, io::Result<ExitStatus>);

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
    /// It did not end when this process had to.
    Killed,
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotStored::Io(e) => write!(f, "the command cannot be run: {e}"),
            NotStored::Exit(status) => write!(f, "the command ended with {status}"),
            NotStored::Killed => write!(f, "the command was killed, since it did not end"),
        }
    }
}

impl Exec {
    /// `command` is given to the shell.
    pub fn new(command: &str, framing: Framing, grace: Duration, interrupt: Interrupt) -> Exec {
        Exec { command: command.to_string(), framing, grace, interrupt }
    }

    /// Runs the command once, and waits for it. Exit code 0 means that it has stored all of the records.
    ///
    /// It has a process group of its own, so that all of it can be ended: a batch must not be given to a command while
    /// another one still works on it.
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
            .process_group(0)
            .spawn()
            .map_err(NotStored::Io)?;
        let group = Pid::from_child(&child);
        let (done, ended) = channel();
        let records = self.framed(slice).map_err(NotStored::Io)?;
        let feed = move || drop(done.send(feed(&mut child, &records)));
        if let Err(e) = std::thread::Builder::new().name("command".to_string()).spawn(feed) {
            kill(group);
            return Err(NotStored::Io(e));
        }
        let (fed, status) = self.watch(&ended, group, slice)?;
        let status = status.map_err(NotStored::Io)?;
        match fed {
            // It may know enough before it has read everything: its exit code decides.
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(NotStored::Io(e)),
            _ if status.success() => Ok(()),
            _ => Err(NotStored::Exit(status)),
        }
    }

    fn framed(&self, slice: &Slice<'_>) -> io::Result<Vec<u8>> {
        let mut records = Vec::new();
        slice.records.iter().try_for_each(|record| self.framing.write(&mut records, record))?;
        Ok(records)
    }

    /// Until the command has ended, or has to.
    fn watch(&self, ended: &Receiver<Ended>, group: Pid, slice: &Slice<'_>) -> Result<Ended, NotStored> {
        let begun = Instant::now();
        let (mut told, mut asked) = (None, None);
        loop {
            match ended.recv_timeout(TICK) {
                Ok(ended) => return Ok(ended),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(NotStored::Io(io::ErrorKind::BrokenPipe.into())),
            }
            let now = Instant::now();
            if self.interrupt.is_set() && asked.is_none() {
                asked = Some(now);
                let grace = human::duration(self.grace);
                remark(format!("waiting up to {grace} for the command with {slice}; another signal kills it"));
            }
            if self.interrupt.is_set_again() || asked.is_some_and(|asked| now - asked >= self.grace) {
                kill(group);
                // It may have been in time after all.
                return match ended.recv_timeout(AFTER_KILL) {
                    Ok((fed, Ok(status))) if status.success() => Ok((fed, Ok(status))),
                    _ => Err(NotStored::Killed),
                };
            }
            if now - begun >= LONG && told.is_none_or(|told| now - told >= AGAIN) {
                told = Some(now);
                let time = human::duration(now - begun);
                remark(format!("the command with {slice} has been running for {time}; all other records wait for it"));
            }
        }
    }
}

impl fmt::Display for Slice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, count) = (human::count(self.first), human::records(self.records.len() as u64));
        write!(f, "{count} from number {first} on of stream '{}' from {}", printable(self.stream), self.sender)
    }
}

fn feed(child: &mut Child, records: &[u8]) -> Ended {
    let fed = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(records));
    (fed, child.wait())
}

/// The command, and what it has started.
fn kill(group: Pid) {
    // If nothing is left of it, so much the better.
    let _ = kill_process_group(group, Signal::KILL);
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
        Exec::new(command, framing, LONG, Interrupt::default()).run(&slice(records))
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
