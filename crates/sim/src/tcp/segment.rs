use crate::Digest;
use alloc::vec::Vec;
use stayfast_units::Time;

/// Bytes of the application in one segment: what a 1,500 B packet has left after IPv4 (20 B), TCP (20 B) and its
/// timestamps (12 B).
pub const TCP_PAYLOAD: u64 = 1_448;

/// The most blocks of a selective acknowledgement: as many as fit beside timestamps (RFC 2018, 3).
pub(super) const BLOCKS_MAX: usize = 3;

/// TCP's 32 B of header and timestamps less the 8 B of UDP that carry us: sizes on the wire are those of TCP.
const HEADER: usize = 24;
/// The SACK option: two bytes of padding, kind, length.
const OPTION: usize = 4;
const BLOCK: usize = 8;
/// The checksum's place in the header.
const SUM: core::ops::Range<usize> = 4..8;

const DATA: u8 = 0x40;
const ACK: u8 = 0x80;

/// Segments from `start` to before `end`, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Block {
    pub(super) fn has(self, number: u64) -> bool {
        (self.start..self.end).contains(&number)
    }

    pub(super) fn contains(self, other: Block) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// What a receiver says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ack {
    /// The first segment it misses.
    pub(super) next: u64,
    /// The time stamp it echoes (RFC 7323).
    pub(super) echo: Time,
    /// What it has beyond, the newest first; before that a duplicate, if there is one (RFC 2883).
    pub(super) blocks: [Option<Block>; BLOCKS_MAX],
}

/// What a datagram of a TCP flow says. Segments have numbers instead of byte positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// Segment `number` with a full payload.
    Data {
        number: u64,
        /// When it was sent.
        stamp: Time,
    },
    Ack(Ack),
}

impl Segment {
    /// Writes itself to an empty buffer.
    pub(super) fn encode(self, bytes: &mut Vec<u8>) {
        match self {
            Segment::Data { number, stamp } => {
                header(bytes, DATA, number, stamp);
                bytes.resize(HEADER + TCP_PAYLOAD as usize, 0);
            }
            Segment::Ack(ack) => {
                let count = ack.blocks.iter().flatten().count();
                header(bytes, ACK | count as u8, ack.next, ack.echo);
                if count > 0 {
                    bytes.extend_from_slice(&[0; OPTION]);
                }
                for block in ack.blocks.iter().flatten() {
                    // As in TCP, 32 bits are enough: the rest follows from the cumulative acknowledgement.
                    bytes.extend_from_slice(&(block.start as u32).to_le_bytes());
                    bytes.extend_from_slice(&(block.end as u32).to_le_bytes());
                }
            }
        }
        let sum = checksum(bytes);
        bytes[SUM].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads a datagram; none if it is not one of ours or something has changed it on its way.
    pub(super) fn decode(bytes: &[u8]) -> Option<Segment> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        if header[SUM] != checksum(bytes).to_le_bytes() || header[1..SUM.start] != [0; 3] {
            return None;
        }
        let number = u64::from_le_bytes(*header[8..].first_chunk()?);
        let stamp = Time::from_nanos(u64::from_le_bytes(*header[16..].first_chunk()?));
        match header[0] {
            DATA => {
                // The payload is zeros, which is quicker to verify than a checksum.
                let whole = rest.len() == TCP_PAYLOAD as usize && all_zero(rest);
                whole.then_some(Segment::Data { number, stamp })
            }
            kind if kind & !3 == ACK => {
                let blocks = decode_blocks(number, usize::from(kind & 3), rest)?;
                Some(Segment::Ack(Ack { next: number, echo: stamp, blocks }))
            }
            _ => None,
        }
    }
}

fn header(bytes: &mut Vec<u8>, kind: u8, number: u64, stamp: Time) {
    bytes.extend_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&stamp.as_nanos().to_le_bytes());
}

