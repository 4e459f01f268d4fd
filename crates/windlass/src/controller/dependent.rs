//! [`Dependent`]: an object that belongs to another, as a function of it.

use crate::Kind;

/// A function from an object to an object that belongs to it, perhaps under a condition.
pub trait Dependent<K>: Send + Sync {
    /// The dependent's kind.
    type Kind: Kind;

    /// The dependent as it should be, or none if there should not be one.
    fn wanted(&self, object: &K) -> Option<Self::Kind>;
}

impl<K: Kind, D: Kind, F: Fn(&K) -> D + Send + Sync> Dependent<K> for F {
    type Kind = D;

    fn wanted(&self, object: &K) -> Option<D> {
        Some(self(object))
    }
}

/// Adds conditions to dependents.
pub trait DependentExt<K: Kind, D: Kind>: Fn(&K) -> D + Sized {
    /// Wanted only where the condition holds; deleted where it does not.
    fn when<P: Fn(&K) -> bool>(self, condition: P) -> When<Self, P> {
        When {
            dependent: self,
            condition,
        }
    }
}

impl<K: Kind, D: Kind, F: Fn(&K) -> D> DependentExt<K, D> for F {}

/// A dependent that is wanted only under a condition. Made by [`DependentExt::when`].
#[derive(Clone, Debug)]
pub struct When<F, P> {
    dependent: F,
    condition: P,
}

impl<K, D, F, P> Dependent<K> for When<F, P>
where
    K: Kind,
    D: Kind,
    F: Fn(&K) -> D + Send + Sync,
    P: Fn(&K) -> bool + Send + Sync,
{
    type Kind = D;

    fn wanted(&self, object: &K) -> Option<D> {
        (self.condition)(object).then(|| (self.dependent)(object))
    }
}
