//! The one source of randomness.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

/// Consonants and digits that cannot spell a word or be mistaken for one another, as Kubernetes
/// uses them in generated names.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A seeded source of randomness; clones draw from the same sequence.
#[derive(Clone)]
pub struct Random(Arc<Mutex<ChaCha8Rng>>);

impl Random {
    /// A source that always yields the same sequence for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(seed))))
    }

    /// The next 64 random bits.
    pub fn bits(&self) -> u64 {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next_u64()
    }

    /// A number from zero up to, but not including, `limit`; zero when `limit` is zero.
    pub fn below(&self, limit: u64) -> u64 {
        // The bias of a remainder is at most limit / 2^64: nothing for names and jitter.
        self.bits().checked_rem(limit).unwrap_or(0)
    }

    /// A suffix of `length` letters for a generated name.
    pub fn suffix(&self, length: usize) -> String {
        (0..length)
            .map(|_| {
                let at = usize::try_from(self.below(SUFFIX.len() as u64)).unwrap_or(0);
                char::from(SUFFIX[at])
            })
            .collect()
    }
}

impl Default for Random {
    /// A source seeded from the machine.
    fn default() -> Self {
        Self::seeded(rand::rng().next_u64())
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
    fn a_seed_replays() {
        let (one, two) = (Random::seeded(7), Random::seeded(7));
        assert_eq!(one.suffix(5), two.suffix(5));
        assert_ne!(one.suffix(10), Random::seeded(8).suffix(10));
    }

    #[test]
    fn clones_share_the_sequence() {
        let one = Random::seeded(7);
        let two = one.clone();
        assert_ne!(one.bits(), two.bits());
    }
}
