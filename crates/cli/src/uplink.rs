//! The way from an outbox to a peer, as `send` and `put` see it.

use crate::ages::Ages;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::output::remark;
use stayfast::{
    AppendError, Figures, Gaps, Limits, Link, LinkError, LinkLockError, Options, PublicKey, PutError, StoreError,
};
use stayfast_store::Outbox;
use stayfast_store_sqlite::SqliteOutbox;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// When records were put is noted no more often than this.
const NOTE_EVERY: Duration = Duration::from_secs(1);
/// The link is asked for its figures no more often than this.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Whether another process has given the link up is looked at no more often than this.
const TRY_EVERY: Duration = Duration::from_secs(1);

/// Whom to send to.
#[derive(Clone, Debug, clap::Args)]
pub struct Peer {
    /// Where the receiver listens, as HOST:PORT
    #[arg(value_parser = crate::sockets::host_and_port)]
    pub host: String,
    /// The receiver's public key, as `stayfast pubkey` prints it there
    #[arg(long, value_name = "KEY", value_parser = crate::files::public_key, allow_hyphen_values = true)]
    pub peer: PublicKey,
}

/// An outbox, and a link to its peer unless another process runs that.
pub struct Uplink {
    path: PathBuf,
    limit: Option<u64>,
    outbox: SqliteOutbox,
    /// Whom the link is to reach, and the key file.
    peer: Option<(Peer, PathBuf)>,
    link: Option<Link>,
    began: Instant,
    /// When it was last tried to run the link here.
    tried: Instant,
    /// What the process that runs the link has noted.
    notes: BTreeMap<String, String>,
    health: Health,
    asked: Instant,
    /// What is noted of each stream, and when that was.
    ages: BTreeMap<String, (Ages, Instant)>,
}

/// How the peer is doing.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// For how long nothing was heard although something was sent.
    pub silent_for: Option<Duration>,
    /// Smoothed round-trip time, once there is one.
    pub rtt: Option<Duration>,
}

impl Uplink {
    /// Opens the outbox, or makes it, to append only: what is appended goes out with the process that runs the link,
    /// or with the next.
    pub fn append_only(path: &Path, limit: Option<u64>) -> Outcome<Uplink> {
        let outbox = SqliteOutbox::open(path, &options(limit)).map_err(|e| Failure::store(path, &e))?;
        let now = Instant::now();
        Ok(Uplink {
            path: path.to_path_buf(),
            limit,
            outbox,
            peer: None,
            link: None,
            began: now,
            tried: now,
            notes: BTreeMap::new(),
            health: Health::default(),
            asked: now,
            ages: BTreeMap::new(),
        })
    }

    /// The same, and runs the link as soon as no other process does. The key of this node is in the file `key`.
    pub fn link(path: &Path, limit: Option<u64>, key: PathBuf, peer: &Peer) -> Outcome<Uplink> {
        // Whoever has no key shall not find a new outbox either.
        files::identity(&key)?;
        let mut uplink = Uplink::append_only(path, limit)?;
        uplink.peer = Some((peer.clone(), key));
        if !uplink.start()? {
            let path = path.display();
            remark(format!(
                "another process runs the link of {path} and sends this along; here it is only appended, until that \
                 process ends"
            ));
        }
        Ok(uplink)
    }

    /// Runs the link, unless another process does.
    fn start(&mut self) -> Outcome<bool> {
        let Some((peer, key)) = &self.peer else { return Ok(false) };
        match self.outbox.lock_link() {
            // The link takes it again; whoever is faster has it.
            Ok(lock) => drop(lock),
            Err(LinkLockError::Held { .. }) => return Ok(false),
            Err(error) => return Err(Failure::environment(error)),
        }
        let outbox = stayfast::Outbox::open_with(&self.path, &options(self.limit));
        let outbox = outbox.map_err(|e| Failure::store(&self.path, &e))?;
        match Link::new(files::identity(key)?, outbox).to(&peer.host, &peer.peer.to_string()).spawn() {
            Ok(link) => self.link = Some(link),
            Err(LinkError::Lock(LinkLockError::Held { .. })) => return Ok(false),
            Err(error) => return Err(Failure::environment(error)),
        }
        Ok(true)
    }

    /// Looks now and then what has become of the process that runs the link, and takes its place when it is gone; says
    /// so then.
    pub fn tend(&mut self) -> Outcome<Option<String>> {
        if self.link.is_some() || self.peer.is_none() || self.tried.elapsed() < TRY_EVERY {
            return Ok(None);
        }
        self.tried = Instant::now();
        if self.start()? {
            self.health = Health::default();
            return Ok(Some("the process that ran the link has ended: the link runs here from now on".to_string()));
        }
        self.notes = self.outbox.notes().unwrap_or_default().into_iter().collect();
        self.health.silent_for = self.noted_silence();
        Ok(None)
    }

