//! The key schedule after the handshake, and what a key does to a packet.

use crate::handshake::Finished;
use ring::aead::quic::{self, HeaderProtectionKey};
use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use stayfast_frame::{TAG_LEN, layout};
use zeroize::Zeroizing;

/// HKDF-Extract (RFC 5869, section 2.2) with SHA-256.
pub(crate) fn extract(salt: &[u8], secret: &[u8]) -> Prk {
    Salt::new(HKDF_SHA256, salt).extract(secret)
}

/// HKDF-Expand (RFC 5869, section 2.3) of the concatenated `info`.
pub(crate) fn expand(prk: &Prk, info: &[&[u8]], out: &mut [u8]) {
    struct Len(usize);
    impl KeyType for Len {
        fn len(&self) -> usize {
            self.0
        }
    }
    prk.expand(info, Len(out.len())).and_then(|okm| okm.fill(out)).expect("all our outputs are short");
}

fn expand_key(prk: &Prk, info: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    expand(prk, info, &mut *key);
    key
}

/// An AEAD key with its iv: seals packets that have numbers.
pub(crate) struct PacketKey {
    aead: LessSafeKey,
    iv: [u8; 12],
    /// Names the key without giving it away, for the ledger of nonces.
    #[cfg(any(test, feature = "fuzzing"))]
    name: [u8; 32],
}

impl PacketKey {
    pub fn new(algorithm: &'static Algorithm, key: &[u8; 32], iv: [u8; 12]) -> PacketKey {
        PacketKey {
            aead: LessSafeKey::new(UnboundKey::new(algorithm, key).expect("all our keys are 32 bytes")),
            iv,
            #[cfg(any(test, feature = "fuzzing"))]
            name: ring::digest::digest(&ring::digest::SHA256, key).as_ref().try_into().expect("SHA-256 is 32 bytes"),
        }
    }

    fn derive(algorithm: &'static Algorithm, prk: &Prk, info: [&[u8]; 2]) -> PacketKey {
        let key = expand_key(prk, &[b"key ", info[0], info[1]]);
        let mut iv = [0; 12];
        expand(prk, &[b"iv ", info[0], info[1]], &mut iv);
        PacketKey::new(algorithm, &key, iv)
    }

    /// The iv, its last eight bytes XOR the packet number (RFC 9001, section 5.3).
    fn nonce(&self, number: u64) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// Seals what follows `header` bytes, which are associated data, and ends before the room for the tag.
    /// `None`, with nothing sealed, if the packet is too short.
    #[must_use]
    pub fn seal(&self, number: u64, packet: &mut [u8], header: usize) -> Option<()> {
        let (header, rest) = packet.split_at_mut_checked(header)?;
        let (payload, room) = rest.split_at_mut_checked(rest.len().checked_sub(TAG_LEN)?)?;
        let nonce = Nonce::assume_unique_for_key(self.nonce(number));
        let tag = self.aead.seal_in_place_separate_tag(nonce, Aad::from(&*header), payload).ok()?;
        room.copy_from_slice(tag.as_ref());
        Some(())
    }

    /// Opens what `seal` made. `None` if it is not authentic.
    #[must_use]
    pub fn open(&self, number: u64, packet: &mut [u8], header: usize) -> Option<()> {
        let (header, rest) = packet.split_at_mut_checked(header)?;
        let nonce = Nonce::assume_unique_for_key(self.nonce(number));
        self.aead.open_in_place(nonce, Aad::from(&*header), rest).ok().map(|_| ())
    }

    /// The key's name and the nonce that a packet of this number takes.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn used(&self, number: u64) -> ([u8; 32], [u8; 12]) {
        (self.name, self.nonce(number))
    }
}

/// The key of the INITs under one message 1. Always ChaCha20-Poly1305: the ends have not met yet.
pub(crate) fn init_key(k_init: &[u8]) -> PacketKey {
    PacketKey::derive(&CHACHA20_POLY1305, &extract(b"stayfast/1 init", k_init), [b"init", b""])
}

/// What protects the REPLY and DATA packets of one direction.
pub(crate) struct Direction {
    pub key: PacketKey,
    mask: HeaderProtectionKey,
}

impl Direction {
    /// Masks the number of a sealed DATA packet, or unmasks it (RFC 9001, section 5.4).
    #[must_use]
    pub fn mask(&self, packet: &mut [u8]) -> Option<()> {
        let mask = self.mask.new_mask(packet.get(layout::data::SAMPLE)?).ok()?;
        // The first byte of a mask is for QUIC's first byte. Ours has nothing to hide.
        for (byte, mask) in packet.get_mut(layout::data::NUMBER)?.iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
        Some(())
    }
}

/// What both ends must agree on for a session to have keys.
pub(crate) struct Agreed {
    /// The handshake.
    pub finished: Finished,
    /// Whether the initiator and the responder said that they have AES.
    pub aes: [bool; 2],
    /// The receiver indices of the initiator and the responder.
    pub indices: [u32; 2],
}

impl Agreed {
    /// The keys for what the initiator sends, and for what the responder sends.
    pub fn keys(&self) -> (Direction, Direction) {
        let prk = extract(&self.finished.hash, &*self.finished.split);
        let mut context = [0; 10];
        context[0] = self.aes[0].into();
        context[1] = self.aes[1].into();
        context[2..6].copy_from_slice(&self.indices[0].to_be_bytes());
        context[6..].copy_from_slice(&self.indices[1].to_be_bytes());
        let (aead, mask) = match self.aes {
            [true, true] => (&AES_256_GCM, &quic::AES_256),
            _ => (&CHACHA20_POLY1305, &quic::CHACHA20),
        };
        let direction = |sender: &[u8]| Direction {
            key: PacketKey::derive(aead, &prk, [sender, &context]),
            mask: HeaderProtectionKey::new(mask, &*expand_key(&prk, &[b"mask ", sender, &context]))
                .expect("all our keys are 32 bytes"),
        };
        (direction(b"initiator"), direction(b"responder"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    const AES: [[bool; 2]; 4] = [[false, false], [false, true], [true, false], [true, true]];

    fn keys(aes: [bool; 2], indices: [u32; 2]) -> [Direction; 2] {
        let finished = Finished { split: Zeroizing::new([1; 64]), hash: [2; 32] };
        Agreed { finished, aes, indices }.keys().into()
    }

    #[test]
    fn a_key_depends_on_all_that_was_agreed() {
        let mut names = BTreeSet::new();
        for aes in AES {
            for indices in [[0, 0], [0, 1], [1, 0]] {
                names.extend(keys(aes, indices).map(|direction| direction.key.name));
            }
        }
        assert_eq!(names.len(), 24);
    }

    #[test]
    fn aes_needs_both_ends() {
        for aes in AES {
            let expected = if aes == [true; 2] { &AES_256_GCM } else { &CHACHA20_POLY1305 };
            for direction in keys(aes, [0; 2]) {
                assert_eq!(direction.key.aead.algorithm(), expected);
            }
        }
    }

    #[test]
    fn too_short_a_packet_is_an_error_and_not_a_panic() {
        let [direction, _] = keys([true; 2], [0; 2]);
        for len in 0..25 {
            assert_eq!(direction.key.seal(0, &mut [0; 25][..len], 9), None);
            assert_eq!(direction.key.open(0, &mut [0; 25][..len], 9), None);
            assert_eq!(direction.mask(&mut [0; 25][..len]), None);
        }
        assert_eq!(direction.key.seal(0, &mut [0; 25], 9), Some(()));
    }
}
