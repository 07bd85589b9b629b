//! How large packets are: the search for the path's MTU (docs/pmtud.md), asked and told.

use crate::carried::Carried;
use crate::config::Config;
use crate::ecn::NOT_ECT;
use crate::peer::Peer;
use crate::transmit::{Purpose, Transmit};
use core::net::{IpAddr, SocketAddr};
use stayfast_congestion::{Controller, Cubic};
use stayfast_frame::{Frame, Seal, TAG_LEN, Via, Writer};
use stayfast_pmtud::{MAX_IPV4, MAX_IPV6, Search};
use stayfast_units::Time;

/// A search for a path that begins.
pub(crate) fn search(config: &Config, now: Time, to: Option<SocketAddr>) -> Search {
    Search::new(now, config.datagram, largest(config, to))
}

/// The largest datagram that goes into a packet of this family.
pub(crate) fn largest(config: &Config, to: Option<SocketAddr>) -> u16 {
    match to.map(|to| to.ip().to_canonical()) {
        Some(IpAddr::V6(_)) => config.max_datagram.saturating_sub(MAX_IPV4 - MAX_IPV6),
        _ => config.max_datagram,
    }
}

/// Control of a path that begins. The first flight has the bytes of ten of the datagrams that are looked for, as TCP's has
/// of its segments, though the datagrams are smaller until the search has been answered.
pub(crate) fn controller(config: &Config, now: Time, to: Option<SocketAddr>) -> Cubic {
    Cubic::new(largest(config, to).max(config.datagram), now)
}

impl<S: Seal> Peer<S> {
    /// The search may have come to another size: pacer and controller count in full packets.
    pub(crate) fn resized(&mut self) {
        self.pacer.set_max_datagram(self.search.limit());
        self.congestion.set_max_datagram(self.search.size());
    }

    /// Writes a probe of the path's size, if one is due, in place of the data that may leave now. It is alone in its
    /// transmit, because the kernel cuts a batch into equal parts, and carries nothing that could be missed.
    pub(crate) fn size_probe(&mut self, now: Time, peer: crate::PeerId, buf: &mut [u8]) -> Option<Transmit> {
        // Whoever has no more than fits a packet needs no larger one.
        let size = self.search.probe(now).filter(|_| self.backlogged)?;
        let (Purpose::Data, via @ Via::Session(_), to) = self.next_purpose(now)? else { return None };
        let room = buf.get_mut(..usize::from(size)).filter(|_| self.path.is_validated(to))?;
        let header = self.seal.kind(via)?.header_len();
        let mut w = Writer::new(room.get_mut(header..usize::from(size) - TAG_LEN)?);
        w.put(&Frame::Ping).ok()?;
        w.put(&Frame::ImmediateAck).ok()?;
        w.pad_to(usize::MAX);
        let number = self.seal.seal(via, room).ok()?;
        self.packets_sent += 1;
        self.account(now, Purpose::SizeProbe, number, room.len(), Some(Carried::new(false)));
        let (len, segment) = (room.len(), room.len());
        Some(Transmit { peer, to, len, segment, first: number.0, last: number.0, ecn: NOT_ECT })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_ipv6_leaves_less() {
        let of = |max_datagram, to: &str| {
            largest(&Config { max_datagram, ..Config::default() }, Some(to.parse().expect("an address")))
        };
        assert_eq!(of(1_472, "192.0.2.1:1"), 1_472);
        assert_eq!(of(1_472, "[2001:db8::1]:1"), 1_452);
        assert_eq!(of(1_472, "[::ffff:192.0.2.1]:1"), 1_472, "that is IPv4");
        assert_eq!((of(8_972, "[2001:db8::1]:1"), of(0, "[2001:db8::1]:1")), (8_952, 0));
    }
}
