use crate::{DecodeError, varint};
use core::time::Duration;
use stayfast_units::RecordNumber;

/// Takes fields off the front of a payload.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*array)
    }

    /// Eight bytes, big-endian: random numbers, which a varint would only lengthen.
    pub(crate) fn fixed(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    /// An integer of `len` bytes, at most 8.
    pub(crate) fn big_endian(&mut self, len: usize) -> Result<u64, DecodeError> {
        Ok(self.slice(len)?.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    pub(crate) fn varint(&mut self) -> Result<u64, DecodeError> {
        let (value, rest) = varint::read(self.rest).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(value)
    }

    /// A varint that must fit a smaller integer.
    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, DecodeError> {
        self.varint()?.try_into().map_err(|_| DecodeError::Malformed)
    }

    pub(crate) fn record(&mut self) -> Result<RecordNumber, DecodeError> {
        self.varint().map(RecordNumber)
    }

    pub(crate) fn micros(&mut self) -> Result<Duration, DecodeError> {
        self.varint().map(Duration::from_micros)
    }

    /// A length and as many bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = usize::try_from(self.varint()?).map_err(|_| DecodeError::Truncated)?;
        self.slice(len)
    }

    pub(crate) fn slice(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// What was read since `before`, an earlier copy of this reader.
    pub(crate) fn since(&self, before: Reader<'a>) -> &'a [u8] {
        &before.rest[..before.rest.len() - self.rest.len()]
    }
}
