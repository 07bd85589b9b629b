use crate::authorized::Keeper;
use crate::batch::Batch;
use crate::error::{AuthorizedError, BindError, Stopped};
use crate::{Authorized, Cursors, Identity};
use stayfast_handoff::Watch;
use stayfast_net::{Counters, Driver, Handle, Missing, PeerSpec, PeerStatus, Settings, StartError};
use stayfast_store::{Level, StoreError};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Takes records of authorized senders, in order for each stream of each sender.
///
/// Dropping it loses nothing: what was not stored is sent again. See the [crate's example](crate).
pub struct Inbox {
    handle: Handle,
    driver: Driver,
    level: Level,
    /// What is wrong with the list of authorized keys since it was last read.
    list: Arc<Watch<Vec<AuthorizedError>>>,
}

impl Inbox {
    /// Listens at an address with a port; `[::]` takes IPv4 and IPv6 on all addresses of the machine. Nobody is
    /// authorized yet.
    ///
    /// # Errors
    /// Not an address, a port in use, cursors that cannot be read.
    pub fn bind(address: &str, identity: Identity, cursors: Cursors) -> Result<Inbox, BindError> {
        let address: SocketAddr = address.trim().parse().map_err(|_| BindError::Address(address.to_string()))?;
        Ok(Inbox::spawn(Settings { bind: vec![address], ..Settings::default() }, identity, cursors)?)
    }

    /// The same, with several addresses or other limits. Who stores is up to `cursors`.
    ///
    /// # Errors
    /// An address that cannot be bound, cursors that cannot be read.
    pub fn spawn(settings: Settings, identity: Identity, cursors: Cursors) -> Result<Inbox, StartError> {
        let Cursors { store, level, deliveries } = cursors;
        let settings = Settings { deliveries, ..settings };
        let driver = Driver::spawn(&identity.0, settings, Vec::new(), Some(store))?;
        Ok(Inbox { handle: driver.handle(), driver, level, list: Arc::new(Watch::new(Vec::new())) })
    }

    /// Authorizes the senders in a file (its lines: [`Authorized`]), now and whenever the file changes. A line that is
    /// not understood then lets nobody in, and the others count; if the file cannot be read, the list stays as it was.
    /// [`list_troubles`](Inbox::list_troubles) says so.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not understood, now.
    pub fn authorized(self, path: impl AsRef<Path>) -> Result<Inbox, AuthorizedError> {
        Keeper::start(path.as_ref(), self.handle.clone(), self.list.clone())?;
        Ok(self)
    }

    /// Authorizes one sender, for as long as this inbox runs.
    ///
    /// # Errors
    /// The inbox was stopped.
    pub fn allow(self, sender: &Authorized) -> Result<Inbox, StartError> {
        self.handle.add_peer(sender.spec())?;
        self.handle.settle();
        Ok(self)
    }

    /// Authorizes one sender that shares a secret with us besides the keys.
    ///
    /// # Errors
    /// The inbox was stopped.
    pub fn allow_with_psk(self, sender: &Authorized, psk: [u8; 32]) -> Result<Inbox, StartError> {
        self.handle.add_peer(PeerSpec { psk: Some(psk), ..sender.spec() })?;
        self.handle.settle();
        Ok(self)
    }

    /// Waits for the next batch. Batches of different streams may be in several hands at once; of one stream the next
    /// comes when the one before is settled.
    ///
    /// # Errors
    /// The inbox was stopped.
    #[allow(clippy::should_implement_trait, reason = "an iterator would hide the error")]
    pub fn next(&mut self) -> Result<Batch, Stopped> {
        self.wait(None).ok_or(Stopped)
    }

    /// Waits for the next batch, but not for ever. `Ok(None)`: none came in time.
    ///
    /// # Errors
    /// The inbox was stopped.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Batch>, Stopped> {
        match self.wait(Some(timeout)) {
            None if self.handle.is_stopped() => Err(Stopped),
            batch => Ok(batch),
        }
    }

    fn wait(&self, timeout: Option<Duration>) -> Option<Batch> {
        Some(Batch { pending: self.handle.next_delivery(timeout)?, level: self.level })
    }

    /// What was stored as missing since the last call, if the inbox keeps the records itself
    /// ([`Cursors::keep_records`]); otherwise the batches say it.
    pub fn take_missing(&self) -> Vec<Missing> {
        self.handle.take_missing()
    }

    /// Why records that arrive are not stored, or senders not let in, if the cursors' store is the reason. It ends by
    /// itself when the store works again, unless it is [lasting](StoreError::is_lasting).
    pub fn trouble(&self) -> Option<StoreError> {
        self.handle.inbox_trouble()
    }

    /// What is wrong with the list of authorized keys as it is now; empty if nothing.
    pub fn list_troubles(&self) -> Vec<AuthorizedError> {
        self.list.get()
    }

    /// Where it listens.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        self.driver.local_addresses()
    }

    /// How all senders are doing.
    pub fn status(&self) -> Vec<PeerStatus> {
        self.handle.status()
    }

    /// What the sockets have seen.
    pub fn counters(&self) -> Counters {
        self.handle.counters()
    }
}
