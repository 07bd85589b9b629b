use super::{Flow, Kind, Place, Sample};
use crate::plan::Cell;
use bytes::{Bytes, BytesMut};
use quinn_proto::congestion::BbrConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionStats, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    ServerConfig, StreamId, TransportConfig,
};
use stayfast_sim::{Datagram, Ecn, Handle, Node, NodeId, Poll, World};
use stayfast_units::Time;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// quinn's state machine, the released one: a client that writes records into one stream and a server that reads.
pub struct Quinn {
    client: Handle<Machine>,
    server: Handle<Machine>,
}

/// Segments asked for at once, as quinn's driver does.
const SEGMENTS: usize = 10;
/// What the application writes, so many bytes at a time.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

impl Quinn {
    /// Connects as soon as the world runs; `records` wait to be sent.
    pub fn new(place: &mut Place<'_>, cell: &Cell, records: u64, kind: Kind) -> Quinn {
        let address = |end| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 1, place.flow, end)), 4433);
        let (client_config, server_config) = configs(transport(kind));
        let mut server = Machine::new(place.seed, 2, cell.size, Some(server_config));
        let mut client = Machine::new(place.seed, 1, cell.size, None);
        let now = client.instant(place.world.now());
        let connected = client.endpoint.connect(now, client_config, address(2), "hub");
        let (handle, connection) = connected.expect("a valid name and address");
        client.connection = Some((handle, Box::new(connection)));
        client.unsent = records * cell.size as u64;
        server.base = client.base;
        let client = place.world.add(&format!("quinn {} client", place.flow), address(1), client);
        let server = place.world.add(&format!("quinn {} server", place.flow), address(2), server);
        place.world.route(client, server, place.there);
        place.world.route(server, client, place.back);
        Quinn { client, server }
    }
}

/// What makes the kinds of quinn different.
pub(crate) fn transport(kind: Kind) -> TransportConfig {
    let mut transport = TransportConfig::default();
    match kind {
        Kind::QuinnWide => {
            transport.packet_threshold(1_000).time_threshold(2.0);
        }
        Kind::QuinnBbr => {
            transport.congestion_controller_factory(Arc::new(BbrConfig::default()));
        }
        _ => {}
    }
    transport
}

/// A client and a server that know each other.
pub(crate) fn configs(transport: TransportConfig) -> (ClientConfig, ServerConfig) {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("ring makes keys");
    let params = rcgen::CertificateParams::new(vec!["hub".into()]).expect("a valid name");
    let certificate = params.self_signed(&key).expect("a valid certificate");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).expect("a certificate just made");
    let transport = Arc::new(transport);
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).expect("a root is there");
    client.transport_config(transport.clone());
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let mut server =
        ServerConfig::with_single_cert(vec![certificate.der().clone()], key).expect("they belong together");
    server.transport_config(transport);
    (client, server)
}

/// One end.
struct Machine {
    endpoint: Endpoint,
    /// Boxed, because it is large and taken out each time it is served.
    connection: Option<(ConnectionHandle, Box<Connection>)>,
    is_client: bool,
    /// The simulator's zero.
    base: Instant,
    stream: Option<StreamId>,
    /// Bytes that the application has not written yet.
    unsent: u64,
    /// Bytes read.
    read: u64,
    size: u64,
    taken: Vec<(Time, u64)>,
    out: VecDeque<Packet>,
    buf: Vec<u8>,
}

struct Packet {
    to: SocketAddr,
    ecn: Ecn,
    bytes: Vec<u8>,
}

impl Machine {
    fn new(seed: u64, end: u8, size: usize, server: Option<ServerConfig>) -> Machine {
        let mut rng = [end; 32];
        rng[..8].copy_from_slice(&seed.to_le_bytes());
        Machine {
            endpoint: Endpoint::new(Arc::default(), server.map(Arc::new), true, Some(rng)),
            connection: None,
            is_client: end == 1,
            base: Instant::now(),
            stream: None,
            unsent: 0,
            read: 0,
            size: size as u64,
            taken: Vec::new(),
            out: VecDeque::new(),
            buf: Vec::new(),
        }
    }

    fn instant(&self, now: Time) -> Instant {
        self.base + Duration::from_nanos(now.as_nanos())
    }

