use crate::error::{LinkError, PutError};
use crate::receipt::Receipt;
use crate::{Identity, Outbox};
use stayfast_net::{Counters, Driver, Handle, PeerSpec, PeerStatus, Progress, Settings};
use stayfast_seal::{KeyError, PublicKey};
use stayfast_store_sqlite::LinkLock;
use std::net::SocketAddr;
use std::sync::Arc;

/// A running link from an outbox to one receiver. Share it by reference or in an `Arc`: all calls take `&self`.
///
/// Dropping it loses nothing: what was put stays in the outbox, and the next link sends it.
///
/// ```
/// use std::time::Duration;
/// use stayfast::{Identity, Link, Outbox};
///
/// # let dir = tempfile::tempdir()?;
/// # let hub = Identity::generate()?.public().to_string();
/// let link = Link::new(Identity::generate()?, Outbox::open(dir.path().join("edge.db"))?)
///     .to("192.0.2.1:4711", &hub)                        // not there now: that does not matter
///     .spawn()?;
/// let receipt = link.put("orders", b"order 1")?;         // durable
/// assert!(receipt.stored(Duration::ZERO).is_err());      // not stored over there yet
/// assert_eq!(link.status().link.streams[0].next.0, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Link {
    handle: Handle,
    peer: stayfast_net::PeerRef,
    /// The process that started it.
    process: u32,
    local: Vec<SocketAddr>,
    name: Arc<str>,
    _driver: Driver,
    /// Given up after the driver has ended.
    _lock: Option<LinkLock>,
}

/// A link that is not started yet.
#[must_use = "a link begins with `.spawn()`"]
pub struct LinkBuilder {
    identity: Identity,
    outbox: Outbox,
    peer: Option<(String, Result<PublicKey, KeyError>)>,
    more_hosts: Vec<String>,
    name: Option<Arc<str>>,
    psk: Option<[u8; 32]>,
    settings: Settings,
}

impl Link {
    /// A link from an outbox, which is not started yet: say where [`to`](LinkBuilder::to), then
    /// [`spawn`](LinkBuilder::spawn).
    #[allow(clippy::new_ret_no_self, reason = "a link has an address before it is one")]
    pub fn new(identity: Identity, outbox: Outbox) -> LinkBuilder {
        let settings = Settings::default();
        LinkBuilder { identity, outbox, peer: None, more_hosts: Vec::new(), name: None, psk: None, settings }
    }

    /// Puts a record into a stream. It is durable when this returns, whatever the network does.
    ///
    /// # Errors
    /// The record is too large, the outbox is full, the disk is; nothing was put then.
    pub fn put(&self, stream: &str, record: impl AsRef<[u8]>) -> Result<Receipt, PutError> {
        self.put_all(stream, &[record.as_ref()])
    }

    /// Puts records into a stream, all or none, with one sync.
    ///
    /// # Errors
    /// As [`put`](Link::put).
    pub fn put_many<R: AsRef<[u8]>>(
        &self,
        stream: &str,
        records: impl IntoIterator<Item = R>,
    ) -> Result<Receipt, PutError> {
        let records: Vec<R> = records.into_iter().collect();
        let records: Vec<&[u8]> = records.iter().map(AsRef::as_ref).collect();
        self.put_all(stream, &records)
    }

    fn put_all(&self, stream: &str, records: &[&[u8]]) -> Result<Receipt, PutError> {
        if std::process::id() != self.process {
            return Err(PutError::Forked);
        }
        let appended = self.handle.append(self.peer, stream, records).map_err(|error| match error {
            stayfast_net::PutError::Append(error) => PutError::Append(error),
            stayfast_net::PutError::NoOutbox | stayfast_net::PutError::Stopped => PutError::Stopped,
        })?;
        let progress = self.handle.stored(self.peer, stream);
        Ok(Receipt { stream: stream.into(), first: appended.first, end: appended.end(), progress })
    }

    /// How far a stream has come, and why it stands still if it does.
    pub fn progress(&self, stream: &str) -> Progress {
        self.handle.stored(self.peer, stream).get()
    }

    /// How the link is doing: when the receiver was last heard, what is not stored there yet, round-trip time.
    pub fn status(&self) -> PeerStatus {
        let all = self.handle.status();
        let link = stayfast_link::Status::default();
        let unknown = PeerStatus { peer: self.peer, name: self.name.clone(), last_heard: None, waiting: None, link };
        all.into_iter().find(|status| status.peer == self.peer).unwrap_or(unknown)
    }

    /// What the sockets have seen.
    pub fn counters(&self) -> Counters {
        self.handle.counters()
    }

    /// Where its sockets are bound.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.local
    }
}

impl LinkBuilder {
    /// The receiver: where it listens, `HOST:PORT`, and its public key. The name is looked up when the link starts and
    /// again whenever nobody answers; nothing is dialled.
    pub fn to(mut self, host: impl Into<String>, key: &str) -> LinkBuilder {
        self.peer = Some((host.into(), key.trim().parse()));
        self
    }

    /// Another way to the same receiver.
    pub fn or_to(mut self, host: impl Into<String>) -> LinkBuilder {
        self.more_hosts.push(host.into());
        self
    }

    /// What the receiver is called in status figures and logs; its address, unless said.
    pub fn named(mut self, name: &str) -> LinkBuilder {
        self.name = Some(name.into());
        self
    }

    /// A secret that both ends were given besides their keys. It also guards what is recorded today against quantum
    /// computers.
    pub fn psk(mut self, psk: [u8; 32]) -> LinkBuilder {
        self.psk = Some(psk);
        self
    }

    /// Where to bind, and limits.
    pub fn settings(mut self, settings: Settings) -> LinkBuilder {
        self.settings = settings;
        self
    }

    /// Starts the link. It goes on with what the outbox holds.
    ///
    /// # Errors
    /// No peer, a bad key, another process that runs the link of this outbox, a socket or store that cannot be used.
    pub fn spawn(self) -> Result<Link, LinkError> {
        let (host, key) = self.peer.ok_or(LinkError::NoPeer)?;
        let key = key?;
        let (lock, outbox) = self.outbox.into_link()?;
        let name = self.name.unwrap_or_else(|| host.as_str().into());
        let mut hosts = vec![host];
        hosts.extend(self.more_hosts);
        let spec = PeerSpec { hosts, psk: self.psk, outbox: Some(outbox), ..PeerSpec::new(name.clone(), key) };
        let driver = Driver::spawn(&self.identity.0, self.settings, Vec::new(), None)?;
        let handle = driver.handle();
        let peer = handle.add_peer(spec)?;
        let local = driver.local_addresses().to_vec();
        Ok(Link { handle, peer, process: std::process::id(), local, name, _driver: driver, _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let hub = Identity::generate().unwrap().public().to_string();
        let outbox = Outbox::open(dir.path().join("edge.db")).unwrap();
        let link = Link::new(Identity::generate().unwrap(), outbox).to("127.0.0.1:9", &hub).spawn();
        let mut link = link.unwrap();
        link.put("s", b"x").unwrap();
        // As it looks from a child.
        link.process += 1;
        assert_eq!(link.put("s", b"x").err(), Some(PutError::Forked));
    }
}
