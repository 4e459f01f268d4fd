//! [`Check`]: the hash of a snapshot, computed while it passes by.

use std::fmt::Write as _;

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

/// A bbolt file is a number of these; the hash comes on top.
const SECTOR: u64 = 512;

/// A snapshot that passes by, piece by piece.
pub struct Check {
    /// Of everything but the last bytes.
    body: Context,
    /// The last bytes so far, which may be the hash.
    tail: Vec<u8>,
    bytes: u64,
}

/// A snapshot that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The SHA-256 of all of it, its own hash included, in hexadecimal.
    pub sha256: String,
    /// How long it is.
    pub bytes: u64,
}

/// Why a snapshot is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotWhole {
    /// It ends too early, or is no snapshot.
    #[error("the snapshot has {0} bytes, which is not the length of a snapshot")]
    Length(u64),
    /// Its hash is that of other data.
    #[error("the SHA-256 at the end of the snapshot is not that of its data")]
    Hash,
}

impl Default for Check {
    fn default() -> Self {
        Self {
            body: Context::new(&SHA256),
            tail: Vec::with_capacity(2 * SHA256_OUTPUT_LEN),
            bytes: 0,
        }
    }
}

impl Check {
    /// The next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        if piece.len() >= SHA256_OUTPUT_LEN {
            let (body, tail) = piece.split_at(piece.len() - SHA256_OUTPUT_LEN);
            self.body.update(&self.tail);
            self.body.update(body);
            self.tail.clear();
            self.tail.extend_from_slice(tail);
            return;
        }
        self.tail.extend_from_slice(piece);
        let surplus = self.tail.len().saturating_sub(SHA256_OUTPUT_LEN);
        self.body.update(&self.tail[..surplus]);
        self.tail.drain(..surplus);
    }

    /// How many bytes have passed.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it was whole.
    pub fn finish(self) -> Result<Checked, NotWhole> {
        let hash = SHA256_OUTPUT_LEN as u64;
        if self.bytes <= hash || !(self.bytes - hash).is_multiple_of(SECTOR) {
            return Err(NotWhole::Length(self.bytes));
        }
        let mut whole = self.body.clone();
        whole.update(&self.tail);
        if self.body.finish().as_ref() != self.tail {
            return Err(NotWhole::Hash);
        }
        Ok(Checked {
            sha256: hex(whole.finish().as_ref()),
            bytes: self.bytes,
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ring::digest::digest;

    use super::*;

    fn snapshot(sectors: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..=250).cycle().take(sectors * 512).collect();
        let hash = digest(&SHA256, &bytes);
        bytes.extend_from_slice(hash.as_ref());
        bytes
    }

    fn check(bytes: &[u8], pieces: &[usize]) -> Result<Checked, NotWhole> {
        let (mut check, mut rest) = (Check::default(), bytes);
        for piece in pieces {
            let (one, other) = rest.split_at((*piece).min(rest.len()));
            check.update(one);
            rest = other;
        }
        check.update(rest);
        check.finish()
    }

    proptest! {
        #[test]
        fn whole_snapshot_passes_however_it_is_cut(pieces in prop::collection::vec(0_usize..700, 0..12)) {
            let bytes = snapshot(5);
            let checked = check(&bytes, &pieces).unwrap();
            prop_assert_eq!(checked.bytes, bytes.len() as u64);
            prop_assert_eq!(checked.sha256, hex(digest(&SHA256, &bytes).as_ref()));
        }

        #[test]
        fn flipped_bit_is_found(at in 0_usize..2592, bit in 0_u8..8) {
            let mut bytes = snapshot(5);
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(check(&bytes, &[]), Err(NotWhole::Hash));
        }

        #[test]
        fn cut_snapshot_is_found(length in 0_usize..2592) {
            let bytes = snapshot(5);
            prop_assert!(check(&bytes[..length], &[]).is_err());
        }
    }
}
