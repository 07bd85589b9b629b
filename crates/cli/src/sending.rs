//! The work of `stayfast send`: append what the source gives, and wait until it is stored.

use crate::failure::{Failure, Outcome};
use crate::human;
use crate::input::{Batch, InputError};
use crate::interrupt::Interrupt;
use crate::output::Format;
use crate::progress::{Progress, Reminder, Silence};
use crate::resume::Resume;
use crate::sockets;
use crate::source::{Event, Source};
use crate::uplink::Uplink;
use serde_json::json;
use stayfast::Gaps;
use stayfast_store::{AppendError, StoreError};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// How often the state is looked at.
const TICK: Duration = Duration::from_millis(50);

/// When the work is done.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    /// All records are in the outbox.
    Durable,
    /// All records are stored at the receiver, or this much time has passed since the end of the input.
    Stored(Option<Duration>),
}

/// Names for messages.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The outbox.
    pub outbox: &'a Path,
    /// Where the receiver listens.
    pub host: &'a str,
}

/// Why the work ended.
enum End {
    Done,
    Timeout,
    Interrupted,
    Input(InputError),
    Trouble(String),
}

/// Records on their way from a source to a peer.
pub struct Sending<'a> {
    uplink: Uplink,
    streams: Vec<Stream>,
    target: Target<'a>,
    /// How far all streams of the outbox were stored when it began.
    stored_before: BTreeMap<String, u64>,
    progress: Progress,
    silence: Silence,
    reminder: Reminder,
    started: Instant,
    /// Records of the input that were skipped.
    skipped: u64,
    /// What a look-up of the host found wrong, when it is done.
    lookup: Receiver<String>,
    unresolved: Option<String>,
}

struct Stream {
    resume: Resume,
    /// First number that this process could give to a record.
    first: u64,
    /// Records that this process has appended; others may append, too.
    appended: u64,
    /// First record not known to be stored when it began.
    stored_before: u64,
    /// First record not known to be stored now.
    stored: u64,
}

