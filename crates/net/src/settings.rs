use stayfast_link::Config;
use stayfast_seal::PublicKey;
use stayfast_store::Outbox;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// How a driver behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen, one socket each. `[::]` serves IPv4 and IPv6. By default `[::]` and any free port (where a
    /// machine has no IPv6, `0.0.0.0`).
    pub bind: Vec<SocketAddr>,
    /// What the protocol machines may use.
    pub config: Config,
    /// Let the kernel cut a batch into datagrams where it can.
    pub segmentation: bool,
    /// Who stores what arrives.
    pub deliveries: Deliveries,
    /// How long an idle outbox goes without a look whether another process has appended.
    pub watch_outbox: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            bind: vec![SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))],
            config: Config::default(),
            segmentation: true,
            deliveries: Deliveries::Application,
            watch_outbox: Duration::from_millis(250),
        }
    }
}

/// Who stores what arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deliveries {
    /// The application, with the cursor in its own transaction: see [`Handle::next_delivery`](crate::Handle::next_delivery).
    #[default]
    Application,
    /// The inbox itself, by [`Inbox::deliver`](stayfast_store::Inbox::deliver).
    Inbox,
}

/// A peer, and what it is to us.
pub struct PeerSpec {
    /// The name under which our stores know it.
    pub name: Arc<str>,
    /// Its public keys: records are sent to the first, packets are taken from all.
    pub keys: Vec<PublicKey>,
    /// A secret that both ends were given besides their keys.
    pub psk: Option<[u8; 32]>,
    /// Where to find it, such as `hub.example:4711` or `[2001:db8::1]:4711`. None if it will write first.
    pub hosts: Vec<String>,
    /// What is sent to it.
    pub outbox: Option<Box<dyn Outbox>>,
    /// Patterns of the streams it may send; `None`: nothing is taken from it.
    pub allow: Option<Vec<String>>,
}

impl PeerSpec {
    /// A peer that is neither sent to nor heard, yet.
    pub fn new(name: impl Into<Arc<str>>, key: PublicKey) -> PeerSpec {
        PeerSpec { name: name.into(), keys: vec![key], psk: None, hosts: Vec::new(), outbox: None, allow: None }
    }
}
