use crate::{DecodeError, layout};

/// Length of the tag that authenticates a packet, at its end.
pub const TAG_LEN: usize = 16;

/// The kinds of packet that carry frames.
///
/// ```
/// use stayfast_frame::Kind;
/// assert_eq!([Kind::Init, Kind::Reply, Kind::Data].map(Kind::overhead), [141, 101, 25]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// First contact: carries the first handshake message, and frames at once. Can be replayed: *unbound*.
    Init,
    /// Answers an INIT: carries the second handshake message. Bound to both runs.
    Reply,
    /// Everything after that. Bound to both runs.
    Data,
}

impl Kind {
    /// Bytes before the payload.
    pub const fn header_len(self) -> usize {
        match self {
            Kind::Init => layout::init::LEN,
            Kind::Reply => layout::reply::LEN,
            Kind::Data => layout::data::LEN,
        }
    }

    /// Bytes around the payload: header and tag. No packet is shorter.
    pub const fn overhead(self) -> usize {
        self.header_len() + TAG_LEN
    }
}

/// What a datagram says about where it belongs. Nothing here is authenticated: it may choose which keys
/// are tried, and nothing else.
///
/// ```
/// use stayfast_frame::{DecodeError, Header};
///
/// let mut datagram = [0; 25];
/// datagram[..5].copy_from_slice(&[0x81, 0, 0, 0, 9]);
/// assert_eq!(Header::parse(&datagram), Ok(Header::Data { index: 9 }));
/// assert_eq!(Header::parse(&datagram[..24]), Err(DecodeError::Truncated));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// First contact.
    Init {
        /// Static per pair and direction: which peer it comes from.
        tag: [u8; 8],
        /// The receiver index that the sender offers for answers.
        own_index: u32,
    },
    /// The answer to an INIT.
    Reply {
        /// The index that the INIT offered.
        index: u32,
        /// The receiver index that the sender offers.
        own_index: u32,
    },
    /// All other traffic.
    Data {
        /// The index that the receiver offered.
        index: u32,
    },
}

impl Header {
    /// Reads type, version and addressing fields, and checks that the datagram can hold header and tag.
    ///
    /// # Errors
    /// `Truncated` if it is too short for its type, `Version` if it is of another version, `Unsupported` for
    /// RETRY or with the token bit set.
    pub fn parse(datagram: &[u8]) -> Result<Header, DecodeError> {
        let kind = layout::kind(*datagram.first().ok_or(DecodeError::Truncated)?)?;
        if datagram.len() < kind.overhead() {
            return Err(DecodeError::Truncated);
        }
        let header = match kind {
            Kind::Init => layout::read(datagram, layout::init::TAG).and_then(|tag| {
                Some(Header::Init { tag, own_index: layout::read_u32(datagram, layout::init::OWN_INDEX)? })
            }),
            Kind::Reply => layout::read_u32(datagram, layout::reply::INDEX).and_then(|index| {
                Some(Header::Reply { index, own_index: layout::read_u32(datagram, layout::reply::OWN_INDEX)? })
            }),
            Kind::Data => layout::read_u32(datagram, layout::data::INDEX).map(|index| Header::Data { index }),
        };
        header.ok_or(DecodeError::Truncated)
    }

    /// The kind of packet.
    pub const fn kind(&self) -> Kind {
        match self {
            Header::Init { .. } => Kind::Init,
            Header::Reply { .. } => Kind::Reply,
            Header::Data { .. } => Kind::Data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 3] = [Kind::Init, Kind::Reply, Kind::Data];

    #[test]
    fn the_shortest_packet_of_each_kind() {
        for kind in KINDS {
            let mut datagram = [0; 141];
            datagram[0] = layout::first_byte(kind, true);
            assert_eq!(Header::parse(&datagram[..kind.overhead()]).map(|h| h.kind()), Ok(kind));
            assert_eq!(Header::parse(&datagram[..kind.overhead() - 1]), Err(DecodeError::Truncated));
        }
        assert_eq!(Header::parse(&[]), Err(DecodeError::Truncated));
    }

    #[test]
    fn every_first_byte_is_taken_or_refused_for_its_reason() {
        for byte in 0..=255 {
            let mut datagram = [0; 200];
            datagram[0] = byte;
            let expected = match (byte & 0x0f, byte >> 6, byte & 0x10) {
                (1, 0..=2, 0) => Ok(KINDS[usize::from(byte >> 6)]),
                (1, ..) => Err(DecodeError::Unsupported),
                (version, ..) => Err(DecodeError::Version(version)),
            };
            assert_eq!(Header::parse(&datagram).map(|h| h.kind()), expected, "{byte:#04x}");
        }
    }
}