impl<'a> Sending<'a> {
    /// To be run once.
    pub fn new(mut uplink: Uplink, streams: Vec<Resume>, target: Target<'a>) -> Outcome<Sending<'a>> {
        let stored_before = uplink.stored()?;
        let mut stream = |resume: Resume| {
            let (stored, _) = uplink.tail(&resume.name)?;
            Ok(Stream { first: resume.next, appended: 0, resume, stored_before: stored, stored })
        };
        let streams = streams.into_iter().map(&mut stream).collect::<Outcome<Vec<_>>>()?;
        Ok(Sending {
            uplink,
            streams,
            target,
            stored_before,
            progress: Progress::new(0),
            silence: Silence::new(target.host),
            reminder: Reminder::default(),
            started: Instant::now(),
            skipped: 0,
            lookup: sockets::look_up(target.host)?,
            unresolved: None,
        })
    }

    /// Does it all and prints the result.
    pub fn run(mut self, source: Source, ending: Ending, interrupt: &Interrupt, format: Format) -> Outcome {
        let end = self.take_in(&source, interrupt)?;
        self.streams.iter_mut().for_each(|stream| stream.resume.finish());
        let end = match (end, ending) {
            (End::Done, Ending::Stored(timeout)) => self.wait(timeout, interrupt)?,
            (end, _) => end,
        };
        self.look()?;
        self.progress.clear();
        if let Some(short) =
            self.streams.iter().find(|stream| matches!(end, End::Done) && !stream.resume.has_skipped_all())
        {
            let name = &short.resume.name;
            return Err(Failure::failed(format!("the input is shorter than what stream '{name}' has of it already")));
        }
        let lost = self.lost(format)?;
        match (self.report(&end, ending, format, lost.is_some()), lost) {
            (Ok(()), Some(lost)) => Err(Failure::failed(lost)),
            (Err(Failure::Failed(text)), Some(lost)) => Err(Failure::failed(format!("{text}; {lost}"))),
            (Err(Failure::Environment(text)), Some(lost)) => Err(Failure::environment(format!("{text}; {lost}"))),
            (outcome, _) => outcome,
        }
    }

    /// What this outbox could not send because it was damaged.
    fn lost(&mut self, format: Format) -> Outcome<Option<String>> {
        let gaps = self.uplink.gaps(&self.stored_before)?;
        if format.json {
            for (stream, gaps) in &gaps {
                format.print(&json!({ "stream": stream, "lost": gaps.count(), "numbers": gaps.to_string() }), "")?;
            }
        }
        let one = |(stream, gaps): (&String, &Gaps)| {
            format!("{} of '{stream}' (number {})", human::records(gaps.count()), human::numbers(&gaps.to_string()))
        };
        let lost: Vec<_> = gaps.iter().map(one).collect();
        let outbox = self.target.outbox.display();
        Ok((!lost.is_empty()).then(|| {
            let lost = lost.join(", ");
            format!(
                "lost, because damaged or missing in {outbox}: {lost}; `stayfast outbox ls {outbox}` shows what is left of them"
            )
        }))
    }

    /// Appends until the input ends.
    fn take_in(&mut self, source: &Source, interrupt: &Interrupt) -> Outcome<End> {
        loop {
            match source.next(TICK) {
                Some(Event::Records(index, batch)) => {
                    if let Some(end) = self.append(index, batch, interrupt)? {
                        return Ok(end);
                    }
                }
                Some(Event::Failed(error)) => return Ok(End::Input(error)),
                Some(Event::End) if interrupt.is_set() => return Ok(End::Interrupted),
                Some(Event::End) => return Ok(End::Done),
                None if interrupt.is_set() && source.is_drained() => return Ok(End::Interrupted),
                None => {}
            }
            if interrupt.is_set() {
                source.stop();
            }
            self.look()?;
            // A stream that stands still takes records all the same, but not in silence.
            let trouble = self.speak();
            self.remind(trouble.as_deref());
        }
    }

    /// Appends a batch, however long it takes until there is room for it. Only a signal ends that, or a stream that
    /// stands still while the outbox is full.
    fn append(&mut self, index: usize, mut batch: Batch, interrupt: &Interrupt) -> Outcome<Option<End>> {
        self.skipped += self.streams[index].resume.skip(&mut batch)?;
        // So many are tried at once: fewer when there is no room for all.
        let mut count = batch.len();
        let mut told = false;
        while !batch.is_empty() {
            let Stream { resume, appended, .. } = &mut self.streams[index];
            let error = match self.uplink.append(&resume.name, &batch.records()[..count]) {
                Ok(next) => {
                    *appended += count as u64;
                    resume.appended(count as u64, next)?;
                    batch.skip(count);
                    count = batch.len();
                    continue;
                }
                Err(error) => error,
            };
            match &error {
                AppendError::Full { .. } if count > 1 => {
                    count /= 2;
                    continue;
                }
                AppendError::Full { used: 1.., .. } => {}
                AppendError::Store(StoreError::DiskFull | StoreError::Busy) if told => {}
                AppendError::Store(StoreError::DiskFull | StoreError::Busy) => {
                    self.progress.remark(&format!("{}: {error}; waiting", self.target.outbox.display()));
                    told = true;
                }
                _ => return Err(self.not_appended(index, &batch, &error)),
            }
            if let Some(end) = self.pause(interrupt)? {
                return Ok(Some(end));
            }
            count = batch.len();
        }
        Ok(None)
    }

    fn remind(&mut self, trouble: Option<&str>) {
        if let Some(remark) = self.reminder.of(trouble, self.started.elapsed()) {
            self.progress.remark(&remark);
        }
    }

    /// Until there may be room again.
    fn pause(&mut self, interrupt: &Interrupt) -> Outcome<Option<End>> {
        std::thread::sleep(TICK);
        self.look()?;
        let trouble = self.standstill();
        Ok(trouble.map(End::Trouble).or_else(|| interrupt.is_set().then_some(End::Interrupted)))
    }

    fn not_appended(&self, index: usize, batch: &Batch, error: &AppendError) -> Failure {
        self.progress.clear();
        let durable = human::records(self.streams[index].appended);
        let next = human::records(batch.len() as u64);
        let fate = match error {
            // The sync may have failed after the write: a later look may find them, and the disk may still lose them.
            AppendError::Store(StoreError::Poisoned | StoreError::Io(_)) => format!(
                "whether the next {next} are is not known: when the disk is in order, send the same input with --resume"
            ),
            _ => format!("the next {next} are not"),
        };
        let text = |why| format!("{why}; {durable} of the input are durable, {fate}");
        match Failure::append(self.target.outbox, error) {
            Failure::Environment(why) => Failure::environment(text(why)),
            other => Failure::failed(text(other.to_string())),
        }
    }

    /// Waits until everything is stored.
    fn wait(&mut self, timeout: Option<Duration>, interrupt: &Interrupt) -> Outcome<End> {
        let start = Instant::now();
        loop {
            self.look()?;
            if self.streams.iter().all(|stream| stream.stored >= stream.resume.next) {
                return Ok(End::Done);
            }
            if let Some(trouble) = self.standstill() {
                return Ok(End::Trouble(trouble));
            }
            if interrupt.is_set() {
                return Ok(End::Interrupted);
            }
            if timeout.is_some_and(|timeout| start.elapsed() >= timeout) {
                return Ok(End::Timeout);
            }
            std::thread::sleep(TICK.min(timeout.unwrap_or(TICK)));
        }
    }

    /// Says how the peer is doing; returns what cannot go on without a person. What another process's link has noted
    /// may be old, so that is no reason to give up.
    fn standstill(&mut self) -> Option<String> {
        let trouble = self.speak();
        if self.uplink.runs_link() {
            return trouble;
        }
        self.remind(trouble.as_deref());
        None
    }

    /// Brings what is stored up to date.
    fn look(&mut self) -> Outcome {
        if let Some(remark) = self.uplink.tend()? {
            self.progress.remark(&remark);
        }
        for stream in &mut self.streams {
            stream.stored = self.uplink.tail(&stream.resume.name)?.0;
        }
        let count = |of: fn(&Stream) -> u64| self.streams.iter().map(of).sum();
        self.progress
            .set(count(|s| s.stored.saturating_sub(s.stored_before)), count(|s| s.resume.next - s.stored_before));
        Ok(())
    }

    /// Says how the peer is doing; returns what cannot go on without a person.
    fn speak(&mut self) -> Option<String> {
        let health = self.uplink.health();
        if let Some(remark) = self.silence.after(health.silent_for) {
            self.progress.remark(&remark);
        }
        if let Ok(error) = self.lookup.try_recv() {
            self.progress.remark(&format!("{error}; it is tried again, and the records are kept"));
            self.unresolved = Some(error);
        }
        let rtt = health.rtt.map(|rtt| format!("RTT {}", human::duration(rtt)));
        self.progress.say(rtt.unwrap_or_default());
        self.streams.iter().find_map(|stream| self.uplink.trouble(&stream.resume.name))
    }

    fn report(&self, end: &End, ending: Ending, format: Format, lost: bool) -> Outcome {
        let durable: u64 = self.streams.iter().map(|s| s.appended).sum();
        let waiting: u64 = self.streams.iter().map(|s| s.resume.next.saturating_sub(s.stored)).sum();
        if format.json {
            for Stream { resume, first, stored, .. } in &self.streams {
                let line = json!({ "stream": resume.name, "first": first, "next": resume.next, "stored": stored });
                format.print(&line, "")?;
            }
        }
        let Target { outbox, host } = self.target;
        let (outbox, durable_text) = (outbox.display(), human::records(durable));
        let left = match waiting {
            0 if lost => format!("all stored at {host} but what is lost"),
            0 => format!("all stored at {host}"),
            _ => format!(
                "{} not yet stored at {host}, they stay in {outbox} for the next `stayfast send`",
                human::count(waiting)
            ),
        };
        match end {
            End::Done if format.json => Ok(()),
            End::Done => match ending {
                Ending::Stored(_) => format.print(&json!(null), &format!("{durable_text} sent, {left}")),
                Ending::Durable => format.print(&json!(null), &format!("{durable_text} durable in {outbox}")),
            },
            End::Timeout if self.unresolved.is_some() => {
                let error = self.unresolved.clone().unwrap_or_default();
                Err(Failure::environment(format!("timeout: {error}; {durable_text} sent, {left}")))
            }
            End::Timeout => Err(Failure::failed(format!("timeout: {durable_text} sent, {left}"))),
            End::Interrupted => {
                let text = format!("interrupted: {durable_text} of the input are durable in {outbox}; {left}");
                Err(Failure::failed(text))
            }
            End::Input(error) => {
                let at = human::count(self.skipped + durable + 1);
                Err(Failure::failed(format!("record {at} of the input {error}; {durable_text} before it are durable")))
            }
            End::Trouble(trouble) => {
                Err(Failure::failed(format!("{trouble}; {durable_text} of the input are durable")))
            }
        }
    }
}
