//! Packets and frames, as docs/wire.md has them.
//!
//! A datagram is one packet: a header ([`Header`], [`layout`]), a protected payload ([`Seal`]) and a
//! 16-byte tag. The payload is a sequence of [`Frame`]s: [`decode`] reads it in place and checks it
//! whole, so that whoever handles a frame cannot meet a bad one; [`Writer`] writes it in place.
//! Nothing here allocates, copies a record twice or knows a clock.
//!
//! ```
//! use stayfast_frame::{Frame, Writer, decode};
//! use stayfast_units::RecordNumber;
//!
//! let mut buf = [0; 64];
//! let mut writer = Writer::new(&mut buf);
//! let mut records = writer.records(3, RecordNumber(7), 0).unwrap();
//! records.push(b"hello").unwrap();
//! records.push(b"").unwrap();
//! records.finish();
//! writer.put(&Frame::Ping).unwrap();
//! let len = writer.written();
//!
//! let mut frames = decode(&buf[..len]);
//! let Some(Ok(Frame::Records(records))) = frames.next() else { panic!() };
//! assert!(records.iter().map(|part| (part.number.0, part.bytes)).eq([(7, &b"hello"[..]), (8, &b""[..])]));
//! assert_eq!(frames.next(), Some(Ok(Frame::Padding(1))), "records end at a zero");
//! assert_eq!(frames.next(), Some(Ok(Frame::Ping)));
//! assert_eq!(frames.next(), None);
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "fuzzing"))]
extern crate alloc;
#[cfg(any(test, feature = "fuzzing"))]
extern crate std; // for the code that `arbitrary` derives

mod ack;
mod decode;
mod error;
mod frame;
mod header;
pub mod layout;
mod reader;
mod records;
mod seal;
pub mod varint;
mod writer;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

pub use ack::{Ack, AckHeader, AckRange, AckRanges, EcnCounts, MAX_ACK_RANGES};
pub use decode::{Frames, decode};
pub use error::{DecodeError, Full};
pub use frame::{Frame, MAX_KEY, MAX_NAME, Part, Refusal, Stored, StoredKind};
pub use header::{Header, Kind, TAG_LEN};
pub use records::{Records, RecordsIter, RecordsWriter};
pub use seal::{Entropy, Opened, Rejected, Seal, SealError, SessionId, Via};
pub use writer::{MIN_PART, Writer};
