//! The same transfer by quinn: one connection, one stream, writes of 64 KiB, a length before each record.

use crate::load::{Failure, Load, Outcome, PATIENCE};
use crate::records::{BATCH, Sink, Source};
use crate::usage::Usage;
use bytes::Bytes;
use quinn::{ClientConfig, Endpoint, EndpointConfig, RecvStream, ServerConfig, TransportConfig, VarInt};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::timeout;

/// As large as the sockets of stayfast.
const KERNEL_BUFFER: usize = 4 << 20;
/// Pieces of the stream taken in one read.
const CHUNKS: usize = 64;
/// Bytes of the length before each record.
const PREFIX: usize = 4;

/// Sends `load`, each end on a thread and a runtime of its own, which is the cheapest way to run quinn. The clocks
/// stop when the receiving application has the last record; a thread tells another so, no packet does.
///
/// # Errors
/// Anything that is not a complete transfer in order.
pub fn run(load: &Load) -> Result<Outcome, Failure> {
    let (load, certificate) = (*load, rcgen::generate_simple_self_signed(vec!["hub".into()])?);
    let key = quinn::rustls::pki_types::PrivatePkcs8KeyDer::from(certificate.signing_key.serialize_der());
    let mut server = ServerConfig::with_single_cert(vec![certificate.cert.der().clone()], key.into())?;
    server.transport_config(transport(&load));
    let mut roots = quinn::rustls::RootCertStore::empty();
    roots.add(certificate.cert.der().clone())?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(transport(&load));

    let socket = socket()?;
    let (to, (told, taken)) = (socket.local_addr()?, watch::channel(0));
    let storing =
        thread::Builder::new().name("bench-storing".into()).spawn(move || store(socket, server, &load, told))?;
    let sent = runtime()?.block_on(send(to, client, &load, taken));
    let (sink, back) = storing.join().map_err(|_| "the storing thread panicked")??;
    let outcome = sent?;
    if sink.taken() != load.total() {
        return Err(format!("{} of {} records arrived", sink.taken(), load.total()).into());
    }
    Ok(Outcome { datagrams: outcome.datagrams + back.datagrams, calls: outcome.calls + back.calls, ..outcome })
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn socket() -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let sizes = socket2::SockRef::from(&socket);
    sizes.set_recv_buffer_size(KERNEL_BUFFER)?;
    sizes.set_send_buffer_size(KERNEL_BUFFER)?;
    Ok(socket)
}

/// quinn's defaults, but full datagrams from the first packet on, and no search for longer ones.
fn transport(load: &Load) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.initial_mtu(load.datagram).min_mtu(load.datagram).mtu_discovery_config(None);
    Arc::new(config)
}

fn endpoint(socket: UdpSocket, server: Option<ServerConfig>) -> std::io::Result<Endpoint> {
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(quinn::TokioRuntime))
}

async fn send(
    to: SocketAddr,
    client: ClientConfig,
    load: &Load,
    mut taken: watch::Receiver<u64>,
) -> Result<Outcome, Failure> {
    let endpoint = endpoint(socket()?, None)?;
    let connection = timeout(PATIENCE, endpoint.connect_with(client, to, "hub")?).await??;
    let mut stream = connection.open_uni().await?;
    let (mut source, mut start) = (Source::new(load.size), None);
    let mut buffer = Vec::with_capacity(2 * BATCH);
    for end in [load.warmup, load.total()] {
        start = Some(Usage::now());
        while source.made() < end {
            buffer.clear();
            for record in source.batch(end) {
                buffer.extend_from_slice(&(record.len() as u32).to_le_bytes());
                buffer.extend_from_slice(record);
            }
            stream.write_all(&buffer).await?;
        }
        timeout(PATIENCE, taken.wait_for(|taken| *taken >= end)).await??;
    }
    let spent = start.map(|start| start.spent()).unwrap_or_default();
    let stats = connection.stats();
    connection.close(VarInt::from_u32(0), b"");
    timeout(PATIENCE, endpoint.wait_idle()).await?;
    Ok(Outcome {
        spent,
        records: load.records,
        bytes: load.records * load.size as u64,
        datagrams: stats.udp_tx.datagrams,
        calls: stats.udp_tx.ios,
        lost: stats.path.lost_packets,
    })
}

/// The receiving application: checks and copies records as they come, and says when the warm-up and the whole are in.
fn store(
    socket: UdpSocket,
    server: ServerConfig,
    load: &Load,
    told: watch::Sender<u64>,
) -> Result<(Sink, Outcome), Failure> {
    runtime()?.block_on(async {
        let endpoint = endpoint(socket, Some(server))?;
        let connection = timeout(PATIENCE, endpoint.accept()).await?.ok_or("the endpoint was closed")?.await?;
        let mut stream = timeout(PATIENCE, connection.accept_uni()).await??;
        let mut parser = Parser { sink: Sink::new(load.size), cut: Vec::new() };
        for end in [load.warmup, load.total()] {
            // One timer for all reads: they are what is measured.
            timeout(4 * PATIENCE, receive(&mut stream, &mut parser, end)).await??;
            told.send_replace(end);
        }
        timeout(PATIENCE, connection.closed()).await?;
        let stats = connection.stats();
        let back = Outcome { datagrams: stats.udp_tx.datagrams, calls: stats.udp_tx.ios, ..Outcome::default() };
        Ok((parser.sink, back))
    })
}

/// Reads until `end` records are in.
async fn receive(stream: &mut RecvStream, parser: &mut Parser, end: u64) -> Result<(), Failure> {
    let mut chunks: [Bytes; CHUNKS] = std::array::from_fn(|_| Bytes::new());
    while parser.sink.taken() < end {
        let count = stream.read_chunks(&mut chunks).await?.ok_or("the stream ended early")?;
        chunks[..count].iter().try_for_each(|chunk| parser.take(chunk))?;
    }
    Ok(())
}

/// Finds the records in the stream.
struct Parser {
    sink: Sink,
    /// The beginning of a record that the last chunk cut.
    cut: Vec<u8>,
}

impl Parser {
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !self.cut.is_empty() {
            let wanted = whole(&self.cut).unwrap_or(PREFIX) - self.cut.len();
            let (head, rest) = bytes.split_at(wanted.min(bytes.len()));
            self.cut.extend_from_slice(head);
            bytes = rest;
            match whole(&self.cut) {
                Some(len) if len == self.cut.len() => {
                    self.sink.take(&self.cut[PREFIX..])?;
                    self.cut.clear();
                }
                _ if bytes.is_empty() => return Ok(()),
                _ => {}
            }
        }
        while let Some((record, rest)) = whole(bytes).and_then(|len| bytes.split_at_checked(len)) {
            self.sink.take(&record[PREFIX..])?;
            bytes = rest;
        }
        self.cut.extend_from_slice(bytes);
        Ok(())
    }
}

/// Bytes of the record at the start, its length included; `None` if that is not there yet.
fn whole(bytes: &[u8]) -> Option<usize> {
    bytes.first_chunk().map(|prefix| PREFIX + u32::from_le_bytes(*prefix) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_wherever_the_stream_is_cut() {
        let (mut source, mut wire) = (Source::new(20), Vec::new());
        for record in source.batch(50) {
            wire.extend_from_slice(&20_u32.to_le_bytes());
            wire.extend_from_slice(record);
        }
        for piece in 1..60 {
            let mut parser = Parser { sink: Sink::new(20), cut: Vec::new() };
            wire.chunks(piece).for_each(|chunk| parser.take(chunk).unwrap());
            assert_eq!(parser.sink.taken(), 50, "pieces of {piece}");
        }
    }
}
