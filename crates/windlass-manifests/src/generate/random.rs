//! Numbers that follow from a seed.

/// A source of numbers: splitmix64, which is small, and good enough to choose test objects.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 when there is none.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or(0)
    }

    pub(super) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A number between two, both included.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        match (most - least).checked_add(1) {
            Some(span) => least + self.below(span),
            None => self.next(),
        }
    }

    /// A number between two, both included: often one of them, or small, where mistakes are.
    pub(super) fn integer(&mut self, least: i64, most: i64) -> i64 {
        if least >= most {
            return least;
        }
        match self.below(6) {
            0 => least,
            1 => most,
            2 => self.within(-10, 10).clamp(least, most),
            3 => self.within(-1000, 1000).clamp(least, most),
            _ => self.within(least, most),
        }
    }

    fn within(&mut self, least: i64, most: i64) -> i64 {
        let span = most.abs_diff(least);
        least.wrapping_add_unsigned(self.between(0, span))
    }

    /// Lower-case letters, so many.
    pub(super) fn word(&mut self, least: u64, most: u64) -> String {
        let length = self.between(least, most.max(least));
        (0..length).map(|_| self.letter()).collect()
    }

    fn letter(&mut self) -> char {
        char::from(b'a' + u8::try_from(self.below(26)).unwrap_or(0))
    }

    /// A character: mostly a letter, sometimes one that is not.
    pub(super) fn character(&mut self) -> char {
        const OTHERS: [char; 8] = [' ', '-', '_', '"', '\\', 'é', '界', '\u{1f6a2}'];
        if self.one_in(6) {
            let at = self.below(OTHERS.len() as u64);
            OTHERS
                .into_iter()
                .nth(usize::try_from(at).unwrap_or(0))
                .unwrap_or(' ')
        } else {
            self.letter()
        }
    }
}