    /// Lets the connection do all it can at this moment.
    fn serve(&mut self, now: Time) {
        let at = self.instant(now);
        let Some((handle, mut connection)) = self.connection.take() else { return };
        if connection.poll_timeout().is_some_and(|due| due <= at) {
            connection.handle_timeout(at);
        }
        while connection.poll().is_some() {}
        match self.is_client {
            true => self.write(&mut connection),
            false => self.read(now, &mut connection),
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(transmit) = connection.poll_transmit(at, SEGMENTS, &mut self.buf) {
            let mut buf = std::mem::take(&mut self.buf);
            self.queue(transmit.destination, transmit.ecn, &buf[..transmit.size], transmit.segment_size);
            buf.clear();
            self.buf = buf;
        }
        self.connection = Some((handle, connection));
    }

    fn write(&mut self, connection: &mut Connection) {
        if self.unsent == 0 || connection.is_handshaking() {
            return;
        }
        if self.stream.is_none() {
            self.stream = connection.streams().open(Dir::Uni);
        }
        let Some(id) = self.stream else { return };
        while self.unsent > 0 {
            let some = &ZEROS[..self.unsent.min(ZEROS.len() as u64) as usize];
            let Ok(written) = connection.send_stream(id).write_chunks(&mut [Bytes::from_static(some)]) else { return };
            self.unsent -= written.bytes as u64;
        }
    }

    fn read(&mut self, now: Time, connection: &mut Connection) {
        if self.stream.is_none() {
            self.stream = connection.streams().accept(Dir::Uni);
        }
        let Some(id) = self.stream else { return };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let before = self.read / self.size;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.read += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize();
        if self.read / self.size > before {
            self.taken.push((now, self.read / self.size));
        }
    }

    fn queue(&mut self, to: SocketAddr, ecn: Option<EcnCodepoint>, bytes: &[u8], segment: Option<usize>) {
        for bytes in bytes.chunks(segment.unwrap_or(bytes.len()).max(1)) {
            self.out.push_back(Packet {
                to,
                ecn: Ecn::from_bits(ecn.map_or(0, |ecn| ecn as u8)),
                bytes: bytes.to_vec(),
            });
        }
    }
}

impl Node for Machine {
    fn handle(&mut self, now: Time, datagram: &mut Datagram) {
        let (at, mut buf) = (self.instant(now), Vec::new());
        let data = BytesMut::from(&datagram.bytes[..]);
        let ecn = EcnCodepoint::from_bits(datagram.ecn.bits());
        match self.endpoint.handle(at, datagram.from, None, ecn, data, &mut buf) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, at, &mut buf, None).ok();
                self.connection = accepted.map(|(handle, connection)| (handle, Box::new(connection)));
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.queue(transmit.destination, transmit.ecn, &buf[..transmit.size], transmit.segment_size);
            }
            None => {}
        }
    }

    fn poll(&mut self, now: Time, out: &mut Datagram) -> Poll {
        if self.out.is_empty() {
            self.serve(now);
        }
        if let Some(packet) = self.out.pop_front() {
            (out.to, out.ecn) = (packet.to, packet.ecn);
            out.bytes.extend_from_slice(&packet.bytes);
            return Poll::Transmit;
        }
        let due = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        due.map_or(Poll::Idle, |due| Poll::WakeAt(Time::from_nanos((due - self.base).as_nanos() as u64)))
    }
}

impl Flow for Quinn {
    fn offer(&mut self, world: &mut World, records: u64) {
        if let Some(client) = world.node_mut(self.client) {
            client.unsent += records * client.size;
        }
    }

    fn taken(&self, world: &World) -> u64 {
        self.log(world).last().map_or(0, |(_, taken)| *taken)
    }

    fn log<'a>(&self, world: &'a World) -> &'a [(Time, u64)] {
        world.node(self.server).map_or(&[], |server| &server.taken)
    }

    fn sender(&self) -> NodeId {
        self.client.id()
    }

    fn sample(&self, world: &World) -> Sample {
        let connection = world.node(self.client).and_then(|client| client.connection.as_ref());
        connection.map(|(_, connection)| sample(connection.stats())).unwrap_or_default()
    }
}

/// What quinn tells of a connection, simulated or not.
pub(crate) fn sample(stats: ConnectionStats) -> Sample {
    let path = stats.path;
    Sample {
        window: path.cwnd,
        rtt_us: path.rtt.as_micros() as u64,
        lost: path.lost_packets,
        episodes: path.congestion_events,
        resent: path.lost_bytes,
        ..Sample::default()
    }
}
