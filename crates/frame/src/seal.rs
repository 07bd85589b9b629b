use crate::{DecodeError, Kind};
use core::fmt;
use core::ops::Range;
use stayfast_units::{PacketNumber, RunId, Time};

/// How the packets of one peer are protected. One value per peer holds all its sessions and the only
/// packet-number counter of this run towards it, which no new key resets: an acknowledged number always
/// means one packet.
///
/// ```
/// use stayfast_frame::{Seal, TAG_LEN, Via};
///
/// /// Puts `payload` into a packet at the front of `buf`; returns the packet's length.
/// fn send(seal: &mut impl Seal, via: Via, payload: &[u8], buf: &mut [u8]) -> Option<usize> {
///     let start = seal.kind(via)?.header_len();
///     let end = start + payload.len();
///     buf.get_mut(start..end)?.copy_from_slice(payload);
///     seal.seal(via, buf.get_mut(..end + TAG_LEN)?).ok()?;
///     Some(end + TAG_LEN)
/// }
/// ```
pub trait Seal {
    /// The kind of packet that `via` produces now, so that the length of its header is known before the payload
    /// is written. `None`: nothing can be sent that way (the session is gone).
    fn kind(&self, via: Via) -> Option<Kind>;

    /// Seals in place. `packet` is room for the header, the payload, and room for the tag; the header is
    /// filled in, and the next packet number is drawn and returned.
    ///
    /// # Errors
    /// The packet must not be sent; see [`SealError`].
    fn seal(&mut self, via: Via, packet: &mut [u8]) -> Result<PacketNumber, SealError>;

    /// Authenticates and opens in place. After an error the bytes of `packet` are undefined and no session
    /// has changed.
    ///
    /// # Errors
    /// The packet is dropped, in silence, and counted; see [`Rejected`].
    fn open(&mut self, now: Time, packet: &mut [u8]) -> Result<Opened, Rejected>;

    /// The number that the next call of `seal` draws.
    fn next_number(&self) -> PacketNumber;

    /// The newest session that a bound packet has proven.
    fn current(&self) -> Option<SessionId>;

    /// Own receiver indices that are valid now, at most 6: for whoever finds the peer of a datagram. They change
    /// only inside `open`, when [`Opened::indices_changed`] says so, and in `seal` via [`Via::Init`].
    fn indices(&self) -> impl Iterator<Item = u32> + '_;

    /// The static tag in the INITs that the peer sends to this end.
    fn tag(&self) -> [u8; 8];
}

/// Where random bytes come from. What it gave once it must never give again, whatever is restored or replayed.
///
/// ```
/// use stayfast_frame::Entropy;
///
/// fn index(entropy: &mut dyn Entropy) -> u32 {
///     let mut bytes = [0; 4];
///     entropy.fill(&mut bytes);
///     u32::from_be_bytes(bytes)
/// }
/// ```
pub trait Entropy {
    /// Fills `bytes` with unpredictable bytes.
    fn fill(&mut self, bytes: &mut [u8]);
}

/// One session, by a number that only this run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// Which keys a packet is sealed with.
///
/// ```
/// use stayfast_frame::{Seal, Via};
///
/// /// The best way to the peer: its current session, if there is one.
/// fn via(seal: &impl Seal) -> Via {
///     seal.current().map_or(Via::Init, Via::Session)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Via {
    /// The first message of this run to the peer: always possible, unbound.
    Init,
    /// An answered session: REPLY until the peer has proven it, then DATA.
    Session(SessionId),
}

/// An authentic packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its number.
    pub number: PacketNumber,
    /// The session it came in.
    pub session: SessionId,
    /// The run of the end that sent it.
    pub run: RunId,
    /// Its kind.
    pub kind: Kind,
    /// Whether it is bound to this run. If not, it may be a replay: only idempotent frames count
    /// ([`Frame::allowed_unbound`](crate::Frame::allowed_unbound)).
    pub bound: bool,
    /// Whether it made its session the current one.
    pub newly_current: bool,
    /// Whether [`Seal::indices`] is another set than before.
    pub indices_changed: bool,
    /// Where the payload stands in the packet.
    pub payload: Range<usize>,
}

/// Why a packet cannot be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// The session is gone: choose another way to send.
    NoSession,
    /// All 2^62 packet numbers of this run are used: the process must restart.
    Exhausted,
    /// The packet is shorter than header and tag.
    TooShort,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SealError::NoSession => "no such session",
            SealError::Exhausted => "packet numbers are used up",
            SealError::TooShort => "shorter than header and tag",
        })
    }
}

impl core::error::Error for SealError {}

/// Why a packet was dropped. The peer is never told; each reason has a counter.
///
/// ```
/// use stayfast_frame::{DecodeError, Rejected};
/// assert_eq!(Rejected::from(DecodeError::Truncated).name(), "malformed");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rejected {
    /// An INIT with a tag of no peer.
    Tag,
    /// A receiver index that is not in use.
    Index,
    /// The MAC under the pair key is wrong.
    Mac,
    /// The payload or a handshake message is not authentic.
    Aead,
    /// This packet was opened before, or is older than what can be told apart.
    Replay,
    /// Header or frames break docs/wire.md.
    Malformed,
    /// A limit of this end is reached.
    Limit,
}

impl Rejected {
    /// All reasons, in the order of their counters: `reason as usize` is the place of one.
    pub const ALL: [Rejected; 7] = [
        Rejected::Tag,
        Rejected::Index,
        Rejected::Mac,
        Rejected::Aead,
        Rejected::Replay,
        Rejected::Malformed,
        Rejected::Limit,
    ];

    /// Its name in counters and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Rejected::Tag => "unknown tag",
            Rejected::Index => "unknown index",
            Rejected::Mac => "mac",
            Rejected::Aead => "aead",
            Rejected::Replay => "replay",
            Rejected::Malformed => "malformed",
            Rejected::Limit => "limit",
        }
    }
}

impl From<DecodeError> for Rejected {
    fn from(error: DecodeError) -> Rejected {
        match error {
            DecodeError::Limit => Rejected::Limit,
            _ => Rejected::Malformed,
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for Rejected {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_stands_at_its_own_place() {
        for (place, reason) in Rejected::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
        }
    }
}
