use crate::error::StartError;
use crate::socket::{Datagrams, Received, Socket};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, SockAddr, Type};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes the kernel may hold for us in each direction, if it grants them: 4 MiB is 30 ms at 1 Gbit/s.
const KERNEL_BUFFER: usize = 4 << 20;

/// A socket of the operating system, with segmentation offload, batched receives and ECN where there are any.
pub struct Udp {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    meta: [RecvMeta; BATCH_SIZE],
}

impl Udp {
    /// Binds to `address`. `[::]` takes IPv4 too, and stands for `0.0.0.0` on a machine without IPv6.
    ///
    /// # Errors
    /// A [`StartError`] that says what to do about the address.
    pub fn bind(address: SocketAddr) -> Result<Udp, StartError> {
        let any = address.is_ipv6() && address.ip().is_unspecified();
        match Udp::open(address) {
            Err(e) if any && is_without_ipv6(&e) => {
                let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
                Udp::open(v4).map_err(|e| StartError::bind(v4, &e))
            }
            result => result.map_err(|e| StartError::bind(address, &e)),
        }
    }

    fn open(address: SocketAddr) -> io::Result<Udp> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(!address.ip().is_unspecified())?;
        }
        // As much as the system's limits give; less works, with more loss at high rates.
        let _ = socket.set_recv_buffer_size(KERNEL_BUFFER);
        let _ = socket.set_send_buffer_size(KERNEL_BUFFER);
        socket.bind(&SockAddr::from(address))?;
        let socket = UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Udp { local: socket.local_addr()?, socket, state, meta: [RecvMeta::default(); BATCH_SIZE] })
    }
}

/// The kernel has no IPv6, or has it switched off.
fn is_without_ipv6(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    errno.is_some_and(|e| e == rustix::io::Errno::AFNOSUPPORT || e == rustix::io::Errno::ADDRNOTAVAIL)
}

/// An IPv6 socket reaches IPv4 by mapped addresses.
fn for_family(local: SocketAddr, to: SocketAddr) -> SocketAddr {
    match to {
        SocketAddr::V4(v4) if local.is_ipv6() => SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port())),
        _ => to,
    }
}

/// A mapped address as the IPv4 address that it is.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

impl Socket for Udp {
    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn send(&mut self, datagrams: &Datagrams<'_>) -> io::Result<()> {
        let transmit = Transmit {
            destination: for_family(self.local, datagrams.to),
            ecn: EcnCodepoint::from_bits(datagrams.ecn),
            contents: datagrams.bytes,
            segment_size: (datagrams.segment < datagrams.bytes.len()).then_some(datagrams.segment),
            src_ip: datagrams.from,
        };
        self.state.try_send((&self.socket).into(), &transmit)
    }

    fn receive(&mut self, buffers: &mut [Vec<u8>], each: &mut dyn FnMut(Received)) -> io::Result<usize> {
        let max = buffers.len().min(BATCH_SIZE);
        let room = buffers.iter().map(Vec::len).next().unwrap_or(0);
        let mut slices: Vec<IoSliceMut<'_>> = buffers[..max].iter_mut().map(|b| IoSliceMut::new(b)).collect();
        let count = self.state.recv((&self.socket).into(), &mut slices, &mut self.meta[..max])?;
        for (buffer, meta) in self.meta[..count].iter().enumerate() {
            each(Received {
                buffer,
                from: canonical(meta.addr),
                to: meta.dst_ip.map(|ip| own_address(self.local, ip)),
                len: meta.len.min(room),
                segment: meta.stride,
                ecn: meta.ecn.map_or(0, |ecn| ecn as u8),
                // The kernel does not say it in this call; but no datagram is as long as a buffer.
                truncated: meta.len >= room,
            });
        }
        Ok(count)
    }

    fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The form in which this socket names one of our addresses as a source.
fn own_address(local: SocketAddr, ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        // Sent by the IPv4 control message even from an IPv6 socket.
        v4 @ IpAddr::V4(_) => v4,
        v6 if local.is_ipv6() => v6,
        other => other,
    }
}
