//! What is packed, and how much it may unpack to.

use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::UnpackError;

/// What an image may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) entries: u64,
}

impl Limits {
    pub(super) const NONE: Self = Self {
        bytes: u64::MAX,
        entries: u64::MAX,
    };
}

/// What is left of an image's limits.
pub(super) struct Room {
    limits: Limits,
    bytes: u64,
    entries: u64,
}

impl Room {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            bytes: limits.bytes,
            entries: limits.entries,
        }
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// How many bytes were taken.
    pub(super) fn taken(&self) -> u64 {
        self.limits.bytes - self.bytes
    }

    /// Takes what an archive has up to an entry.
    pub(super) fn take(
        &mut self,
        path: &Path,
        bytes: u64,
        headers: u64,
    ) -> Result<(), UnpackError> {
        let too_large = |limit, what| UnpackError::TooLarge {
            path: path.to_owned(),
            limit,
            what,
        };
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.ok_or_else(|| too_large(self.limits.bytes, "bytes"))?;
        let left = self.entries.checked_sub(headers);
        self.entries = left.ok_or_else(|| too_large(self.limits.entries, "files"))?;
        Ok(())
    }
}

/// The archive in a blob that may be compressed.
pub(super) struct Unpacked<R> {
    packing: Packing<R>,
    /// How much more of it there may be: headers and padding count, too.
    left: u64,
}

enum Packing<R> {
    Plain(BufReader<R>),
    Gzip(Box<MultiGzDecoder<BufReader<R>>>),
}

impl<R: Read> Unpacked<R> {
    pub(super) fn new(path: &Path, file: R, limits: Limits) -> Result<Self, UnpackError> {
        let mut file = BufReader::with_capacity(64 * 1024, file);
        let start = file.fill_buf().map_err(UnpackError::io("read", path))?;
        let packing = match start {
            [0x1f, 0x8b, ..] => Packing::Gzip(Box::new(MultiGzDecoder::new(file))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                return Err(UnpackError::Unsupported {
                    path: path.to_owned(),
                    what: "compression by zstd",
                });
            }
            _ => Packing::Plain(file),
        };
        // A header, and a block of which a byte is used.
        let overhead = limits.entries.saturating_mul(1024 + 1024);
        Ok(Self {
            packing,
            left: limits.bytes.saturating_add(overhead),
        })
    }

    /// Reads the rest; gives back what it was read from.
    pub(super) fn finish(mut self) -> io::Result<R> {
        io::copy(&mut self, &mut io::sink())?;
        match self.packing {
            Packing::Plain(file) => Ok(file.into_inner()),
            Packing::Gzip(packed) => Ok(packed.into_inner().into_inner()),
        }
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = match &mut self.packing {
            Packing::Plain(file) => file.read(buffer)?,
            Packing::Gzip(packed) => packed.read(buffer)?,
        };
        let left = self.left.checked_sub(length as u64);
        self.left = left.ok_or_else(|| io::Error::other("it unpacks to more than it may"))?;
        Ok(length)
    }
}
