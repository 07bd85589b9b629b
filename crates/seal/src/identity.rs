use crate::{resolver, text};
use alloc::string::String;
use core::{fmt, str::FromStr};
use stayfast_frame::Entropy;
use zeroize::Zeroizing;

/// What the text of a secret key begins with, so that nobody takes it for something else.
const SECRET: &str = "stayfast-secret:";

/// The X25519 key pair of a node: its only durable secret. A move to another machine takes it along; a backup
/// must not hold it.
///
/// ```
/// use stayfast_seal::{Identity, PublicKey};
///
/// let line = "stayfast-secret:dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo\n";
/// let identity = Identity::from_text(line).unwrap();
/// assert_eq!(*identity.to_text(), line.trim_end());
/// let public: PublicKey = identity.public();
/// assert_eq!(public.to_string(), "hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo");
/// ```
pub struct Identity {
    secret: Zeroizing<[u8; 32]>,
    public: PublicKey,
}

impl Identity {
    /// Draws a new identity.
    pub fn generate(entropy: &mut dyn Entropy) -> Identity {
        let mut secret = Zeroizing::new([0; 32]);
        entropy.fill(&mut *secret);
        Identity::from_secret(secret)
    }

    fn from_secret(secret: Zeroizing<[u8; 32]>) -> Identity {
        let public = PublicKey(resolver::public(&secret));
        Identity { secret, public }
    }

    /// Reads the line that [`to_text`](Identity::to_text) writes. White space around it does not matter.
    ///
    /// # Errors
    /// `NotSecret` without the prefix, `Malformed` if what follows is no key.
    pub fn from_text(line: &str) -> Result<Identity, KeyError> {
        let key = line.trim().strip_prefix(SECRET).ok_or(KeyError::NotSecret)?;
        let secret = text::decode(key.as_bytes()).ok_or(KeyError::Malformed)?;
        Ok(Identity::from_secret(Zeroizing::new(secret)))
    }

    /// The one line of a secret-key file, without a line end: a prefix and 43 characters of base64url.
    pub fn to_text(&self) -> Zeroizing<String> {
        let chars = Zeroizing::new(text::encode(&self.secret));
        let mut line = Zeroizing::new(String::with_capacity(SECRET.len() + text::LEN));
        line.push_str(SECRET);
        line.extend(chars.iter().map(|char| char::from(*char)));
        line
    }

    /// The key that others know this node by.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn secret(&self) -> &Zeroizing<[u8; 32]> {
        &self.secret
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("public", &self.public).finish_non_exhaustive()
    }
}

/// The X25519 public key of a node. As text: 43 characters of base64url.
///
/// ```
/// use stayfast_seal::{KeyError, PublicKey};
///
/// let key: PublicKey = "hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo".parse().unwrap();
/// assert_eq!(PublicKey::from_bytes(*key.as_bytes()), Ok(key));
/// // The neutral point would let anybody compute what is shared with it.
/// assert_eq!(PublicKey::from_bytes([0; 32]), Err(KeyError::LowOrder));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Takes the u-coordinate of a point (RFC 7748, section 5).
    ///
    /// # Errors
    /// `LowOrder` for the points whose shared secret does not depend on the secret key (RFC 7748, section 6.1).
    pub fn from_bytes(bytes: [u8; 32]) -> Result<PublicKey, KeyError> {
        // Every clamped scalar takes a point of low order to zero, and no other point.
        if *resolver::x25519(&[1; 32], &bytes) == [0; 32] { Err(KeyError::LowOrder) } else { Ok(PublicKey(bytes)) }
    }

    /// The u-coordinate.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(s: &str) -> Result<PublicKey, KeyError> {
        if s.starts_with(SECRET) {
            return Err(KeyError::IsSecret);
        }
        PublicKey::from_bytes(text::decode(s.as_bytes()).ok_or(KeyError::Malformed)?)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(core::str::from_utf8(&text::encode(&self.0)).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// Why a text is not the key that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// A secret key was asked for, and this line does not begin like one.
    NotSecret,
    /// A public key was asked for, and this is a secret one: it must stay where it is.
    IsSecret,
    /// Not 43 characters of base64url that stand for 32 bytes.
    Malformed,
    /// A point of low order: nobody's honest key.
    LowOrder,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyError::NotSecret => "not a secret key: the line must begin with 'stayfast-secret:'",
            KeyError::IsSecret => "this is a secret key; give the public one, and keep this line to yourself",
            KeyError::Malformed => "not a key: 43 characters of base64url expected",
            KeyError::LowOrder => "not a usable key: a point of low order",
        })
    }
}

impl core::error::Error for KeyError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn keys_are_not_taken_for_each_other() {
        let identity = Identity::from_secret(Zeroizing::new([9; 32]));
        let (secret, public) = (identity.to_text(), identity.public().to_string());
        assert_eq!(secret.parse::<PublicKey>(), Err(KeyError::IsSecret));
        assert_eq!(Identity::from_text(&public).unwrap_err(), KeyError::NotSecret);
        assert_eq!(Identity::from_text(&secret[..secret.len() - 1]).unwrap_err(), KeyError::Malformed);
        assert_eq!(public.len(), 43);
        assert_eq!(public.parse(), Ok(identity.public()));
    }

    #[test]
    fn debug_does_not_show_the_secret() {
        let identity = Identity::from_secret(Zeroizing::new([9; 32]));
        let shown = std::format!("{identity:?}");
        assert!(shown.contains(&identity.public().to_string()));
        assert!(!shown.contains(&identity.to_text()[SECRET.len()..]) && !shown.contains("9, 9"));
    }

    #[test]
    fn points_of_low_order_are_refused() {
        // The points of order 1, 2, 4 and 8, and their forms beyond the prime (cr.yp.to/ecdh.html).
        let order_eight = [
            0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda, 0x09,
            0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
        ];
        assert_eq!(PublicKey::from_bytes(order_eight), Err(KeyError::LowOrder));
        let mut prime = [0xff; 32];
        (prime[0], prime[31]) = (0xed, 0x7f);
        for (add, low) in [(-1i16, true), (0, true), (1, true), (2, false)] {
            let mut bytes = prime;
            bytes[0] = (i16::from(bytes[0]) + add) as u8;
            assert_eq!(PublicKey::from_bytes(bytes).is_err(), low, "prime {add:+}");
        }
        let mut one = [0; 32];
        one[0] = 1;
        assert_eq!(PublicKey::from_bytes(one), Err(KeyError::LowOrder));
    }
}
