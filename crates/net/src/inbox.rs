//! The thread of the inbox: cursors, and deliveries if the inbox stores the records itself.

use crate::command::{Answer, Command, NewPeer};
use crate::shared::Shared;
use stayfast_handoff::{Consumer, PopError, Producer};
use stayfast_link::PeerId;
use stayfast_store::{Accepted, Delivery, Inbox, StoreDone, StoreError, StoreOp};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Requests that wait for the store.
pub(crate) const CAPACITY: usize = 4096;
/// Pause before a delivery that the store could not take is tried again; doubled up to a second.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Pause before the cursors of new peers that could not be read are read again.
const BEGIN_AGAIN: Duration = Duration::from_secs(1);

pub(crate) enum InboxRequest {
    Op(PeerId, StoreOp),
    /// Read what a new peer needs to begin, and pass it on.
    Begin(Box<NewPeer>),
    /// Pass on that everything said before is done.
    Settle(Answer<()>),
    /// A hint to keep: where a peer was heard.
    Remember(Arc<str>, SocketAddr),
}

pub(crate) struct InboxThread {
    pub store: Box<dyn Inbox>,
    pub requests: Consumer<InboxRequest>,
    pub commands: Producer<Command>,
    pub shared: Arc<Shared>,
    /// Where peers were heard in earlier runs.
    pub remembered: BTreeMap<String, SocketAddr>,
    /// Peers that cannot begin before their cursors are read; a peer at most once.
    pub late: Vec<NewPeer>,
}

impl InboxThread {
    pub fn run(mut self) {
        loop {
            match self.requests.pop((!self.late.is_empty()).then_some(BEGIN_AGAIN)) {
                Ok(request) => self.serve(request),
                Err(PopError::TimedOut) => std::mem::take(&mut self.late).into_iter().for_each(|new| self.begin(new)),
                Err(PopError::Closed) => return,
            }
        }
    }

    fn serve(&mut self, request: InboxRequest) {
        match request {
            InboxRequest::Op(peer, StoreOp::Deliver(delivery)) => {
                if let Some(command) = self.deliver(peer, delivery) {
                    let _ = self.commands.push(command, None);
                }
            }
            InboxRequest::Op(peer, StoreOp::ReadCursor { key, nonce }) => {
                let read = self.store.cursor(&key);
                let done = match self.watched(read) {
                    Ok(position) => StoreDone::Cursor { key, nonce, position },
                    Err(error) if error.is_lasting() => StoreDone::Poisoned,
                    Err(_) => StoreDone::Failed { key },
                };
                let _ = self.commands.push(Command::Done(peer, done), None);
            }
            // An outbox has a thread of its own.
            InboxRequest::Op(_, StoreOp::Read { .. } | StoreOp::Trim { .. }) => {}
            InboxRequest::Begin(new) => self.begin(*new),
            InboxRequest::Settle(answer) => drop(self.commands.push(Command::Settle(answer), None)),
            InboxRequest::Remember(name, address) => {
                if let Err(error) = self.store.remember_peer(&name, &address.to_string()) {
                    tracing::debug!(%error, %name, "a peer's address could not be kept");
                }
            }
        }
    }

    /// Keeps what the store said where the application sees it. A trouble that lasts stays.
    fn watched<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        self.shared.inbox_trouble.update(|trouble| {
            if !trouble.as_ref().is_some_and(StoreError::is_lasting) {
                *trouble = result.as_ref().err().cloned();
            }
        });
        result
    }

    /// Until it is known what became of it: the store's trouble (a full disk, a busy file) ends some time, and then
    /// the stream goes on by itself. `None` if the driver ends first.
    fn deliver(&mut self, peer: PeerId, delivery: Delivery) -> Option<Command> {
        let (mut pause, level) = (PAUSE, self.store.level());
        loop {
            let delivered = self.store.deliver(&delivery);
            let error = match self.watched(delivered) {
                // Raced, but at its own end: it was done before, and only the answer was lost.
                Ok(Accepted::Raced(at)) if at != delivery.to => return Some(Command::Raced(peer, at, delivery)),
                Ok(_) => {
                    self.shared.delivered(&delivery);
                    let Delivery { key, to, .. } = delivery;
                    return Some(Command::Done(peer, StoreDone::Delivered { key, level, to }));
                }
                Err(error) if error.is_lasting() => {
                    tracing::error!(%error, "the inbox stores nothing more");
                    return Some(Command::Done(peer, StoreDone::Poisoned));
                }
                Err(error) => error,
            };
            tracing::warn!(%error, stream = %delivery.key.stream, "a batch waits for the inbox");
            if self.shared.stopped.wait_until(|stopped| *stopped, Some(pause)).is_ok() {
                return None;
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    fn begin(&mut self, mut new: NewPeer) {
        if let Some(inbound) = &mut new.inbound {
            let cursors = self.store.cursors();
            match self.watched(cursors) {
                Ok(cursors) => inbound.cursors = cursors.into_iter().filter(|c| c.key.sender == new.name).collect(),
                Err(error) => {
                    tracing::error!(%error, peer = %new.name, "the cursors cannot be read, so nothing is taken");
                    if !error.is_lasting() && self.shared.knows(new.peer) {
                        self.late.push(new);
                    }
                    return;
                }
            }
            inbound.level = self.store.level();
            inbound.remembered = self.remembered.get(&*new.name).copied();
        }
        let _ = self.commands.push(Command::Add(Box::new(new)), None);
    }
}
