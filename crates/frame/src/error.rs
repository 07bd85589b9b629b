use core::fmt;

/// Why a header or a payload is refused. The whole packet is dropped, in silence, and counted.
///
/// ```
/// use stayfast_frame::{DecodeError, decode};
/// assert_eq!(decode(&[0x3f]).next(), Some(Err(DecodeError::Unknown(0x3f))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// It ends inside a field.
    Truncated,
    /// A field has a value that its frame does not allow.
    Malformed,
    /// More than the bound this end keeps: ACK ranges, the length of a name or of a key message.
    Limit,
    /// A reserved type or bit that this version knows and does not take (REPAIR, RETRY, a token).
    Unsupported,
    /// A frame type that must not be skipped and is not known.
    Unknown(u8),
    /// Another version of the protocol.
    Version(u8),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Truncated => f.write_str("ends inside a field"),
            DecodeError::Malformed => f.write_str("a field is out of range"),
            DecodeError::Limit => f.write_str("over a limit"),
            DecodeError::Unsupported => f.write_str("reserved for a later version"),
            DecodeError::Unknown(ty) => write!(f, "unknown frame type {ty:#04x}"),
            DecodeError::Version(version) => write!(f, "version {version} of the protocol"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// The frame does not fit: not into the room left, or one of its fields not into the wire's range.
/// Nothing was written. If it happens in an empty packet, it will happen in every packet of that size.
///
/// ```
/// use stayfast_frame::{Frame, Full, Writer};
/// assert_eq!(Writer::new(&mut [0; 8]).put(&Frame::PathChallenge([7; 8])), Err(Full));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the frame does not fit")
    }
}

impl core::error::Error for Full {}
