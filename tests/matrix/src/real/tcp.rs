//! The kernel's TCP.

use super::Task;
use super::board::{Board, Cutter, Sampler, Trouble};
use super::execute::Ends;
use crate::peers::{Kind, Sample};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(15);
/// Bytes taken in one read.
const READ: usize = 64 << 10;

/// What the kernel calls the congestion control; none if the transport is not the kernel's.
fn control(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Tcp => Some("cubic"),
        Kind::TcpBbr => Some("bbr"),
        _ => None,
    }
}

/// Whether this kernel has what the transport needs; to be asked in a namespace.
pub(super) fn is_present(kind: Kind) -> bool {
    control(kind).is_none_or(|_| socket(kind).is_ok())
}

fn socket(kind: Kind) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    // The machine's default may be any.
    control(kind).map_or(Ok(()), |control| socket.set_tcp_congestion(control.as_bytes()))?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

pub(super) fn start(ends: &Ends, kind: Kind, task: &Task, board: &Arc<Board>) -> Result<Sampler, Trouble> {
    let to = SocketAddr::from((ends.right.address(), ends.port));
    let listener = ends.right.within(|| TcpListener::bind(to))??;
    let socket = ends.left.within(|| socket(kind))??;
    let (size, task) = (task.size, task.clone());
    board.spawn("receiver", move |board| {
        let (mut stream, _) = listener.accept()?;
        let (mut cutter, mut buffer) = (Cutter::new(board, size), vec![0; READ]);
        loop {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                len => cutter.take(&buffer[..len])?,
            }
        }
    })?;
    board.spawn("sender", move |board| {
        socket.connect_timeout(&to.into(), CONNECT)?;
        let mut stream = TcpStream::from(socket);
        board.feed(&task, |records| Ok(stream.write_all(&records.concat())?))?;
        // Closed only with the process: the last records are still on their way.
        std::mem::forget(stream);
        Ok(())
    })?;
    Ok(Box::new(Sample::default))
}
