use crate::bell::Bell;
use crate::chores;
use crate::clock::Clock;
use crate::command::Command;
use crate::entropy::{has_aes, random};
use crate::error::StartError;
use crate::handle::Handle;
use crate::inbox::{self, InboxThread};
use crate::run::{Keys, LinkThread};
use crate::sending::Sockets;
use crate::settings::{PeerSpec, Settings};
use crate::shared::Shared;
use crate::socket::Socket;
use crate::udp::Udp;
use stayfast_handoff::{Consumer, Producer, queue};
use stayfast_link::Node;
use stayfast_seal::Identity;
use stayfast_store::Inbox;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// What other threads may have told the link thread before they wait.
const COMMANDS: usize = 4096;

/// A running node: its sockets, its clock and its threads. See the [crate's example](crate).
///
/// Dropping it stops the threads. Nothing is lost: what was durable stays in the stores, and the next driver goes on
/// from there.
pub struct Driver {
    handle: Handle,
    local: Vec<SocketAddr>,
    link: Option<JoinHandle<()>>,
    inbox: Option<JoinHandle<()>>,
    /// The process that has the threads.
    process: u32,
}

impl Driver {
    /// Binds sockets and starts. `inbox` is needed to take anything from a peer.
    ///
    /// # Errors
    /// An address that cannot be bound, a store that cannot be read.
    pub fn spawn(
        identity: &Identity,
        settings: Settings,
        peers: Vec<PeerSpec>,
        inbox: Option<Box<dyn Inbox>>,
    ) -> Result<Driver, StartError> {
        let mut sockets: Vec<Box<dyn Socket>> = Vec::new();
        for address in &settings.bind {
            sockets.push(Box::new(Udp::bind(*address)?));
        }
        Driver::spawn_on(sockets, identity, settings, peers, inbox)
    }

    /// As [`spawn`](Driver::spawn), on sockets that are there; [`Settings::bind`] is not looked at.
    ///
    /// # Errors
    /// See [`spawn`](Driver::spawn).
    pub fn spawn_on(
        sockets: Vec<Box<dyn Socket>>,
        identity: &Identity,
        settings: Settings,
        peers: Vec<PeerSpec>,
        inbox: Option<Box<dyn Inbox>>,
    ) -> Result<Driver, StartError> {
        let local: Vec<SocketAddr> = sockets.iter().map(|socket| socket.local_address()).collect();
        let first = *local.first().ok_or(StartError::NoAddress)?;
        let bell = Bell::new().map_err(|e| StartError::Socket { address: first, what: e.to_string() })?;
        let shared = Arc::new(Shared::new(bell));
        let ring = shared.clone();
        let (commands, command_queue) = queue(COMMANDS, move || ring.bell.ring());
        let (chores, chore_queue) = queue(chores::CAPACITY, || {});
        let inbox = inbox.map(|store| start_inbox(store, &shared, &commands)).transpose()?;
        let (inbox, inbox_thread) = inbox.unzip();
        let resolved = commands.clone();
        // Not joined: a look-up may take long, and nothing depends on it any more then.
        start("stayfast-names", move || chores::run(chore_queue, &resolved))?;
        let handle = Handle { shared, commands, inbox, chores, watch_outbox: settings.watch_outbox };
        let driver =
            Driver { handle: handle.clone(), local, link: None, inbox: inbox_thread, process: std::process::id() };
        let driver = driver.start_link(sockets, identity, &settings, command_queue)?;
        for peer in peers {
            handle.add_peer(peer)?;
        }
        handle.settle();
        Ok(driver)
    }

    fn start_link(
        mut self,
        sockets: Vec<Box<dyn Socket>>,
        identity: &Identity,
        settings: &Settings,
        commands: Consumer<Command>,
    ) -> Result<Driver, StartError> {
        let keys = Keys {
            identity: Identity::from_text(&identity.to_text()).map_err(|e| StartError::Entropy(e.to_string()))?,
            aes: has_aes(),
        };
        let node = Node::new(settings.config.clone(), random()?);
        let sockets = Sockets::new(sockets, settings.segmentation);
        let link = LinkThread::new(Clock::start(), node, keys, sockets, commands, self.handle.clone(), settings);
        self.link = Some(start("stayfast-link", move || link.run())?);
        Ok(self)
    }

    /// Where the sockets are bound: the ports, if any port was asked for.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.local
    }

    /// What the application uses.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // A fork has no threads to wait for, and must not stop those of its parent.
        if std::process::id() != self.process {
            return;
        }
        let _ = self.handle.commands.push(Command::Stop, None);
        // The link thread first: the others have nothing to do then but to finish what they have.
        if let Some(link) = self.link.take() {
            let _ = link.join();
        }
        self.handle.shared.stop();
        self.handle.chores.close();
        if let Some(inbox) = &self.handle.inbox {
            inbox.close();
        }
        if let Some(inbox) = self.inbox.take() {
            let _ = inbox.join();
        }
    }
}

fn start_inbox(
    mut store: Box<dyn Inbox>,
    shared: &Arc<Shared>,
    commands: &Producer<Command>,
) -> Result<(Producer<inbox::InboxRequest>, JoinHandle<()>), StartError> {
    let peers = store.peers()?.into_iter();
    let remembered = peers.filter_map(|(name, address)| Some((name, address.parse().ok()?))).collect();
    let (requests, consumer) = queue(inbox::CAPACITY, || {});
    let (commands, shared) = (commands.clone(), shared.clone());
    let thread = InboxThread { store, requests: consumer, commands, shared, remembered, late: Vec::new() };
    Ok((requests, start("stayfast-inbox", move || thread.run())?))
}

fn start(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StartError> {
    thread::Builder::new().name(name.into()).spawn(body).map_err(|e| StartError::Thread(e.to_string()))
}