    /// For how long the peer has not answered the process that runs the link, as that has noted.
    fn noted_silence(&self) -> Option<Duration> {
        let (peer, _) = self.peer.as_ref()?;
        let figures = Figures::parse(self.notes.get(&Figures::key(&peer.host))?)?;
        let silent = match figures.last_heard {
            0 => self.began.elapsed(),
            heard => Duration::from_secs(figures.written.saturating_sub(heard)),
        };
        (figures.in_flight > 0).then_some(silent)
    }

    /// How far each stream of the outbox is known to be stored.
    pub fn stored(&mut self) -> Outcome<BTreeMap<String, u64>> {
        let tails = self.outbox.tails().map_err(|e| Failure::store(&self.path, &e))?;
        Ok(tails.iter().map(|tail| (tail.stream.to_string(), tail.trimmed.0)).collect())
    }

    /// Numbers whose records were found damaged when they were to be sent, of those that were not `stored`.
    pub fn gaps(&mut self, stored: &BTreeMap<String, u64>) -> Outcome<BTreeMap<String, Gaps>> {
        let notes = self.outbox.notes().map_err(|e| Failure::store(&self.path, &e))?;
        let all = Gaps::all(notes.iter().map(|(key, text)| (key, text)));
        let since = all.into_iter().map(|(stream, gaps)| {
            let first = stored.get(&stream).copied().unwrap_or(0);
            (stream, gaps.since(first))
        });
        Ok(since.filter(|(_, gaps)| gaps.count() > 0).collect())
    }

    /// Does the link run in this process?
    pub fn runs_link(&self) -> bool {
        self.link.is_some()
    }

    /// Appends records to a stream. They are durable when this returns; the number after the last.
    pub fn append(&mut self, stream: &str, records: &[&[u8]]) -> Result<u64, AppendError> {
        let next = match &self.link {
            None => self.outbox.append(stream, records)?.end().0,
            Some(link) => match link.put_many(stream, records) {
                Ok(receipt) => receipt.number().0 + receipt.count(),
                Err(PutError::Append(error)) => return Err(error),
                Err(other) => return Err(StoreError::Io(other.to_string()).into()),
            },
        };
        self.note_age(stream, next);
        Ok(next)
    }

    /// Keeps for `stayfast status` when records were put. It is a hint: without it nothing is wrong.
    fn note_age(&mut self, stream: &str, next: u64) {
        let now = Instant::now();
        if self.ages.get(stream).is_some_and(|(_, noted)| now - *noted < NOTE_EVERY) {
            return;
        }
        let key = Ages::key(stream);
        let (mut ages, _) = self.ages.remove(stream).unwrap_or_else(|| {
            let notes = self.outbox.notes().unwrap_or_default();
            let known = notes.iter().find(|(name, _)| *name == key);
            (known.map_or_else(Ages::default, |(_, text)| Ages::parse(text)), now)
        });
        let stored = self.tail(stream).map_or(0, |(stored, _)| stored);
        ages.add(next, Ages::now(), stored);
        drop(self.outbox.note(&key, &ages.to_string()));
        self.ages.insert(stream.to_string(), (ages, now));
    }

    /// First record of `stream` not known to be stored, and first number not given to a record.
    pub fn tail(&mut self, stream: &str) -> Outcome<(u64, u64)> {
        let tails = self.outbox.tails().map_err(|e| Failure::store(&self.path, &e))?;
        let found = tails.iter().find(|tail| *tail.stream == *stream);
        Ok(found.map_or((0, 0), |tail| (tail.trimmed.0, tail.next.0)))
    }

    /// Why `stream` cannot go on without a person, if so; from another process's link, as it was a moment ago.
    pub fn trouble(&self, stream: &str) -> Option<String> {
        let trouble = match &self.link {
            Some(link) => link.progress(stream).trouble?.to_string(),
            None => self.notes.get(&Figures::trouble_key(stream)).filter(|text| !text.is_empty())?.clone(),
        };
        Some(format!("stream '{stream}' stands still: {trouble}"))
    }

    /// How the peer is doing, or was a moment ago.
    pub fn health(&mut self) -> &Health {
        if let Some(link) = self.link.as_ref().filter(|_| self.asked.elapsed() >= ASK_EVERY) {
            self.asked = Instant::now();
            let status = link.status();
            let heard = status.last_heard.unwrap_or(Duration::MAX);
            self.health = Health {
                silent_for: status.waiting.map(|waiting| waiting.min(heard)),
                rtt: status.last_heard.map(|_| status.link.rtt),
            };
        }
        &self.health
    }
}

fn options(limit: Option<u64>) -> Options {
    let outbox_bytes = limit.unwrap_or(Limits::default().outbox_bytes);
    Options { limits: Limits { outbox_bytes, ..Limits::default() }, ..Options::default() }
}
