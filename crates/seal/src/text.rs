//! Keys as text: base64url without padding (RFC 4648, section 5), 32 bytes in 43 characters. Secret keys pass
//! through here, so no branch and no table index depends on a byte.

/// Characters of a key.
pub(crate) const LEN: usize = 43;

pub(crate) fn encode(bytes: &[u8; 32]) -> [u8; LEN] {
    let mut out = [0; LEN];
    for (group, chars) in bytes.chunks(3).zip(out.chunks_mut(4)) {
        let bits = (0..3).fold(0, |bits, i| bits << 8 | u32::from(group.get(i).copied().unwrap_or(0)));
        for (i, char) in chars.iter_mut().enumerate() {
            *char = to_char(bits >> (18 - 6 * i) & 63);
        }
    }
    out
}

/// `None` unless `text` is what `encode` makes of some key.
pub(crate) fn decode(text: &[u8]) -> Option<[u8; 32]> {
    let text: &[u8; LEN] = text.try_into().ok()?;
    let (mut out, mut bad) = ([0; 32], 0);
    for (chars, group) in text.chunks(4).zip(out.chunks_mut(3)) {
        let bits = (0..4).fold(0, |bits, i| bits << 6 | chars.get(i).map_or(0, |char| to_bits(*char)));
        bad |= bits & !0xff_ffff;
        for (i, byte) in group.iter_mut().enumerate() {
            *byte = (bits >> (16 - 8 * i)) as u8;
        }
    }
    // The last character has two bits to spare.
    bad |= i32::from(encode(&out)[LEN - 1] ^ text[LEN - 1]);
    (bad == 0).then_some(out)
}

/// The character of six bits.
fn to_char(bits: u32) -> u8 {
    let bits = bits as i32;
    let after = |last: i32, step: i32| (last - bits) >> 8 & step;
    (bits + i32::from(b'A') + after(25, 6) + after(51, -75) + after(61, -13) + after(62, 49)) as u8
}

/// The six bits of a character, or -1.
fn to_bits(char: u8) -> i32 {
    let char = i32::from(char);
    let range = |first: u8, last: u8, base: i32| {
        ((i32::from(first) - 1 - char) & (char - i32::from(last) - 1)) >> 8 & (base + char - i32::from(first) + 1)
    };
    range(b'A', b'Z', 0) + range(b'a', b'z', 26) + range(b'0', b'9', 52) + range(b'-', b'-', 62) + range(b'_', b'_', 63)
        - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    #[test]
    fn the_alphabet_is_that_of_rfc_4648() {
        for (bits, char) in ALPHABET.iter().enumerate() {
            assert_eq!(to_char(bits as u32), *char);
        }
        for byte in 0..=255 {
            let expected = ALPHABET.iter().position(|char| *char == byte).map_or(-1, |bits| bits as i32);
            assert_eq!(to_bits(byte), expected, "{byte}");
        }
    }

    #[test]
    fn text_comes_back_and_nothing_else_is_taken() {
        let key: [u8; 32] = core::array::from_fn(|i| (i * 37 + 200) as u8);
        let text = encode(&key);
        assert_eq!(decode(&text), Some(key));
        assert_eq!(decode(&text[..42]), None);
        for at in 0..LEN {
            for wrong in [b'+', b'=', b' ', 0, 0xff] {
                let mut text = text;
                text[at] = wrong;
                assert_eq!(decode(&text), None, "{wrong} at {at}");
            }
        }
        // Spare bits that are not zero would give one key several texts.
        let mut spare = encode(&[0; 32]);
        spare[LEN - 1] = b'B';
        assert_eq!(decode(&spare), None);
    }
}
