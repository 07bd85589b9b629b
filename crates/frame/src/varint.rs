//! Integers of variable length: 1, 2, 4 or 8 bytes, the two top bits say which (RFC 9000, section 16).

/// The largest value: 2^62 - 1.
pub const MAX: u64 = (1 << 62) - 1;

/// Bytes that `value` takes. A value above [`MAX`] cannot be written; its length counts as 8.
///
/// ```
/// use stayfast_frame::varint;
/// assert_eq!((varint::len(63), varint::len(64), varint::len(varint::MAX)), (1, 2, 8));
/// ```
pub const fn len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Reads one integer; returns it and what follows, or `None` if `bytes` ends too early.
/// Longer forms than needed are legal, as in the RFC.
pub(crate) fn read(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    let (head, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = head.iter().skip(1).fold(u64::from(first & 0x3f), |value, &byte| value << 8 | u64::from(byte));
    Some((value, rest))
}

/// Writes `value` in its shortest form to the front of `buf`; returns its length, or `None` if it does not fit.
pub(crate) fn write(buf: &mut [u8], value: u64) -> Option<usize> {
    let len = len(value);
    let out = buf.get_mut(..len)?;
    if value > MAX {
        return None;
    }
    out.copy_from_slice(&value.to_be_bytes()[8 - len..]);
    out[0] |= (len.trailing_zeros() as u8) << 6;
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_rfc_9000_appendix_a1() {
        let cases: [(u64, &[u8]); 4] = [
            (151_288_809_941_952_652, &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (15_293, &[0x7b, 0xbd]),
            (37, &[0x25]),
        ];
        for (value, bytes) in cases {
            let mut buf = [0; 8];
            assert_eq!(read(bytes), Some((value, &[][..])));
            assert_eq!(write(&mut buf, value), Some(bytes.len()));
            assert_eq!(&buf[..bytes.len()], bytes);
        }
        assert_eq!(read(&[0x40, 0x25]), Some((37, &[][..])), "a longer form");
    }

    #[test]
    fn edges_of_every_length() {
        for (edge, len) in [(0, 1), (63, 1), (64, 2), (16_383, 2), (16_384, 4), (1 << 30, 8), (MAX, 8)] {
            let mut buf = [0; 8];
            assert_eq!(write(&mut buf, edge), Some(len));
            assert_eq!(read(&buf[..len]), Some((edge, &[][..])));
            assert_eq!(read(&buf[..len - 1]), None);
            assert_eq!(write(&mut buf[..len - 1], edge), None);
        }
        assert_eq!(write(&mut [0; 8], MAX + 1), None);
    }
}
