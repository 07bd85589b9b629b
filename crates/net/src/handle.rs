use crate::chores::Resolve;
use crate::command::{Answer, Command, NewInbound, NewOutbox, NewPeer};
use crate::error::{PutError, StartError};
use crate::gaps::Gaps;
use crate::inbox::InboxRequest;
use crate::outbox::{self, Append, OutboxRequest, OutboxThread};
use crate::pending::PendingDelivery;
use crate::settings::PeerSpec;
use crate::shared::{Missing, PeerRef, Progress, Shared};
use crate::status::{Counters, Figures, PeerStatus};
use stayfast_handoff::{Producer, WaitError, Watch, queue};
use stayfast_store::{Appended, Level, Outbox, StoreError, Tail};
use stayfast_units::RecordNumber;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long a status is waited for: the link thread never waits for anything itself.
const STATUS_WAIT: Duration = Duration::from_secs(5);

/// How often a wait looks whether there is still somebody to wait for.
const SETTLE_SLICE: Duration = Duration::from_millis(50);

/// What the application does with a running [`Driver`](crate::Driver). Clones are the same handle; each may be used
/// from any thread, and outlives the driver, which then answers nothing.
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) commands: Producer<Command>,
    pub(crate) inbox: Option<Producer<InboxRequest>>,
    pub(crate) chores: Producer<Resolve>,
    pub(crate) watch_outbox: Duration,
}

impl Handle {
    /// Adds a peer. Nothing is dialled: the first packet leaves with the first record.
    ///
    /// # Errors
    /// The outbox cannot be read, no thread can be started for it, or the driver has been stopped.
    pub fn add_peer(&self, spec: PeerSpec) -> Result<PeerRef, StartError> {
        let PeerSpec { name, keys, psk, hosts, outbox, allow } = spec;
        if self.shared.is_stopped() {
            return Err(StartError::Stopped);
        }
        let (peer, outbox) = match outbox {
            Some(store) => self.start_outbox(&name, store)?,
            None => (self.shared.registry.update(|registry| registry.enter(name.clone(), None, &[])), None),
        };
        let inbound =
            allow.map(|allow| NewInbound { allow, cursors: Vec::new(), level: Level::Memory, remembered: None });
        let new = Box::new(NewPeer { peer, name, keys, psk, hosts, outbox, inbound });
        let sent = match &self.inbox {
            Some(inbox) if new.inbound.is_some() => inbox.push(InboxRequest::Begin(new), None).is_ok(),
            _ => self.commands.push(Command::Add(new), None).is_ok(),
        };
        if sent { Ok(peer) } else { Err(StartError::Stopped) }
    }

    fn start_outbox(
        &self,
        name: &Arc<str>,
        mut store: Box<dyn Outbox>,
    ) -> Result<(PeerRef, Option<NewOutbox>), StartError> {
        let (id, tails) = (store.store_id(), store.tails()?);
        let notes = store.notes().unwrap_or_default().into_iter().collect();
        let (gaps, noted_trouble) = (Gaps::all(&notes), noted_trouble(&notes, &tails));
        let (requests, consumer) = queue(outbox::CAPACITY, || {});
        let enter =
            |registry: &mut crate::shared::Registry| registry.enter(name.clone(), Some(requests.clone()), &tails);
        let peer = self.shared.registry.update(enter);
        let thread = OutboxThread {
            peer,
            store,
            requests: consumer,
            commands: self.commands.clone(),
            shared: self.shared.clone(),
            watch_every: self.watch_outbox,
            gaps,
        };
        let thread = thread::Builder::new().name("stayfast-outbox".into()).spawn(move || thread.run());
        let thread = thread.map_err(|e| StartError::Thread(e.to_string()))?;
        Ok((peer, Some(NewOutbox { store: id, tails, requests, thread, noted_trouble })))
    }

    /// Waits until all peers that were added are known to the link thread: from then on no packet of theirs is a
    /// stranger's.
    pub fn settle(&self) {
        let answer: Answer<()> = Arc::new(Watch::new(None));
        let sent = match &self.inbox {
            Some(inbox) => inbox.push(InboxRequest::Settle(answer.clone()), None).is_ok(),
            None => self.commands.push(Command::Settle(answer.clone()), None).is_ok(),
        };
        // In slices, since a driver that is stopped meanwhile answers nothing.
        while sent
            && !self.is_stopped()
            && answer.wait_until(Option::is_some, Some(SETTLE_SLICE)) == Err(WaitError::TimedOut)
        {}
    }

    /// Forgets a peer. What it was to us stays in the stores.
    pub fn remove_peer(&self, peer: PeerRef) {
        self.shared.remove(peer);
        let _ = self.commands.push(Command::Remove(peer), None);
    }

