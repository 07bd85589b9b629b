//! The thread that looks names up: that may take long, and nothing else may wait for it.

use crate::command::Command;
use crate::shared::PeerRef;
use stayfast_handoff::{Consumer, PopError, Producer};
use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Names that wait to be looked up.
pub(crate) const CAPACITY: usize = 4096;
/// Pause after a look-up that found nothing; doubled up to half a minute.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Look up where a peer is.
pub(crate) struct Resolve {
    pub peer: PeerRef,
    pub hosts: Vec<String>,
}

struct Again {
    at: Instant,
    pause: Duration,
    hosts: Vec<String>,
}

/// Runs until the queue or the driver ends.
pub(crate) fn run(mut requests: Consumer<Resolve>, commands: &Producer<Command>) {
    let mut again: BTreeMap<PeerRef, Again> = BTreeMap::new();
    loop {
        let next = again.values().map(|again| again.at).min();
        match requests.pop(next.map(|at| at.saturating_duration_since(Instant::now()))) {
            Ok(Resolve { peer, hosts }) => {
                // Asked for while it fails anyway: its turn comes.
                again.entry(peer).or_insert(Again { at: Instant::now(), pause: PAUSE, hosts });
            }
            Err(PopError::TimedOut) => {}
            Err(PopError::Closed) => return,
        }
        let due: Vec<PeerRef> = again.iter().filter(|(_, a)| a.at <= Instant::now()).map(|(peer, _)| *peer).collect();
        for peer in due {
            let Some(Again { pause, hosts, .. }) = again.remove(&peer) else { continue };
            let found = look_up(&hosts);
            if found.is_empty() {
                let next = Again { at: Instant::now() + pause, pause: (2 * pause).min(LONGEST_PAUSE), hosts };
                again.insert(peer, next);
            } else if commands.push(Command::Addresses(peer, found), None).is_err() {
                return;
            }
        }
    }
}

/// All addresses of all names, IPv6 and IPv4, each once.
pub(crate) fn look_up(hosts: &[String]) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for host in hosts {
        match host.to_socket_addrs() {
            Ok(addresses) => {
                for address in addresses {
                    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
                    if !found.contains(&address) {
                        found.push(address);
                    }
                }
            }
            Err(error) => tracing::warn!(%host, %error, "the name cannot be looked up now; it is tried again"),
        }
    }
    found
}
