//! quinn on its own driver, with tokio.

use super::Task;
use super::board::{Board, Cutter, Sampler, Trouble};
use super::execute::Ends;
use crate::peers::Kind;
use crate::peers::quinn::sample;
use quinn::congestion::BbrConfig;
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt};
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
    let (client, server) = configs(kind)?;
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

fn configs(kind: Kind) -> Result<(ClientConfig, ServerConfig), Trouble> {
    let mut transport = TransportConfig::default();
    transport.enable_segmentation_offload(false);
    transport.stream_receive_window(VarInt::from_u32(WINDOW)).receive_window(VarInt::from_u32(WINDOW));
    transport.send_window(u64::from(WINDOW));
    match kind {
        Kind::QuinnWide => {
            transport.packet_threshold(1_000).time_threshold(2.0);
        }
        Kind::QuinnBbr => {
            transport.congestion_controller_factory(Arc::new(BbrConfig::default()));
        }
        _ => {}
    }
    let transport = Arc::new(transport);
    let certificate = rcgen::generate_simple_self_signed(vec!["hub".into()])?;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certificate.signing_key.serialize_der());
    let mut server = ServerConfig::with_single_cert(vec![certificate.cert.der().clone()], key.into())?;
    server.transport_config(transport.clone());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.cert.der().clone())?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(transport);
    Ok((client, server))
}