fn decode_blocks(next: u64, count: usize, rest: &[u8]) -> Option<[Option<Block>; BLOCKS_MAX]> {
    let mut blocks = [None; BLOCKS_MAX];
    let option = if count > 0 { OPTION } else { 0 };
    if rest.len() != option + count * BLOCK {
        return None;
    }
    for (place, bytes) in blocks.iter_mut().zip(rest[option..].as_chunks::<BLOCK>().0) {
        let [a, b, c, d, e, f, g, h] = *bytes;
        let start = near(next, u32::from_le_bytes([a, b, c, d]))?;
        let end = near(next, u32::from_le_bytes([e, f, g, h]))?;
        if start >= end {
            return None;
        }
        *place = Some(Block { start, end });
    }
    Some(blocks)
}

/// The number with these low 32 bits that is nearest to `next`.
fn near(next: u64, low: u32) -> Option<u64> {
    let distance = low.wrapping_sub(next as u32).cast_signed();
    next.checked_add_signed(i64::from(distance))
}

/// Of everything in front of the payload but its own four bytes, and of the length.
fn checksum(bytes: &[u8]) -> u32 {
    let covered = if bytes[0] == DATA { HEADER } else { bytes.len() };
    let mut digest = Digest::new();
    digest.word(bytes.len() as u64);
    digest.bytes(&bytes[..SUM.start]);
    digest.bytes(&bytes[SUM.end..covered]);
    digest.value() as u32
}

fn all_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().fold(0, |any, word| any | u64::from_ne_bytes(*word)) == 0 && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(segment: Segment) -> Vec<u8> {
        let mut bytes = Vec::new();
        segment.encode(&mut bytes);
        bytes
    }

    fn examples() -> [Segment; 4] {
        let stamp = Time::from_nanos(0x0123_4567_89AB_CDEF);
        let ack = Ack { next: 5_000_000_000, echo: stamp, blocks: [None; BLOCKS_MAX] };
        let block = |start, end| Some(Block { start: ack.next - 10 + start, end: ack.next - 10 + end });
        [
            Segment::Data { number: 77, stamp },
            Segment::Ack(ack),
            Segment::Ack(Ack { blocks: [block(3, 4), None, None], ..ack }),
            Segment::Ack(Ack { blocks: [block(30, 31), block(20, 40), block(50, 70)], ..ack }),
        ]
    }

    #[test]
    fn what_is_written_reads_the_same_and_has_the_size_of_tcp() {
        // IP 20, TCP 20, timestamps 12, for SACK 4 and 8 for each block, payload; less the 28 of IP and UDP.
        let sizes = [1_500, 52, 64, 80].map(|packet| packet - 28);
        for (segment, size) in examples().into_iter().zip(sizes) {
            let bytes = encoded(segment);
            assert_eq!(bytes.len(), size);
            assert_eq!(Segment::decode(&bytes), Some(segment));
        }
    }

    #[test]
    fn a_changed_bit_or_length_is_noticed() {
        for segment in examples() {
            let bytes = encoded(segment);
            for bit in 0..bytes.len() * 8 {
                let mut bad = bytes.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Segment::decode(&bad), None, "bit {bit} of {segment:?}");
            }
            for len in 0..bytes.len() {
                assert_eq!(Segment::decode(&bytes[..len]), None);
            }
            assert_eq!(Segment::decode(&[&bytes[..], &[0]].concat()), None);
        }
    }

    #[test]
    fn a_block_that_is_empty_or_lies_before_the_beginning_is_refused() {
        let ack = |start, end| {
            let blocks = [Some(Block { start, end }), None, None];
            Segment::decode(&encoded(Segment::Ack(Ack { next: 3, echo: Time::ZERO, blocks })))
        };
        assert!(ack(4, 5).is_some());
        assert_eq!(ack(5, 5), None);
        assert_eq!(ack(5, 4), None);
        assert_eq!(ack(u64::MAX, 2), None);
    }
}
