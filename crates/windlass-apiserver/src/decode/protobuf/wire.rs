//! The bytes of protobuf: varints, tags, lengths, and how to pass over what is not known.
//!
//! Reads and refuses exactly what Go's generated decoders do, in their words. Nothing is allocated
//! here: what a length names is a slice of what was sent, or an error.

use crate::decode::error::QuantityError;

/// Why bytes are not the message they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    #[error("proto: unexpected end of group")]
    EndOfGroup,
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WrongWireType { wire_type: u8, field: String },
    #[error("proto: {message}: wiretype end group for non-group")]
    StrayEndOfGroup { message: String },
    #[error("proto: {message}: illegal tag {number} (wire type {tag})")]
    IllegalTag {
        message: String,
        number: i32,
        tag: u64,
    },
    #[error("exceeded max depth")]
    TooDeep,
    #[error("the message has more values than an object can have")]
    TooMany,
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// What was sent is well-formed and means nothing.
    #[error("{0}")]
    Meaning(String),
}

/// How a value is laid down.
pub(crate) const VARINT: u8 = 0;
pub(crate) const FIXED64: u8 = 1;
pub(crate) const BYTES: u8 = 2;

/// The number and form of the field that follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag {
    pub(crate) number: i32,
    pub(crate) wire_type: u8,
    pub(crate) raw: u64,
}

/// A place in a message.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Goes to a place known to be in the message.
    pub(crate) fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.data.len()
    }

    pub(crate) fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.data.get(self.at).ok_or(WireError::Truncated)?;
            self.at += 1;
            // Bits beyond the 64th fall away, as they do in Go.
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WireError::Overflow)
    }

    pub(crate) fn tag(&mut self) -> Result<Tag, WireError> {
        let raw = self.varint()?;
        Ok(Tag {
            #[allow(clippy::cast_possible_truncation, reason = "Go cuts it off too")]
            number: (raw >> 3) as i32,
            wire_type: u8::try_from(raw & 7).unwrap_or_default(),
            raw,
        })
    }

    /// The bytes that a length in front of them counts.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], WireError> {
        let end = self.end_of_bytes()?;
        let bytes = self.data.get(self.at..end).ok_or(WireError::Truncated)?;
        self.at = end;
        Ok(bytes)
    }

    /// Reads a length: where what it counts ends.
    pub(crate) fn end_of_bytes(&mut self) -> Result<usize, WireError> {
        let length = i64::try_from(self.varint()?).map_err(|_| WireError::NegativeLength)?;
        let length = usize::try_from(length).map_err(|_| WireError::Truncated)?;
        let end = self
            .at
            .checked_add(length)
            .filter(|end| i64::try_from(*end).is_ok())
            .ok_or(WireError::NegativeLength)?;
        if end > self.data.len() {
            return Err(WireError::Truncated);
        }
        Ok(end)
    }

    pub(crate) fn fixed64(&mut self) -> Result<u64, WireError> {
        let bytes = self.data.get(self.at..self.at + 8);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        self.at += 8;
        bytes.map(u64::from_le_bytes).ok_or(WireError::Truncated)
    }

    /// Passes over a field, its tag included, which begins here and must end by `limit`.
    pub(crate) fn skip(&mut self, limit: usize) -> Result<(), WireError> {
        let mut groups = 0_u32;
        while !self.is_at_end() {
            let tag = self.tag()?;
            match tag.wire_type {
                VARINT => {
                    self.varint()?;
                }
                FIXED64 => self.at += 8,
                BYTES => {
                    let length = i64::try_from(self.varint()?);
                    let length = length.map_err(|_| WireError::NegativeLength)?;
                    let length = usize::try_from(length).map_err(|_| WireError::Truncated)?;
                    self.at = self
                        .at
                        .checked_add(length)
                        .filter(|end| i64::try_from(*end).is_ok())
                        .ok_or(WireError::NegativeLength)?;
                }
                3 => groups += 1,
                4 if groups == 0 => return Err(WireError::EndOfGroup),
                4 => groups -= 1,
                5 => self.at += 4,
                other => return Err(WireError::IllegalWireType(other)),
            }
            if groups == 0 {
                return if self.at > limit {
                    Err(WireError::Truncated)
                } else {
                    Ok(())
                };
            }
        }
        Err(WireError::Truncated)
    }

    pub(crate) fn len(&self) -> usize {
        self.data.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        let read = |bytes: &[u8]| Reader::new(bytes).varint();
        assert_eq!(read(&[0xac, 0x02]), Ok(300));
        assert_eq!(read(&[0xff; 9]), Err(WireError::Truncated));
        assert_eq!(read(&[0xff; 11]), Err(WireError::Overflow));
        let minus_one = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        assert_eq!(read(&minus_one), Ok(u64::MAX));
    }

    #[test]
    fn a_huge_length_is_the_end_of_the_message() {
        let huge = [0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(Reader::new(&huge).bytes(), Err(WireError::Truncated));
        let negative = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        assert_eq!(
            Reader::new(&negative).bytes(),
            Err(WireError::NegativeLength)
        );
    }

    proptest! {
        #[test]
        fn nothing_panics(data in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Reader::new(&data).skip(data.len());
            let _ = Reader::new(&data).bytes();
            let _ = Reader::new(&data).fixed64();
        }
    }
}
