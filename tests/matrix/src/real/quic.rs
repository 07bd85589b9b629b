//! quinn on its own driver, with tokio.

use super::Task;
use super::board::{Board, Cutter, Sampler, Trouble};
use super::execute::Ends;
use crate::peers::Kind;
use crate::peers::quinn::{configs, sample, transport};
use quinn::{Connection, Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;

/// Of the sockets in the kernel, and of flow control: nothing but congestion control is to limit it.
const KERNEL_BUFFER: usize = 4 << 20;
const WINDOW: u32 = 32 << 20;

pub(super) fn start(ends: &Ends, kind: Kind, task: &Task, board: &Arc<Board>) -> Result<Sampler, Trouble> {
    let bind = |address| move || socket(SocketAddr::from(address));
    let from = ends.left.within(bind((ends.left.address(), ends.port)))??;
    let to = ends.right.within(bind((ends.right.address(), ends.port)))??;
    let address = to.local_addr()?;
    let (client, server) = configs(generous(kind));
    let (size, task) = (task.size, task.clone());
    board.spawn("receiver", move |board| {
        runtime()?.block_on(async {
            let endpoint = Endpoint::new(EndpointConfig::default(), Some(server), to, Arc::new(TokioRuntime))?;
            let connection = endpoint.accept().await.ok_or("the endpoint was closed")?.await?;
            let mut stream = connection.accept_uni().await?;
            let mut cutter = Cutter::new(board, size);
            while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
                cutter.take(&chunk.bytes)?;
            }
            Ok(())
        })
    })?;
    let connected: Arc<OnceLock<Connection>> = Arc::default();
    let known = connected.clone();
    board.spawn("sender", move |board| {
        let runtime = runtime()?;
        let (endpoint, connection) = runtime.block_on(async {
            let endpoint = Endpoint::new(EndpointConfig::default(), None, from, Arc::new(TokioRuntime))?;
            let connection = endpoint.connect_with(client, address, "hub")?.await?;
            Ok::<_, Trouble>((endpoint, connection))
        })?;
        let mut stream = runtime.block_on(connection.open_uni())?;
        let _ = known.set(connection);
        board.feed(&task, |records| Ok(runtime.block_on(stream.write_all(&records.concat()))?))?;
        // Closed only with the process: the last records are still on their way.
        std::mem::forget((runtime, endpoint, stream));
        Ok(())
    })?;
    Ok(Box::new(move || connected.get().map(|connection| sample(connection.stats())).unwrap_or_default()))
}

/// One thread that moves packets; the application has its own.
fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}

fn socket(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    let sizes = socket2::SockRef::from(&socket);
    sizes.set_recv_buffer_size(KERNEL_BUFFER)?;
    sizes.set_send_buffer_size(KERNEL_BUFFER)?;
    Ok(socket)
}

/// The kind that it is, packet by packet and with room to spare.
fn generous(kind: Kind) -> TransportConfig {
    let mut transport = transport(kind);
    transport.enable_segmentation_offload(false);
    transport.stream_receive_window(VarInt::from_u32(WINDOW)).receive_window(VarInt::from_u32(WINDOW));
    transport.send_window(u64::from(WINDOW));
    transport
}