    /// A peer by its name.
    pub fn find(&self, name: &str) -> Option<PeerRef> {
        self.shared
            .registry
            .update(|registry| registry.peers.iter().find(|(_, entry)| &*entry.name == name).map(|(peer, _)| *peer))
    }

    /// Appends records to the outbox of a peer, all or none, and sends them. They are durable when this returns. It
    /// waits for the disk, never for the network; what several threads append meanwhile shares one sync.
    ///
    /// # Errors
    /// [`PutError::Append`] says what the outbox did not like.
    pub fn append(&self, peer: PeerRef, stream: &str, records: &[&[u8]]) -> Result<Appended, PutError> {
        let outbox =
            self.shared.registry.update(|registry| registry.peers.get(&peer).and_then(|entry| entry.outbox.clone()));
        let outbox = match outbox {
            Some(outbox) => outbox,
            None if self.shared.is_stopped() => return Err(PutError::Stopped),
            None => return Err(PutError::NoOutbox),
        };
        let answer: Answer<_> = Arc::new(Watch::new(None));
        let records = records.iter().map(|record| record.to_vec()).collect();
        let append = Append { stream: stream.into(), records, answer: answer.clone() };
        outbox.push(OutboxRequest::Append(append), None).map_err(|_| PutError::Stopped)?;
        match answer.wait_until(Option::is_some, None) {
            Ok(Some(result)) => Ok(result?),
            _ => Err(PutError::Stopped),
        }
    }

    /// Records of `stream` below `next` are durable in the outbox: for whoever appends in a transaction of their own.
    /// Without this call the driver finds them by itself, a moment later.
    pub fn appended(&self, peer: PeerRef, stream: &Arc<str>, next: RecordNumber) {
        self.shared.appended(peer, stream, next);
    }

    /// How far a stream to a peer has come: wait in it for a number.
    pub fn stored(&self, peer: PeerRef, stream: &str) -> Arc<Watch<Progress>> {
        self.shared.progress(peer, stream).unwrap_or_else(|| {
            let gone = Watch::new(Progress::default());
            gone.close();
            Arc::new(gone)
        })
    }

    /// The next batch for the application, in order for each stream of each sender. `None`: none came in time
    /// (without a `timeout`: it is waited for), or the driver has been stopped.
    pub fn next_delivery(&self, timeout: Option<Duration>) -> Option<PendingDelivery> {
        self.shared.deliveries.take(timeout)
    }

    /// What was stored as missing since the last call, if the inbox stores by itself: the first 1,024. Whoever takes
    /// deliveries sees it in them.
    pub fn take_missing(&self) -> Vec<Missing> {
        self.shared.missing.update(std::mem::take)
    }

    /// Why the inbox does not store what arrives, if it does not. It ends by itself when the inbox stores again, unless
    /// it is [lasting](StoreError::is_lasting).
    pub fn inbox_trouble(&self) -> Option<StoreError> {
        self.shared.inbox_trouble.get()
    }

    /// Whether the driver has been stopped.
    pub fn is_stopped(&self) -> bool {
        self.shared.is_stopped()
    }

    /// How all peers are doing. Empty if the driver has been stopped.
    pub fn status(&self) -> Vec<PeerStatus> {
        self.ask().0
    }

    /// What the sockets have seen.
    pub fn counters(&self) -> Counters {
        self.ask().1
    }

    fn ask(&self) -> (Vec<PeerStatus>, Counters) {
        let answer: Answer<_> = Arc::new(Watch::new(None));
        let asked = self.commands.push(Command::Status(answer.clone()), Some(STATUS_WAIT));
        let answered = asked.ok().and_then(|()| answer.wait_until(Option::is_some, Some(STATUS_WAIT)).ok());
        answered.flatten().unwrap_or_default()
    }

    /// Runs `chore` now and then, on a thread of its own, until the driver is stopped or it returns false.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn every(&self, period: Duration, mut chore: impl FnMut() -> bool + Send + 'static) -> Result<(), StartError> {
        let shared = self.shared.clone();
        let body = move || while shared.stopped.wait_until(|stopped| *stopped, Some(period)).is_err() && chore() {};
        let thread = thread::Builder::new().name("stayfast-chore".into()).spawn(body);
        thread.map(drop).map_err(|e| StartError::Thread(e.to_string()))
    }
}

/// What an earlier link has left as the trouble of these streams.
fn noted_trouble(notes: &BTreeMap<String, String>, tails: &[Tail]) -> BTreeMap<Arc<str>, String> {
    let noted = tails.iter().filter_map(|tail| {
        let trouble = notes.get(&Figures::trouble_key(&tail.stream))?;
        Some((tail.stream.clone(), trouble.clone()))
    });
    noted.collect()
}
