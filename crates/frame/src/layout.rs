//! Where the fields of a header stand. For whoever seals and opens packets; everyone else wants
//! [`Header`](crate::Header).
//!
//! Fields are ranges of a packet. Readers and writers return `None` if the packet is too short.
//!
//! ```
//! use stayfast_frame::{Header, Kind, layout};
//!
//! let mut packet = [0; 25];
//! packet[0] = layout::first_byte(Kind::Data, true);
//! layout::write(&mut packet, layout::data::INDEX, &9u32.to_be_bytes()).unwrap();
//! assert_eq!(Header::parse(&packet), Ok(Header::Data { index: 9 }));
//! assert!(layout::has_aes(packet[0]));
//! ```

use crate::{DecodeError, Kind};
use core::ops::Range;

/// The version of the protocol, in bits 3 to 0 of a packet's first byte.
pub const VERSION: u8 = 1;

const AES: u8 = 0x20;
const TOKEN: u8 = 0x10;

/// INIT: first byte, peer tag, own index, number, first Noise message, MAC.
pub mod init {
    use core::ops::Range;

    /// The static tag of this pair and direction.
    pub const TAG: Range<usize> = 1..9;
    /// The receiver index that the sender offers.
    pub const OWN_INDEX: Range<usize> = 9..13;
    /// The low 32 bits of the packet number.
    pub const NUMBER: Range<usize> = 13..17;
    /// The first Noise message: an ephemeral key (32 B), its payload ([`super::noise1`]), a tag (16 B).
    pub const NOISE: Range<usize> = 17..109;
    /// The MAC under the pair key, over all bytes before it.
    pub const MAC: Range<usize> = 109..125;
    /// Bytes before the payload.
    pub const LEN: usize = 125;
}

/// REPLY: first byte, index, own index, number, second Noise message, MAC.
pub mod reply {
    use core::ops::Range;

    /// The receiver index that the INIT offered.
    pub const INDEX: Range<usize> = 1..5;
    /// The receiver index that the sender offers.
    pub const OWN_INDEX: Range<usize> = 5..9;
    /// The low 32 bits of the packet number.
    pub const NUMBER: Range<usize> = 9..13;
    /// The second Noise message: an ephemeral key (32 B), its payload ([`super::noise2`]), a tag (16 B).
    pub const NOISE: Range<usize> = 13..69;
    /// The MAC under the pair key, over all bytes before it; its last 4 bytes also hide the number's high 32 bits.
    pub const MAC: Range<usize> = 69..85;
    /// Bytes before the payload.
    pub const LEN: usize = 85;
}

/// DATA: first byte, index, masked number.
pub mod data {
    use core::ops::Range;

    /// The receiver index that the receiver offered.
    pub const INDEX: Range<usize> = 1..5;
    /// The low 32 bits of the packet number, masked (RFC 9001, section 5.4).
    pub const NUMBER: Range<usize> = 5..9;
    /// The ciphertext that the mask is made from: what follows the header, so at least the tag.
    pub const SAMPLE: Range<usize> = 9..25;
    /// Bytes before the payload.
    pub const LEN: usize = 9;
}

/// The payload inside the first Noise message.
pub mod noise1 {
    use core::ops::Range;

    /// The secret that INIT keys are derived from.
    pub const K_INIT: Range<usize> = 0..32;
    /// The sender's run.
    pub const RUN: Range<usize> = 32..40;
    /// The high 32 bits of the packet numbers of this session's INITs.
    pub const NUMBER_HIGH: Range<usize> = 40..44;
    /// Its length.
    pub const LEN: usize = 44;
}

/// The payload inside the second Noise message.
pub mod noise2 {
    use core::ops::Range;

    /// The sender's run.
    pub const RUN: Range<usize> = 0..8;
    /// Its length.
    pub const LEN: usize = 8;
}

/// The first byte of a packet of this version; `aes`: the sender has AES instructions.
pub const fn first_byte(kind: Kind, aes: bool) -> u8 {
    let ty = match kind {
        Kind::Init => 0,
        Kind::Reply => 1,
        Kind::Data => 2,
    };
    ty << 6 | if aes { AES } else { 0 } | VERSION
}

/// Whether a packet's first byte says that its sender has AES instructions.
pub const fn has_aes(first_byte: u8) -> bool {
    first_byte & AES != 0
}

/// The kind of packet that a first byte announces.
///
/// # Errors
/// `Version` for another version, `Unsupported` for RETRY or with the token bit set.
pub const fn kind(first_byte: u8) -> Result<Kind, DecodeError> {
    // The version comes first: it says what the other bits mean.
    match (first_byte & 0x0f, first_byte >> 6) {
        (VERSION, _) if first_byte & TOKEN != 0 => Err(DecodeError::Unsupported),
        (VERSION, 0) => Ok(Kind::Init),
        (VERSION, 1) => Ok(Kind::Reply),
        (VERSION, 2) => Ok(Kind::Data),
        (VERSION, _) => Err(DecodeError::Unsupported),
        (version, _) => Err(DecodeError::Version(version)),
    }
}

/// Where the low 32 bits of the packet number stand.
pub const fn number(kind: Kind) -> Range<usize> {
    match kind {
        Kind::Init => init::NUMBER,
        Kind::Reply => reply::NUMBER,
        Kind::Data => data::NUMBER,
    }
}

/// The field's bytes. `None` if the packet is too short or the field is not `N` bytes long.
pub fn read<const N: usize>(packet: &[u8], field: Range<usize>) -> Option<[u8; N]> {
    packet.get(field)?.try_into().ok()
}

/// A field of four bytes.
pub fn read_u32(packet: &[u8], field: Range<usize>) -> Option<u32> {
    read(packet, field).map(u32::from_be_bytes)
}

/// A field of eight bytes.
pub fn read_u64(packet: &[u8], field: Range<usize>) -> Option<u64> {
    read(packet, field).map(u64::from_be_bytes)
}

/// Writes the field's bytes. `None`, and nothing written, if the packet is too short or the lengths differ.
#[must_use]
pub fn write(packet: &mut [u8], field: Range<usize>, bytes: &[u8]) -> Option<()> {
    let out = packet.get_mut(field).filter(|out| out.len() == bytes.len())?;
    out.copy_from_slice(bytes);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other_without_a_gap() {
        let headers: [(&[Range<usize>], usize); 3] = [
            (&[init::TAG, init::OWN_INDEX, init::NUMBER, init::NOISE, init::MAC], init::LEN),
            (&[reply::INDEX, reply::OWN_INDEX, reply::NUMBER, reply::NOISE, reply::MAC], reply::LEN),
            (&[data::INDEX, data::NUMBER], data::LEN),
        ];
        for (fields, len) in headers {
            assert_eq!(fields.iter().fold(1, |at, field| if at == field.start { field.end } else { 0 }), len);
        }
        assert_eq!(init::NOISE.len(), 32 + noise1::LEN + 16);
        assert_eq!(reply::NOISE.len(), 32 + noise2::LEN + 16);
    }

    #[test]
    fn a_field_of_another_length_is_neither_read_nor_written() {
        let mut packet = [0; 8];
        assert_eq!(read_u32(&packet, data::NUMBER), None, "packet too short");
        assert_eq!(read::<3>(&packet, data::INDEX), None);
        assert_eq!(write(&mut packet, data::INDEX, &[1; 5]), None);
        assert_eq!(write(&mut packet, data::NUMBER, &[1; 4]), None);
        assert_eq!(packet, [0; 8]);
    }
}
