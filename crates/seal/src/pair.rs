//! What two identities share for good: the tags that name them to each other, and the keys of the MAC that
//! must hold before any work on curves is done.

use crate::keys::{expand, extract};
use crate::resolver::x25519;
use crate::{Identity, PublicKey};
use ring::hmac;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Bytes of the MAC that are compared in a REPLY. The others carry the high bits of its number.
const SHORT: usize = 12;

/// One direction of a pair.
pub(crate) struct Way {
    /// What INITs in this direction begin with.
    pub tag: [u8; 8],
    key: hmac::Key,
}

/// Both directions between this node and one peer.
pub(crate) struct Pair {
    pub outward: Way,
    pub inward: Way,
}

impl Pair {
    pub fn new(identity: &Identity, peer: &PublicKey, psk: &[u8; 32]) -> Pair {
        let mut secret = Zeroizing::new([0; 64]);
        secret[..32].copy_from_slice(&*x25519(identity.secret(), peer.as_bytes()));
        secret[32..].copy_from_slice(psk);
        let prk = extract(b"stayfast/1 pair", &*secret);
        let (own, peer) = (identity.public(), peer.as_bytes());
        let way = |from: &[u8; 32], to: &[u8; 32]| {
            let (mut tag, mut key) = ([0; 8], Zeroizing::new([0; 32]));
            expand(&prk, &[b"tag ", from, to], &mut tag);
            expand(&prk, &[b"mac ", from, to], &mut *key);
            Way { tag, key: hmac::Key::new(hmac::HMAC_SHA256, &*key) }
        };
        Pair { outward: way(own.as_bytes(), peer), inward: way(peer, own.as_bytes()) }
    }
}

impl Way {
    fn hmac(&self, bytes: &[u8]) -> [u8; 16] {
        let mac = hmac::sign(&self.key, bytes);
        core::array::from_fn(|i| mac.as_ref()[i])
    }

    /// The MAC of an INIT, over the header before it.
    pub fn init_mac(&self, header: &[u8]) -> [u8; 16] {
        self.hmac(header)
    }

    pub fn check_init(&self, header: &[u8], mac: &[u8; 16]) -> bool {
        self.hmac(header).ct_eq(mac).into()
    }

    /// The MAC of a REPLY. Message 2 has no room for the high bits of the packet number, so they are added to the
    /// last bytes: while they are zero, as in the first 2^32 packets of a run, it is a MAC like that of an INIT.
    pub fn reply_mac(&self, header: &[u8], number_high: u32) -> [u8; 16] {
        let mut mac = self.hmac(header);
        for (byte, high) in mac[SHORT..].iter_mut().zip(number_high.to_be_bytes()) {
            *byte ^= high;
        }
        mac
    }

    /// The high bits of the packet number if the MAC holds. A forger can change them, and the packet then does not
    /// open: the whole MAC is associated data.
    pub fn check_reply(&self, header: &[u8], mac: &[u8; 16]) -> Option<u32> {
        let expected = self.hmac(header);
        let high = core::array::from_fn(|i| expected[SHORT + i] ^ mac[SHORT + i]);
        bool::from(expected[..SHORT].ct_eq(&mac[..SHORT])).then(|| u32::from_be_bytes(high))
    }
}
