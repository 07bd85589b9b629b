//! What snow is given: its own primitives, and no source of randomness but the ephemeral key of one handshake.

use alloc::boxed::Box;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::Zeroizing;

/// Resolves everything for one handshake, whose ephemeral secret is already drawn.
pub(crate) struct Resolver {
    pub ephemeral: Zeroizing<[u8; 32]>,
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.ephemeral.clone()))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Gives its 32 bytes once and then fails: nothing random is made up behind our back.
struct Once(Option<Zeroizing<[u8; 32]>>);

impl Random for Once {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        let bytes = self.0.take().filter(|bytes| bytes.len() == dest.len()).ok_or(snow::Error::Rng)?;
        dest.copy_from_slice(&*bytes);
        Ok(())
    }
}

fn curve(secret: &[u8; 32]) -> Box<dyn Dh> {
    let mut dh = DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("snow is built with curve25519");
    dh.set(secret);
    dh
}

/// The public key of a secret (RFC 7748, section 6.1).
pub(crate) fn public(secret: &[u8; 32]) -> [u8; 32] {
    curve(secret).pubkey().try_into().expect("a point is 32 bytes")
}

/// X25519 (RFC 7748, section 5). All zeros if, and only if, the point is of low order.
pub(crate) fn x25519(secret: &[u8; 32], point: &[u8; 32]) -> Zeroizing<[u8; 32]> {
    let mut shared = Zeroizing::new([0; 32]);
    curve(secret).dh(point, &mut *shared).expect("X25519 takes every point");
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ephemeral_is_given_once() {
        let mut random = Resolver { ephemeral: Zeroizing::new([7; 32]) }.resolve_rng().unwrap();
        let mut bytes = [0; 32];
        random.try_fill_bytes(&mut bytes).unwrap();
        assert_eq!(bytes, [7; 32]);
        assert!(random.try_fill_bytes(&mut bytes).is_err());
    }
}
