use core::net::{IpAddr, SocketAddr};

/// A running fingerprint of everything that happened: equal runs have equal digests.
///
/// It tells whether two runs differ, on any machine; it is no protection against anybody.
///
/// ```
/// use stayfast_sim::Digest;
///
/// let (mut a, mut b) = (Digest::new(), Digest::new());
/// a.bytes(b"one run");
/// b.bytes(b"another");
/// assert_ne!(a.value(), b.value());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// The digest of nothing.
    pub const fn new() -> Digest {
        Digest(0xCBF2_9CE4_8422_2325)
    }

    /// Adds a number.
    pub const fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    /// Adds bytes and their number, so that `ab` + `c` is not `a` + `bc`.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
    }

    /// Adds an address and a port.
    pub fn address(&mut self, address: SocketAddr) {
        match address.ip() {
            IpAddr::V4(ip) => self.bytes(&ip.octets()),
            IpAddr::V6(ip) => self.bytes(&ip.octets()),
        }
        self.word(u64::from(address.port()));
    }

    /// The digest of all that was added.
    pub const fn value(self) -> u64 {
        mix(self.0)
    }
}

impl Default for Digest {
    fn default() -> Digest {
        Digest::new()
    }
}

/// SplitMix64's output function: every input bit reaches every output bit.
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(parts: &[&[u8]]) -> u64 {
        let mut digest = Digest::new();
        parts.iter().for_each(|part| digest.bytes(part));
        digest.value()
    }

    #[test]
    fn every_byte_its_place_and_every_boundary_count() {
        assert_eq!(digest(&[b"0123456789"]), digest(&[b"0123456789"]));
        assert_ne!(digest(&[b"0123456789"]), digest(&[b"0123456788"]));
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
        assert_ne!(digest(&[b"a"]), digest(&[b"a\0"]));
        assert_ne!(digest(&[]), digest(&[b""]));
    }
}
