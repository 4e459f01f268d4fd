//! [`Predicate`]: which changes are worth a reconcile.
//!
//! A predicate sees the object before and after the change. Those by name look only at metadata
//! that the cache has at hand; [`Predicate::when`] decodes the objects and asks the author's
//! function. What appears or goes passes every predicate by name: they are about changes.

use std::{
    fmt,
    marker::PhantomData,
    ops::Not,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tracing::error;

use crate::{
    cache::{CachedObject, Change, Delivered},
    kind::{KindInfo, Object},
};

type Test = Arc<dyn Fn(&Change<'_>) -> bool + Send + Sync>;

/// Which changes of objects of kind `T` wake somebody.
pub struct Predicate<T> {
    test: Test,
    kind: PhantomData<fn(&T)>,
}

impl<T: Object> Predicate<T> {
    /// The object's desired state changed: `metadata.generation`, which the API server raises with
    /// every change that is not one of metadata or status.
    pub fn generation_changed() -> Self {
        Self::updated(|old, new| old.generation != new.generation)
    }

    /// The labels changed.
    pub fn labels_changed() -> Self {
        Self::updated(|old, new| old.labels != new.labels)
    }

    /// The annotations changed.
    pub fn annotations_changed() -> Self {
        Self::updated(|old, new| old.annotations != new.annotations)
    }

    /// The author's own: given the object before and after; one of them is missing when it appears
    /// or goes.
    pub fn when(test: impl Fn(Option<&T>, Option<&T>) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |change| {
            let (old, new) = (
                typed(change.kind, change.old),
                typed(change.kind, change.new),
            );
            let passes = catch_unwind(AssertUnwindSafe(|| test(old.as_deref(), new.as_deref())));
            passes.unwrap_or_else(|_| {
                error!(kind = %change.kind, "a predicate panicked; the change counts");
                true
            })
        })
    }

    /// Changes that pass both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |change| (self.test)(change) && (other.test)(change))
    }

    /// Changes that pass one of the two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |change| (self.test)(change) || (other.test)(change))
    }

    fn updated(
        differs: impl Fn(&CachedObject, &CachedObject) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |change| match (change.old, change.new) {
            (Some(old), Some(new)) => differs(old, new),
            _ => true,
        })
    }

    fn new(test: impl Fn(&Change<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self {
            test: Arc::new(test),
            kind: PhantomData,
        }
    }
}

impl<T> Predicate<T> {
    pub(crate) fn passes(&self, change: &Change<'_>) -> bool {
        (self.test)(change)
    }
}

/// Changes that do not pass. What appears or goes does not pass the opposite of a predicate by
/// name either: combine with [`or`](Predicate::or) where it should.
impl<T: Object> Not for Predicate<T> {
    type Output = Self;

    fn not(self) -> Self {
        Self::new(move |change| !(self.test)(change))
    }
}

impl<T> Clone for Predicate<T> {
    fn clone(&self) -> Self {
        Self {
            test: Arc::clone(&self.test),
            kind: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Predicate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

fn typed<T: Object>(kind: &KindInfo, object: Option<&Delivered>) -> Option<Arc<T>> {
    let decoded = object?.typed(kind);
    decoded
        .inspect_err(|error| error!(%error, "a predicate cannot read this object"))
        .ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, json};

    use super::*;
    use crate::cache::Examples;

    fn passes(predicate: &Predicate<ConfigMap>, old: Option<Value>, new: Option<Value>) -> bool {
        let kind = KindInfo::of::<ConfigMap>();
        let examples = Examples::default();
        let cached = |value: Value| {
            Delivered::new(Arc::new(CachedObject::new(value, &kind, "us", &examples)))
        };
        let (old, new) = (old.map(cached), new.map(cached));
        predicate.passes(&Change {
            kind: &kind,
            old: old.as_ref(),
            new: new.as_ref(),
            initial: false,
        })
    }

    fn object(generation: i64, label: &str, annotation: &str) -> Value {
        json!({"metadata": {
            "name": "a", "generation": generation,
            "labels": {"l": label}, "annotations": {"a": annotation},
        }})
    }

    #[test]
    fn each_looks_at_its_own_part() {
        let before = || Some(object(1, "x", "x"));
        for (generation, labels, annotations, after) in [
            (false, false, false, object(1, "x", "x")),
            (true, false, false, object(2, "x", "x")),
            (false, true, false, object(1, "y", "x")),
            (false, false, true, object(1, "x", "y")),
        ] {
            let got = |predicate| passes(&predicate, before(), Some(after.clone()));
            assert_eq!(got(Predicate::generation_changed()), generation);
            assert_eq!(got(Predicate::labels_changed()), labels);
            assert_eq!(got(Predicate::annotations_changed()), annotations);
            let either = Predicate::generation_changed().or(Predicate::labels_changed());
            assert_eq!(got(either), generation || labels);
            let both = Predicate::generation_changed().and(Predicate::labels_changed());
            assert!(!got(both));
            assert_eq!(got(!Predicate::generation_changed()), !generation);
        }
        assert!(passes(&Predicate::generation_changed(), None, before()));
        assert!(passes(&Predicate::generation_changed(), before(), None));
    }

    #[test]
    fn an_authors_predicate_sees_both_sides_and_may_panic() {
        let grew = Predicate::when(|old: Option<&ConfigMap>, new: Option<&ConfigMap>| {
            let generation = |map: &ConfigMap| map.metadata.generation.unwrap();
            old.map(generation) < new.map(generation)
        });
        assert!(passes(
            &grew,
            Some(object(1, "", "")),
            Some(object(2, "", ""))
        ));
        assert!(!passes(
            &grew,
            Some(object(2, "", "")),
            Some(object(1, "", ""))
        ));
        let panics = Predicate::when(|_, _| panic!("as asked"));
        assert!(passes(&panics, None, Some(object(1, "", ""))));
    }
}
