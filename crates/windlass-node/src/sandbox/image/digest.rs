//! Digests: what a blob is called, and whether it is what it is called.

use std::fmt::Write as _;
use std::io::{self, Read};

use ring::digest::{Context, SHA256, SHA512};

use super::UnpackError;

/// The digest of a blob, as documents of an image name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Digest {
    algorithm: &'static str,
    value: String,
}

impl Digest {
    pub(super) fn parse(text: &str) -> Result<Self, UnpackError> {
        let invalid = || UnpackError::Digest(text.to_owned());
        let (algorithm, value) = text.split_once(':').ok_or_else(invalid)?;
        let (algorithm, length) = match algorithm {
            "sha256" => ("sha256", 64),
            "sha512" => ("sha512", 128),
            _ => return Err(invalid()),
        };
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if value.len() != length || !value.bytes().all(is_hex) {
            return Err(invalid());
        }
        Ok(Self {
            algorithm,
            value: value.to_owned(),
        })
    }

    pub(super) fn algorithm(&self) -> &'static str {
        self.algorithm
    }

    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// Reads what should be the blob of that digest.
    pub(super) fn reading<R: Read>(&self, from: R) -> Hashing<R> {
        let algorithm = match self.algorithm {
            "sha512" => &SHA512,
            _ => &SHA256,
        };
        Hashing {
            from,
            algorithm: self.algorithm,
            context: Context::new(algorithm),
        }
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.algorithm, self.value)
    }
}

/// A reader that hashes what it reads.
pub(super) struct Hashing<R> {
    from: R,
    algorithm: &'static str,
    context: Context,
}

impl<R: Read> Hashing<R> {
    /// The digest of everything, the part that has not been read yet included.
    pub(super) fn finish(mut self) -> io::Result<Digest> {
        io::copy(&mut self, &mut io::sink())?;
        let mut value = String::new();
        for byte in self.context.finish().as_ref() {
            let _ = write!(value, "{byte:02x}");
        }
        Ok(Digest {
            algorithm: self.algorithm,
            value,
        })
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(buffer)?;
        self.context.update(&buffer[..length]);
        Ok(length)
    }
}
