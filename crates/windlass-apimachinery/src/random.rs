//! The one source of randomness: uids, generated name suffixes, watch time limits.
//!
//! A seeded source makes a test's request log repeatable.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Kubernetes' alphabet for generated names: no vowels, nothing that reads like another letter.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many characters `generateName` adds.
pub const SUFFIX_LENGTH: usize = 5;

/// A shared source of random values.
#[derive(Clone)]
pub struct Random(Arc<Mutex<ChaCha8Rng>>);

impl Random {
    /// Seeded by the operating system.
    pub fn from_system() -> Self {
        Self(Arc::new(Mutex::new(ChaCha8Rng::from_rng(&mut rand::rng()))))
    }

    /// The same values every time.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(seed))))
    }

    fn with<T>(&self, draw: impl FnOnce(&mut ChaCha8Rng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A version 4 UUID.
    pub fn uid(&self) -> String {
        let mut bytes = [0_u8; 16];
        self.with(|rng| rng.fill_bytes(&mut bytes));
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex = |range: std::ops::Range<usize>| {
            bytes[range].iter().fold(String::new(), |mut out, byte| {
                use std::fmt::Write as _;
                let _ = write!(out, "{byte:02x}");
                out
            })
        };
        format!(
            "{}-{}-{}-{}-{}",
            hex(0..4),
            hex(4..6),
            hex(6..8),
            hex(8..10),
            hex(10..16)
        )
    }

    /// The suffix of a generated name.
    pub fn name_suffix(&self) -> String {
        self.suffix(SUFFIX_LENGTH)
    }

    /// A suffix of so many letters for a generated name.
    pub fn suffix(&self, length: usize) -> String {
        self.with(|rng| {
            (0..length)
                .map(|_| char::from(SUFFIX_ALPHABET[rng.random_range(0..SUFFIX_ALPHABET.len())]))
                .collect()
        })
    }

    /// The next 64 random bits.
    pub fn bits(&self) -> u64 {
        self.with(Rng::next_u64)
    }

    /// A number from zero up to, but not including, `limit`; zero when `limit` is zero.
    pub fn below(&self, limit: u64) -> u64 {
        // The bias of a remainder is at most limit / 2^64: nothing for names and jitter.
        self.bits().checked_rem(limit).unwrap_or(0)
    }

    /// A number in `low..high`.
    pub fn between(&self, low: u64, high: u64) -> u64 {
        self.with(|rng| rng.random_range(low..high.max(low + 1)))
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::from_system()
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let (a, b) = (Random::seeded(7), Random::seeded(7));
        assert_eq!((a.uid(), a.name_suffix()), (b.uid(), b.name_suffix()));
        assert_ne!(a.uid(), Random::seeded(8).uid());
    }

    #[test]
    fn clones_share_the_sequence() {
        let one = Random::seeded(7);
        let two = one.clone();
        assert_ne!(one.bits(), two.bits());
    }

    #[test]
    fn a_uid_is_a_version_4_uuid() {
        let uid = Random::seeded(1).uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
    }
}
