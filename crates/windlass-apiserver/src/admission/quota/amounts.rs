//! Amounts of several things, by name.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::quantity::Quantity;

/// How much of each thing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Amounts(BTreeMap<String, Quantity>);

impl Amounts {
    /// Reads a map of quantities; what is none is left out.
    pub(super) fn read(map: &Value) -> Self {
        let map = map.as_object().into_iter().flatten();
        Self(
            map.filter_map(|(name, text)| Some((name.clone(), Quantity::parse(text.as_str()?)?)))
                .collect(),
        )
    }

    pub(super) fn write(&self) -> Value {
        let all = self.0.iter();
        all.map(|(name, amount)| (name.clone(), Value::from(amount.to_string())))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    pub(super) fn set(&mut self, name: impl Into<String>, amount: Quantity) {
        self.0.insert(name.into(), amount);
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What is in the other, too.
    pub(super) fn only(&self, other: &Self) -> Self {
        let kept = self.0.iter().filter(|(name, _)| other.has(name));
        Self(kept.map(|(name, amount)| (name.clone(), *amount)).collect())
    }

    pub(super) fn without_zeros(&self) -> Self {
        let kept = self.0.iter().filter(|(_, amount)| !amount.is_zero());
        Self(kept.map(|(name, amount)| (name.clone(), *amount)).collect())
    }

    /// Both together.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        for (name, amount) in &other.0 {
            let known = sum.0.get(name).copied();
            sum.set(name, known.map_or(*amount, |known| known.plus(*amount)));
        }
        sum
    }

    /// By how much it is more than the other; what is less is nothing.
    pub(super) fn beyond(&self, other: &Self) -> Self {
        let more = self.0.iter().map(|(name, amount)| {
            let less = other
                .0
                .get(name)
                .map_or(*amount, |other| amount.minus(*other));
            let less = if less.is_negative() {
                Quantity::ZERO
            } else {
                less
            };
            (name.clone(), less)
        });
        Self(more.collect())
    }

    /// What is more than the other allows; what that does not name, it allows.
    pub(super) fn exceeding(&self, limit: &Self) -> Self {
        let over = |(name, amount): &(&String, &Quantity)| {
            limit.0.get(*name).is_some_and(|limit| *amount > limit)
        };
        let over = self.0.iter().filter(over);
        Self(over.map(|(name, amount)| (name.clone(), *amount)).collect())
    }

    /// The names of what is less than nothing.
    pub(super) fn negative(&self) -> Vec<&str> {
        let negative = self.0.iter().filter(|(_, amount)| amount.is_negative());
        negative.map(|(name, _)| name.as_str()).collect()
    }
}

impl fmt::Display for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, amount)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{name}={amount}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn amounts() -> impl Strategy<Value = Amounts> {
        let one = ("[abc]", "[0-9]{1,4}(m|k|Ki|Mi|)");
        proptest::collection::vec(one, 0..5).prop_map(|list| {
            let map = list.into_iter();
            let map = map.map(|(name, text)| (name, Value::from(text)));
            Amounts::read(&Value::Object(map.collect()))
        })
    }

    proptest! {
        #[test]
        fn what_is_added_is_beyond_what_was(used in amounts(), more in amounts()) {
            let sum = used.plus(&more);
            prop_assert_eq!(sum.beyond(&used).only(&more).without_zeros(), more.without_zeros());
            prop_assert!(used.exceeding(&sum).is_empty());
            prop_assert!(used.beyond(&sum).without_zeros().is_empty());
        }

        #[test]
        fn what_fits_a_limit_never_exceeds_it(used in amounts(), asked in amounts(), hard in amounts()) {
            // However often something that fits is added, the limit holds.
            let mut used = used.only(&hard);
            if used.exceeding(&hard).is_empty() {
                for _ in 0..4 {
                    let new = used.plus(&asked.only(&hard));
                    if new.exceeding(&hard).is_empty() {
                        used = new;
                    }
                    prop_assert!(used.exceeding(&hard).is_empty());
                }
            }
        }

        #[test]
        fn amounts_survive_being_written(amounts in amounts()) {
            prop_assert_eq!(Amounts::read(&amounts.write()), amounts);
        }
    }

    #[test]
    fn amounts_are_shown_by_name() {
        let amounts = Amounts::read(&json!({"pods": "3", "cpu": "1500m", "bad": 1}));
        assert_eq!(amounts.to_string(), "cpu=1500m,pods=3");
        assert_eq!(
            amounts
                .only(&Amounts::read(&json!({"pods": "0"})))
                .to_string(),
            "pods=3"
        );
    }
}
