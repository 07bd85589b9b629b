use crate::Ecn;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// Bytes that the link layer adds to each packet: an Ethernet header.
pub const ETHERNET: u64 = 14;

/// A UDP datagram on its way.
///
/// ```
/// use stayfast_sim::Datagram;
///
/// let datagram = Datagram::new("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap(), vec![0; 1_472]);
/// assert_eq!(datagram.wire_size(), 1_514);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Where it came from. A world sets it to the sending node's address.
    pub from: SocketAddr,
    /// Where it goes.
    pub to: SocketAddr,
    /// The ECN bits of its IP header.
    pub ecn: Ecn,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Index of the world's route it travels on.
    pub(crate) route: u32,
    /// Paths of that route it has been put on.
    pub(crate) hops: u32,
    /// Its headers are among the bytes.
    pub(crate) whole: bool,
}

impl Datagram {
    /// A datagram without ECN.
    pub const fn new(from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) -> Datagram {
        Datagram { from, to, ecn: Ecn::NotEct, bytes, route: 0, hops: 0, whole: false }
    }

    /// A whole IP packet, of whatever transport: its headers are among `bytes`, and nothing is added to their number.
    ///
    /// ```
    /// use stayfast_sim::Datagram;
    ///
    /// let packet = Datagram::packet("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap(), vec![0; 1_500]);
    /// assert_eq!((packet.packet_size(), packet.wire_size()), (1_500, 1_514));
    /// ```
    pub const fn packet(from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) -> Datagram {
        let mut packet = Datagram::new(from, to, bytes);
        packet.whole = true;
        packet
    }

    /// An empty datagram from nowhere to nowhere around `bytes`.
    pub(crate) fn blank(bytes: Vec<u8>) -> Datagram {
        const NOWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        Datagram::new(NOWHERE, NOWHERE, bytes)
    }

    /// Bytes it takes on the wire: the IP packet and Ethernet.
    pub const fn wire_size(&self) -> u64 {
        self.packet_size() + ETHERNET
    }

    /// Bytes of the IP packet: contents, UDP, IP (20 B or 40 B, by the address it goes to).
    pub const fn packet_size(&self) -> u64 {
        let udp_ip = match self.whole {
            true => 0,
            false if self.to.is_ipv6() => 48,
            false => 28,
        };
        self.bytes.len() as u64 + udp_ip
    }
}

/// Buffers that wait to be used again, so that a datagram needs no allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool(Vec<Vec<u8>>);

impl Pool {
    /// More buffers than this are given back to the allocator.
    const MAX: usize = 1 << 16;
    /// Room in a new buffer: enough for every datagram that is not a fragment, so that it never grows later.
    const ROOM: usize = 2_048;

    /// An empty buffer.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_else(|| Vec::with_capacity(Pool::ROOM))
    }

    /// Keeps a buffer for later.
    pub(crate) fn put(&mut self, mut buffer: Vec<u8>) {
        if self.0.len() < Pool::MAX {
            buffer.clear();
            self.0.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_ip_header_counts() {
        let datagram = Datagram::new("[::1]:1".parse().unwrap(), "[::1]:2".parse().unwrap(), Vec::new());
        assert_eq!(datagram.wire_size(), 62);
        assert_eq!(Datagram::blank(Vec::new()).wire_size(), 42);
    }

    #[test]
    fn a_pool_hands_out_empty_buffers_and_keeps_a_bounded_number() {
        let mut pool = Pool::default();
        pool.put(alloc::vec![1, 2, 3]);
        let buffer = pool.take();
        assert!(buffer.is_empty() && buffer.capacity() >= 3);
        for _ in 0..=Pool::MAX {
            pool.put(Vec::new());
        }
        assert_eq!(pool.0.len(), Pool::MAX);
    }
}
