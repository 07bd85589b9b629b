//! Sockets and addresses, with errors that help.

use crate::failure::{Failure, Outcome};
use crate::threads;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, channel};

/// Room asked for in a socket's buffers, bytes; the system may give less.
const BUFFER: usize = 4 << 20;

/// A UDP socket that never blocks.
pub fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A machine that gives less than that still works.
    drop(socket.set_recv_buffer_size(BUFFER));
    drop(socket.set_send_buffer_size(BUFFER));
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Why `address` cannot be bound, and what to do.
pub fn cannot_bind(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::environment(match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("port {} is in use: stop the program that uses it, or choose another port", address.port())
        }
        io::ErrorKind::AddrNotAvailable => format!("{} is not an address of this machine", address.ip()),
        io::ErrorKind::PermissionDenied => {
            format!("no permission to use port {}: take one above 1023", address.port())
        }
        _ => format!("cannot listen on {address}: {error}"),
    })
}

/// Looks up `host:port`; addresses of the family of `like` come first.
pub fn resolve(host: &str, like: SocketAddr) -> Outcome<SocketAddr> {
    let found: Vec<SocketAddr> = host.to_socket_addrs().map_err(|e| cannot_resolve(host, &e))?.collect();
    let alike = found.iter().find(|address| address.is_ipv4() == like.is_ipv4());
    alike.or(found.first()).copied().ok_or_else(|| Failure::environment(format!("'{host}' has no address")))
}

/// Looks `host:port` up on a thread of its own, and says what is wrong if it finds nothing.
pub fn look_up(host: &str) -> Outcome<Receiver<String>> {
    let (found, receiver) = channel();
    let host = host.to_string();
    threads::start(move || {
        if let Err(error) = host.to_socket_addrs() {
            // Whoever asked may be gone.
            drop(found.send(cannot_resolve(&host, &error).to_string()));
        }
    })?;
    Ok(receiver)
}

fn cannot_resolve(host: &str, error: &io::Error) -> Failure {
    Failure::environment(match error.kind() {
        io::ErrorKind::InvalidInput => format!("'{host}' is not HOST:PORT, such as hub.example:4711 or [::1]:4711"),
        _ => format!("the name '{host}' cannot be resolved ({error}): check its spelling and the network"),
    })
}

/// A host and a port, for clap; whether the name means anything is for later.
///
/// # Errors
/// What is missing.
pub fn host_and_port(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Ok(text.to_string())
        }
        _ => Err("expected HOST:PORT, such as hub.example:4711 or [::1]:4711".to_string()),
    }
}
