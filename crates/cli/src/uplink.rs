//! The way from an outbox to a peer, as `send` and `put` see it.

use crate::failure::{Failure, Outcome};
use crate::output::remark;
use stayfast_net::{Driver, Handle, PeerRef, PeerSpec, PutError, Settings};
use stayfast_seal::{Identity, PublicKey};
use stayfast_store::{AppendError, Limits, Outbox, StoreError};
use stayfast_store_sqlite::{LinkLock, LinkLockError, Options, SqliteOutbox};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The link is asked for its figures no more often than this.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Whom to send to.
#[derive(Debug, clap::Args)]
pub struct Peer {
    /// Where the receiver listens, as HOST:PORT
    #[arg(value_parser = crate::sockets::host_and_port)]
    pub host: String,
    /// The receiver's public key, as `stayfast pubkey` prints it there
    #[arg(long, value_name = "KEY", value_parser = crate::files::public_key)]
    pub peer: PublicKey,
}

/// An outbox, and a link to its peer unless another process runs that.
pub struct Uplink {
    path: PathBuf,
    outbox: SqliteOutbox,
    link: Option<Link>,
}

struct Link {
    handle: Handle,
    peer: PeerRef,
    health: Health,
    asked: Instant,
    /// Stops when it is dropped.
    _driver: Driver,
    _lock: LinkLock,
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
        Ok(Uplink { path: path.to_path_buf(), outbox: open(path, limit)?, link: None })
    }

    /// The same, and runs the link if no other process does.
    pub fn link(path: &Path, limit: Option<u64>, identity: &Identity, peer: &Peer) -> Outcome<Uplink> {
        let mut uplink = Uplink::append_only(path, limit)?;
        let lock = match uplink.outbox.lock_link() {
            Ok(lock) => lock,
            Err(LinkLockError::Held { .. }) => {
                let path = path.display();
                remark(format!(
                    "another process runs the link of {path} and sends this along; here it is only appended"
                ));
                return Ok(uplink);
            }
            Err(error) => return Err(Failure::environment(error)),
        };
        let spec = PeerSpec {
            hosts: vec![peer.host.clone()],
            outbox: Some(Box::new(open(path, limit)?)),
            ..PeerSpec::new(peer.host.as_str(), peer.peer)
        };
        let driver = Driver::spawn(identity, Settings::default(), vec![spec], None).map_err(Failure::environment)?;
        let handle = driver.handle();
        let peer = handle.find(&peer.host).ok_or_else(|| Failure::failed("the link has ended"))?;
        let (health, asked) = (Health::default(), Instant::now());
        uplink.link = Some(Link { handle, peer, health, asked, _driver: driver, _lock: lock });
        Ok(uplink)
    }

    /// Appends records to a stream. They are durable when this returns; the number after the last.
    pub fn append(&mut self, stream: &str, records: &[&[u8]]) -> Result<u64, AppendError> {
        let appended = match &self.link {
            None => self.outbox.append(stream, records)?,
            Some(link) => link.handle.append(link.peer, stream, records).map_err(|error| match error {
                PutError::Append(error) => error,
                other => StoreError::Io(other.to_string()).into(),
            })?,
        };
        Ok(appended.end().0)
    }

    /// First record of `stream` not known to be stored, and first number not given to a record.
    pub fn tail(&mut self, stream: &str) -> Outcome<(u64, u64)> {
        let tails = self.outbox.tails().map_err(|e| Failure::store(&self.path, &e))?;
        let found = tails.iter().find(|tail| *tail.stream == *stream);
        Ok(found.map_or((0, 0), |tail| (tail.trimmed.0, tail.next.0)))
    }

    /// Why `stream` cannot go on without a person, if so.
    pub fn trouble(&self, stream: &str) -> Option<String> {
        let link = self.link.as_ref()?;
        let trouble = link.handle.stored(link.peer, stream).get().trouble?;
        Some(format!("stream '{stream}' stands still: {trouble}"))
    }

    /// How the peer is doing, or was a moment ago.
    pub fn health(&mut self) -> Health {
        let Some(link) = &mut self.link else { return Health::default() };
        if link.asked.elapsed() >= ASK_EVERY {
            link.asked = Instant::now();
            if let Some(status) = link.handle.status().into_iter().find(|status| status.peer == link.peer) {
                let heard = status.last_heard.unwrap_or(Duration::MAX);
                link.health = Health {
                    silent_for: status.waiting.map(|waiting| waiting.min(heard)),
                    rtt: status.last_heard.map(|_| status.link.rtt),
                };
            }
        }
        link.health.clone()
    }
}

fn open(path: &Path, limit: Option<u64>) -> Outcome<SqliteOutbox> {
    let outbox_bytes = limit.unwrap_or(Limits::default().outbox_bytes);
    let options = Options { limits: Limits { outbox_bytes, ..Limits::default() }, ..Options::default() };
    SqliteOutbox::open(path, &options).map_err(|e| Failure::store(path, &e))
}
