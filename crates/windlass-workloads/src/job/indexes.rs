//! Sets of completion indexes, as a Job's status writes them: `1,3-5,7`.

use std::collections::BTreeSet;
use std::fmt;

/// A set of indexes, kept as intervals that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Indexes(Vec<(i32, i32)>);

impl Indexes {
    /// Reads a status; what is beyond `completions` or cannot be read is left out.
    pub(crate) fn parse(text: &str, completions: i32) -> Self {
        let number = |text: &str| text.parse::<i32>().ok().filter(|number| *number >= 0);
        let mut indexes = Self::default();
        for interval in text.split(',').filter(|interval| !interval.is_empty()) {
            let (first, last) = interval.split_once('-').unwrap_or((interval, interval));
            let (Some(first), Some(last)) = (number(first), number(last)) else {
                continue;
            };
            if first < completions {
                indexes.add(first, last.min(completions - 1));
            }
        }
        indexes
    }

    fn add(&mut self, first: i32, last: i32) {
        if last < first {
            return;
        }
        let touches =
            |one: &(i32, i32)| one.0 <= last.saturating_add(1) && first <= one.1.saturating_add(1);
        let touching: Vec<(i32, i32)> = self.0.iter().copied().filter(touches).collect();
        let mut apart: Vec<(i32, i32)> =
            self.0.iter().copied().filter(|one| !touches(one)).collect();
        let first = touching
            .iter()
            .map(|one| one.0)
            .min()
            .unwrap_or(first)
            .min(first);
        let last = touching
            .iter()
            .map(|one| one.1)
            .max()
            .unwrap_or(last)
            .max(last);
        apart.push((first, last));
        apart.sort_unstable();
        self.0 = apart;
    }

    /// With these as well.
    #[must_use]
    pub(crate) fn with(mut self, others: impl IntoIterator<Item = i32>) -> Self {
        for index in others {
            self.add(index, index);
        }
        self
    }

    /// With all of another set.
    #[must_use]
    pub(crate) fn merged(mut self, other: &Self) -> Self {
        for (first, last) in &other.0 {
            self.add(*first, *last);
        }
        self
    }

    /// Whether the index is in the set.
    pub(crate) fn has(&self, index: i32) -> bool {
        self.0
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&index))
    }

    /// How many indexes there are.
    pub(crate) fn total(&self) -> i32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// How many are in both sets.
    pub(crate) fn shared(&self, other: &Self) -> i32 {
        let shared = |a: &(i32, i32), b: &(i32, i32)| (a.1.min(b.1) - a.0.max(b.0) + 1).max(0);
        let pairs = self
            .0
            .iter()
            .flat_map(|a| other.0.iter().map(move |b| shared(a, b)));
        pairs.sum()
    }

    /// The first `count` indexes below `completions` that are not in the set.
    pub(crate) fn missing(&self, completions: i32, count: usize) -> Vec<i32> {
        let taken: BTreeSet<i32> = self
            .0
            .iter()
            .flat_map(|(first, last)| *first..=*last)
            .collect();
        let free = (0..completions).filter(|index| !taken.contains(index));
        free.take(count).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_and_writes_as_kubernetes_does() {
        assert_eq!(Indexes::parse("0,2,4-6", 10).to_string(), "0,2,4-6");
        assert_eq!(Indexes::default().with([1, 2]).to_string(), "1,2");
        assert_eq!(Indexes::default().with([1, 2, 3]).to_string(), "1-3");
        assert_eq!(Indexes::parse("0-20", 5).to_string(), "0-4");
        assert_eq!(Indexes::parse("x,7,3", 5).to_string(), "3");
        assert_eq!(Indexes::parse("", 5).to_string(), "");
    }

    #[test]
    fn missing_indexes_come_in_order() {
        assert_eq!(Indexes::parse("0,2-3", 9).missing(6, 2), [1, 4]);
        assert_eq!(Indexes::parse("0-5", 9).missing(6, 2), [] as [i32; 0]);
    }

    proptest! {
        #[test]
        fn is_a_set(a in prop::collection::btree_set(0..40i32, 0..20), b in prop::collection::btree_set(0..40i32, 0..20)) {
            let of = |set: &BTreeSet<i32>| Indexes::default().with(set.iter().copied());
            let both = of(&a).merged(&of(&b));
            let union: BTreeSet<i32> = a.union(&b).copied().collect();
            prop_assert_eq!(both.total(), i32::try_from(union.len()).unwrap());
            prop_assert!((0..40).all(|index| both.has(index) == union.contains(&index)));
            prop_assert_eq!(&Indexes::parse(&both.to_string(), 40), &both);
            let shared = a.intersection(&b).count();
            prop_assert_eq!(of(&a).shared(&of(&b)), i32::try_from(shared).unwrap());
            let free: Vec<i32> = (0..40).filter(|index| !union.contains(index)).collect();
            prop_assert_eq!(both.missing(40, 40), free);
        }
    }
}
