//! The way from an outbox to a peer, as `send` and `put` see it.

use crate::ages::Ages;
use crate::failure::{Failure, Outcome};
use crate::output::remark;
use stayfast::{
    AppendError, Identity, Limits, Link, LinkError, LinkLockError, Options, PublicKey, PutError, StoreError,
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

/// Whom to send to.
#[derive(Debug, clap::Args)]
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
    outbox: SqliteOutbox,
    link: Option<Link>,
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
        let (health, asked) = (Health::default(), Instant::now());
        Ok(Uplink { path: path.to_path_buf(), outbox, link: None, health, asked, ages: BTreeMap::new() })
    }

    /// The same, and runs the link if no other process does.
    pub fn link(path: &Path, limit: Option<u64>, identity: Identity, peer: &Peer) -> Outcome<Uplink> {
        let mut uplink = Uplink::append_only(path, limit)?;
        let outbox = stayfast::Outbox::open_with(path, &options(limit)).map_err(|e| Failure::store(path, &e))?;
        match Link::new(identity, outbox).to(&peer.host, &peer.peer.to_string()).spawn() {
            Ok(link) => uplink.link = Some(link),
            Err(LinkError::Lock(LinkLockError::Held { .. })) => {
                let path = path.display();
                remark(format!(
                    "another process runs the link of {path} and sends this along; here it is only appended"
                ));
            }
            Err(error) => return Err(Failure::environment(error)),
        }
        Ok(uplink)
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

    /// Why `stream` cannot go on without a person, if so.
    pub fn trouble(&self, stream: &str) -> Option<String> {
        let trouble = self.link.as_ref()?.progress(stream).trouble?;
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
