use crate::clock::between;
use crate::shared::PeerRef;
use stayfast_frame::Rejected;
use stayfast_link::{Ecn, Status, StreamStatus};
use stayfast_units::Time;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How a peer is doing.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// Which.
    pub peer: PeerRef,
    /// Its name.
    pub name: Arc<str>,
    /// How long ago the last authentic packet came; `None` if none came in this run.
    pub last_heard: Option<Duration>,
    /// How long the oldest unanswered packet has waited, if one does.
    pub waiting: Option<Duration>,
    /// The machine's figures. Its times are those of the driver's own clock.
    pub link: Status,
}

impl PeerStatus {
    pub(crate) fn new(now: Time, peer: PeerRef, name: Arc<str>, link: Status) -> PeerStatus {
        let ago = |at: Option<Time>| at.map(|at| between(at, now));
        PeerStatus { peer, name, last_heard: ago(link.last_heard), waiting: ago(link.waiting_since), link }
    }
}

/// What the sockets have seen since the driver was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams sent.
    pub sent: u64,
    /// Calls of the kernel for them.
    pub send_calls: u64,
    /// Datagrams received.
    pub received: u64,
    /// Calls of the kernel for them that brought something.
    pub receive_calls: u64,
    /// Datagrams that were cut because a buffer was too short.
    pub truncated: u64,
    /// Times that the kernel had no room, and a batch waited.
    pub waited: u64,
    /// Datagrams that the kernel had no room for, for so long that their contents went again later, in others.
    pub returned: u64,
    /// Batches that the kernel did not want to cut itself, and that went one datagram at a time.
    pub unsegmented: u64,
    /// Sends that the kernel refused because of their ECN bits, and that went without.
    pub unmarked: u64,
    /// Errors of sends, one destination's trouble each; its datagrams count as lost on the way.
    pub send_errors: u64,
    /// Errors of receives; such as a peer's port being closed, which is no reason to stop.
    pub receive_errors: u64,
    /// Times the link thread woke.
    pub wakes: u64,
    /// Datagrams dropped, by reason; see [`Rejected`].
    pub rejected: [u64; Rejected::ALL.len()],
}

/// The figures of a link that its outbox keeps as a hint, so that they can be read without the link.
///
/// ```
/// use stayfast_net::Figures;
/// let figures = Figures { rtt_us: 12_000, ecn: stayfast_net::Ecn::InUse, ..Figures::default() };
/// assert_eq!(Figures::parse(&figures.to_string()), Some(figures));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// When they were written, seconds since 1970 by this machine's clock, whatever that is worth.
    pub written: u64,
    /// When the last packet came, likewise; 0 if none.
    pub last_heard: u64,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u64,
    /// Congestion window, bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Of those, late.
    pub late: u64,
    /// Congestion episodes that were undone.
    pub undos: u64,
    /// Body bytes sent again.
    pub resent: u64,
    /// Whether packets are marked for ECN.
    pub ecn: Ecn,
    /// Packets that arrived with a mark of congestion.
    pub marks: u64,
    /// Where the peer is reached.
    pub address: Option<SocketAddr>,
}

/// How each is written in a hint.
const ECN: [(Ecn, &str); 3] = [(Ecn::Untested, "untested"), (Ecn::InUse, "in-use"), (Ecn::Unusable, "unusable")];

impl Figures {
    /// Under which key of the outbox's hints the figures of a peer stand.
    pub fn key(peer: &str) -> String {
        format!("link/{peer}")
    }

    /// Under which key the number of heard records of a stream stands, in decimal.
    pub fn heard_key(stream: &str) -> String {
        format!("heard/{stream}")
    }

    /// Under which key it stands why a stream stands still, in words; empty if it does not any more.
    pub fn trouble_key(stream: &str) -> String {
        format!("trouble/{stream}")
    }

    pub(crate) fn of(now: Time, status: &Status) -> Figures {
        let written = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let ago = |at: Time| between(at, now).as_secs();
        Figures {
            written,
            last_heard: status.last_heard.map_or(0, |at| written.saturating_sub(ago(at))),
            rtt_us: status.rtt.as_micros() as u64,
            window: status.window,
            in_flight: status.in_flight,
            packets: status.packets_sent,
            lost: status.lost,
            late: status.late,
            undos: status.undos,
            resent: status.bytes_resent,
            ecn: status.ecn,
            marks: status.marks,
            address: status.address,
        }
    }

    /// Whether the link has done anything between two notes.
    pub(crate) fn same_but_for_time(&self, other: &Figures) -> bool {
        Figures { written: 0, last_heard: 0, ..self.clone() } == Figures { written: 0, last_heard: 0, ..other.clone() }
    }

    /// Reads what `Display` writes; unknown fields of later versions are skipped.
    pub fn parse(text: &str) -> Option<Figures> {
        let mut figures = Figures::default();
        for field in text.split_ascii_whitespace() {
            let (key, value) = field.split_once('=')?;
            if key == "address" {
                figures.address = value.parse().ok();
            } else if key == "ecn" {
                figures.ecn = ECN.into_iter().find(|(_, word)| *word == value).map_or(Ecn::Untested, |(ecn, _)| ecn);
            } else if let Some((_, number)) = figures.numbers().into_iter().find(|(name, _)| *name == key) {
                *number = value.parse().ok()?;
            }
        }
        Some(figures)
    }

    fn numbers(&mut self) -> [(&'static str, &mut u64); 11] {
        [
            ("written", &mut self.written),
            ("last_heard", &mut self.last_heard),
            ("rtt_us", &mut self.rtt_us),
            ("window", &mut self.window),
            ("in_flight", &mut self.in_flight),
            ("packets", &mut self.packets),
            ("lost", &mut self.lost),
            ("late", &mut self.late),
            ("undos", &mut self.undos),
            ("resent", &mut self.resent),
            ("marks", &mut self.marks),
        ]
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        for (key, number) in self.clone().numbers() {
            write!(text, "{key}={number} ")?;
        }
        if let Some((_, word)) = ECN.into_iter().find(|(ecn, _)| *ecn == self.ecn) {
            write!(text, "ecn={word} ")?;
        }
        if let Some(address) = self.address {
            write!(text, "address={address}")?;
        }
        f.write_str(text.trim_end())
    }
}

/// What changed in a stream that a hint is kept of.
pub(crate) fn heard_note(stream: &StreamStatus) -> (String, String) {
    (Figures::heard_key(&stream.name), stream.heard.0.to_string())
}
