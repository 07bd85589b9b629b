use crate::keys::{Direction, PacketKey};
use crate::replay::Window;
use stayfast_frame::{Kind, SessionId, layout};
use stayfast_units::{RunId, Time};

/// Message 1, as it stands in an INIT. Its first 32 bytes are the ephemeral key.
pub(crate) type Message1 = [u8; layout::init::NOISE.end - layout::init::NOISE.start];
/// Message 2, as it stands in a REPLY.
pub(crate) type Message2 = [u8; layout::reply::NOISE.end - layout::reply::NOISE.start];

/// Keys that both ends share, and the packets that this end opened with them.
pub(crate) struct Session {
    pub id: SessionId,
    /// The receiver index that this end offered.
    pub own_index: u32,
    /// The receiver index that the peer offered.
    pub peer_index: u32,
    /// The peer's run.
    pub run: RunId,
    pub message2: Message2,
    /// The peer's INIT, if that is what began the session.
    pub asked: Option<Asked>,
    pub send: Direction,
    pub receive: Direction,
    pub window: Window,
    /// Whether a bound packet came: the peer lives, and has this session too.
    pub proven: bool,
    /// When it was made.
    pub made: Time,
    /// When a packet was last opened in it.
    pub heard: Time,
}

/// The INIT that a session answers.
pub(crate) struct Asked {
    pub message1: Message1,
    pub key: PacketKey,
    /// High bits of the packet numbers of all INITs with this message 1.
    pub number_high: u32,
    /// Whether the peer is known to have message 2: a DATA packet came.
    pub answered: bool,
}

impl Session {
    pub fn kind(&self) -> Kind {
        if self.asked.as_ref().is_some_and(|asked| !asked.answered) { Kind::Reply } else { Kind::Data }
    }
}
