use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

/// Datagrams for one destination, back to back.
#[derive(Clone, Copy, Debug)]
pub struct Datagrams<'a> {
    /// Where to.
    pub to: SocketAddr,
    /// Which of our addresses they come from; `None`: the kernel chooses.
    pub from: Option<IpAddr>,
    /// The bytes.
    pub bytes: &'a [u8],
    /// Length of each datagram but the last, which may be shorter.
    pub segment: usize,
    /// The two ECN bits of each.
    pub ecn: u8,
}

/// What one receive call put into one buffer: datagrams of one source, back to back.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Which buffer.
    pub buffer: usize,
    /// Source.
    pub from: SocketAddr,
    /// Which of our addresses they came to, if known.
    pub to: Option<IpAddr>,
    /// Bytes in the buffer.
    pub len: usize,
    /// Length of each datagram but the last, which may be shorter.
    pub segment: usize,
    /// The two ECN bits.
    pub ecn: u8,
    /// The kernel had more bytes than there was room for.
    pub truncated: bool,
}

/// A UDP socket that does not block. The driver uses [`Udp`](crate::Udp); another one may stand between, to inject
/// faults or to count.
pub trait Socket: Send {
    /// Where it is bound.
    fn local_address(&self) -> SocketAddr;

    /// Sends all of `datagrams` or none. More than one only if [`max_segments`](Socket::max_segments) allows it.
    fn send(&mut self, datagrams: &Datagrams<'_>) -> io::Result<()>;

    /// Receives into `buffers`, and tells `each` of every one that was filled. Returns how many were.
    fn receive(&mut self, buffers: &mut [Vec<u8>], each: &mut dyn FnMut(Received)) -> io::Result<usize>;

    /// How many datagrams the kernel takes in one call; may fall to one in mid-life.
    fn max_segments(&self) -> usize;

    /// What to sleep on.
    fn descriptor(&self) -> BorrowedFd<'_>;
}
