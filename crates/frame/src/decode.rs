use crate::frame::ty;
use crate::reader::Reader;
use crate::{Ack, DecodeError, Frame, Part, Records, Stored};
use core::iter::FusedIterator;
use core::str;
use stayfast_units::{Lineage, StoreId};

/// The frames of an opened payload, each checked whole before it is returned.
///
/// A packet is taken whole or not at all: whoever acts on frames first looks at all of them, and drops the packet if
/// one is an error.
///
/// ```
/// use stayfast_frame::{DecodeError, Frame, decode};
///
/// let mut frames = decode(&[0x01, 0x00, 0x00, 0x30, 1, 2]);
/// assert_eq!(frames.next(), Some(Ok(Frame::Ping)));
/// assert_eq!(frames.next(), Some(Ok(Frame::Padding(2))));
/// assert_eq!(frames.next(), Some(Err(DecodeError::Truncated)));
/// assert_eq!(frames.next(), None);
/// ```
pub const fn decode(payload: &[u8]) -> Frames<'_> {
    Frames { rest: payload }
}

/// Iterator over the frames of a payload; ends after the first error. Made by [`decode`].
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let mut reader = Reader { rest: self.rest };
        let frame = frame(&mut reader);
        self.rest = if frame.is_ok() { reader.rest } else { &[] };
        Some(frame)
    }
}

impl FusedIterator for Frames<'_> {}

fn frame<'a>(r: &mut Reader<'a>) -> Result<Frame<'a>, DecodeError> {
    let frame = match r.byte()? {
        ty::PADDING => Frame::Padding(1 + zeros(r)),
        ty::PING => Frame::Ping,
        ty::ACK => Frame::Ack(Ack::read(r, false)?),
        ty::ACK_ECN => Frame::Ack(Ack::read(r, true)?),
        ty::ACK_FREQUENCY => Frame::AckFrequency { sequence: r.varint()?, every: r.varint()?, max_delay: r.micros()? },
        ty::IMMEDIATE_ACK => Frame::ImmediateAck,
        ty::PART => Frame::Part(Part {
            alias: r.small()?,
            number: r.record()?,
            total: r.small()?,
            offset: r.small()?,
            bytes: r.bytes()?,
        }),
        ty::REPAIR => return Err(DecodeError::Unsupported),
        ty::OPEN => Frame::Open { alias: r.small()?, store: StoreId(r.fixed()?), name: text(r)? },
        ty::ORIGIN => Frame::Origin {
            alias: r.small()?,
            first: r.record()?,
            lineage: Lineage(r.fixed()?),
            parent: Lineage(r.fixed()?),
        },
        ty::GAP => Frame::Gap { alias: r.small()?, first: r.record()?, count: r.varint()? },
        ty::EXPIRED => Frame::Expired { alias: r.small()?, first: r.record()?, count: r.varint()? },
        ty @ ty::HEARD..=ty::FENCED => receipt(ty, r)?,
        ty::PATH_CHALLENGE => Frame::PathChallenge(r.array()?),
        ty::PATH_RESPONSE => Frame::PathResponse(r.array()?),
        ty::KEY => Frame::Key(r.bytes()?),
        ty @ ty::OPTIONAL_FIRST..=ty::OPTIONAL_LAST => Frame::Skipped { ty, len: r.bytes()?.len() },
        ty @ ty::RECORDS..=u8::MAX => Frame::Records(Records::read(ty, r)?),
        ty => return Err(DecodeError::Unknown(ty)),
    };
    frame.check()?;
    Ok(frame)
}

/// What the two ends tell each other about records: 0x20 to 0x27.
fn receipt<'a>(ty: u8, r: &mut Reader<'a>) -> Result<Frame<'a>, DecodeError> {
    Ok(match ty {
        ty::HEARD => Frame::Heard { alias: r.small()?, next: r.record()? },
        ty::STORED => Frame::Stored(Stored {
            alias: r.small()?,
            next: r.record()?,
            lineage: Lineage(r.fixed()?),
            level: r.byte()?,
            kind: r.byte()?.try_into()?,
        }),
        ty::QUERY => Frame::Query { nonce: r.varint()?, alias: r.small()?, trimmed: r.record()? },
        ty::ANSWER => {
            Frame::Answer { nonce: r.varint()?, alias: r.small()?, next: r.record()?, lineage: Lineage(r.fixed()?) }
        }
        ty::CREDIT => Frame::Credit { link: r.varint()?, alias: r.small()?, from: r.record()?, bytes: r.varint()? },
        ty::BLOCKED => Frame::Blocked { alias: r.small()?, number: r.record()?, bytes: r.varint()? },
        ty::REFUSED => Frame::Refused { alias: r.small()?, number: r.record()?, reason: r.byte()?.try_into()? },
        ty::FENCED => Frame::Fenced {
            alias: r.small()?,
            number: r.record()?,
            theirs: Lineage(r.fixed()?),
            yours: Lineage(r.fixed()?),
        },
        ty => return Err(DecodeError::Unknown(ty)),
    })
}

/// Takes the zeros that follow; returns how many.
fn zeros(r: &mut Reader<'_>) -> usize {
    let len = r.rest.iter().take_while(|&&byte| byte == ty::PADDING).count();
    r.rest = &r.rest[len..];
    len
}

fn text<'a>(r: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    str::from_utf8(r.bytes()?).map_err(|_| DecodeError::Malformed)
}
