//! How bytes lie in the journal's files: a header that says whose file it is, then frames.
//!
//! A frame is what one sync makes durable: its length and where it starts, sealed by a checksum,
//! then the payload with a checksum of its own. The next frame is only written once the one before
//! it is durable, so a power cut can damage the last frame and no other. A damaged frame that is
//! *followed* by a whole one was durable once: that is a damaged disk, not a cut-off write, and
//! nothing may be dropped silently.

use std::io;

/// The version of the format that is written, and the only one that is read.
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER_LENGTH: usize = 36;
const FRAME_MAGIC: &[u8; 4] = b"WLF1";
const FRAME_HEAD: usize = 24;

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Log,
    Snapshot,
}

impl FileKind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Log => b"WINDLOG\n",
            Self::Snapshot => b"WINDSNP\n",
        }
    }

    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Snapshot => "snapshot",
        }
    }
}

/// The start of every file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: FileKind,
    /// Numbers the logs; a snapshot has the number of the log that continues it.
    pub(super) number: u64,
    /// A log holds what came after this revision; a snapshot, what was there at it.
    pub(super) base: u64,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum HeaderError {
    #[error("it is not a {0} of windlass")]
    Foreign(&'static str),
    #[error("its format is version {0}; this windlass reads version {VERSION}")]
    Version(u32),
    #[error("its header is damaged")]
    Damaged,
}

impl Header {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LENGTH);
        bytes.extend_from_slice(self.kind.magic());
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&0_u32.to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&self.base.to_le_bytes());
        let sum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(super) fn decode(kind: FileKind, bytes: &[u8]) -> Result<Self, HeaderError> {
        if !bytes.starts_with(kind.magic()) {
            return Err(HeaderError::Foreign(kind.noun()));
        }
        let version = read_u32(bytes, 8).ok_or(HeaderError::Damaged)?;
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        let sealed = bytes.get(..HEADER_LENGTH - 4).ok_or(HeaderError::Damaged)?;
        if read_u32(bytes, HEADER_LENGTH - 4) != Some(crc32fast::hash(sealed)) {
            return Err(HeaderError::Damaged);
        }
        let number = read_u64(bytes, 16).ok_or(HeaderError::Damaged)?;
        let base = read_u64(bytes, 24).ok_or(HeaderError::Damaged)?;
        Ok(Self { kind, number, base })
    }
}

/// Adds a frame with `payload` to what will be written at `offset` of a file.
pub(super) fn push_frame(to: &mut Vec<u8>, offset: u64, payload: &[u8]) -> io::Result<()> {
    let length = length_of(payload.len())?;
    let start = to.len();
    to.extend_from_slice(FRAME_MAGIC);
    to.extend_from_slice(&length);
    to.extend_from_slice(&offset.to_le_bytes());
    to.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
    let sum = crc32fast::hash(&to[start..]);
    to.extend_from_slice(&sum.to_le_bytes());
    to.extend_from_slice(payload);
    Ok(())
}

/// A length as it is written. What is longer than four bytes can say must not be written at all: it
/// could not be read again.
pub(super) fn length_of(length: usize) -> io::Result<[u8; 4]> {
    let too_long = || {
        io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "cannot store {length} bytes in one piece: the limit is {}",
                u32::MAX
            ),
        )
    };
    u32::try_from(length)
        .map(u32::to_le_bytes)
        .map_err(|_| too_long())
}

/// The payload of the frame that starts at `at`, and where the next one starts.
pub(super) fn frame_at(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let head = bytes.get(at..at.checked_add(FRAME_HEAD)?)?;
    let sealed = head.get(..FRAME_HEAD - 4)?;
    if !head.starts_with(FRAME_MAGIC)
        || read_u32(head, FRAME_HEAD - 4)? != crc32fast::hash(sealed)
        || read_u64(head, 8)? != u64::try_from(at).ok()?
    {
        return None;
    }
    let length = usize::try_from(read_u32(head, 4)?).ok()?;
    let (start, end) = (at + FRAME_HEAD, (at + FRAME_HEAD).checked_add(length)?);
    let payload = bytes.get(start..end)?;
    (read_u32(head, 16)? == crc32fast::hash(payload)).then_some((payload, end))
}

/// Where a whole frame starts after `at`, if any does.
pub(super) fn frame_after(bytes: &[u8], at: usize) -> Option<usize> {
    (at + 1..bytes.len())
        .find(|start| bytes[*start..].starts_with(FRAME_MAGIC) && frame_at(bytes, *start).is_some())
}

pub(super) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

pub(super) fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_beyond_four_bytes_is_refused() {
        assert_eq!(length_of(258).unwrap(), [2, 1, 0, 0]);
        assert!(length_of(usize::try_from(u32::MAX).unwrap()).is_ok());
        let error = length_of(usize::try_from(u32::MAX).unwrap() + 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
