//! Identity, keys and sessions: how packets are sealed, as docs/sessions.md has it.
//!
//! An [`Identity`] is the only durable secret. [`Sessions`] holds everything else about one peer, in memory
//! only, and implements [`Seal`](stayfast_frame::Seal): the first packet to a peer carries data, whoever of
//! the two has just been restarted.
//!
//! ```
//! use stayfast_frame::{Entropy, Kind, Seal, Via};
//! use stayfast_seal::{Identity, Sessions};
//! use stayfast_units::{RunId, Time};
//!
//! # /// Counts, which is what real entropy must not do.
//! # struct Bytes(u8);
//! # impl Entropy for Bytes {
//! #     fn fill(&mut self, bytes: &mut [u8]) {
//! #         bytes.fill_with(|| { self.0 = self.0.wrapping_mul(5).wrapping_add(1); self.0 });
//! #     }
//! # }
//! let (a, b) = (Identity::generate(&mut Bytes(1)), Identity::generate(&mut Bytes(2)));
//! let mut at_a = Sessions::new(&a, b.public(), None, RunId(1), true, Box::new(Bytes(3)));
//! let mut at_b = Sessions::new(&b, a.public(), None, RunId(2), true, Box::new(Bytes(4)));
//!
//! // Room for the header, the payload, room for the tag.
//! let mut packet = [0; Kind::Init.overhead() + 5];
//! packet[Kind::Init.header_len()..][..5].copy_from_slice(b"hello");
//! at_a.seal(Via::Init, &mut packet).unwrap();
//!
//! let opened = at_b.open(Time::ZERO, &mut packet).unwrap();
//! assert_eq!(&packet[opened.payload], b"hello");
//! assert_eq!((opened.run, opened.bound), (RunId(1), false));
//!
//! // The answer binds both runs.
//! let mut answer = [0; Kind::Reply.overhead()];
//! at_b.seal(Via::Session(opened.session), &mut answer).unwrap();
//! let opened = at_a.open(Time::ZERO, &mut answer).unwrap();
//! assert!(opened.bound && opened.newly_current);
//! assert_eq!(at_a.kind(Via::Session(opened.session)), Some(Kind::Data));
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
// The derive of `Arbitrary` names it.
#[cfg(any(test, feature = "fuzzing"))]
extern crate std;

mod handshake;
mod identity;
mod keys;
mod number;
mod pair;
mod replay;
mod resolver;
mod session;
mod sessions;
mod text;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
#[cfg(test)]
mod known_answers;

pub use identity::{Identity, KeyError, PublicKey};
pub use sessions::Sessions;
