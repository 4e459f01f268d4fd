//! What is counted with when the feature `metrics` is off: nothing. It takes the same calls, so that
//! the code that counts is the same either way.

use std::marker::PhantomData;

#[derive(Clone, Default)]
pub(crate) struct Counter(());

impl Counter {
    #[allow(clippy::unused_self, reason = "the signature of what counts")]
    pub(crate) fn inc(&self) -> u64 {
        0
    }
}

#[derive(Clone, Default)]
pub(crate) struct Gauge(());

#[allow(clippy::unused_self, reason = "the signatures of what counts")]
impl Gauge {
    pub(crate) fn inc(&self) -> i64 {
        0
    }

    pub(crate) fn dec(&self) -> i64 {
        0
    }

    pub(crate) fn set(&self, _: i64) -> i64 {
        0
    }
}

#[derive(Clone)]
pub(crate) struct Histogram;

impl Histogram {
    pub(super) fn new(_: impl IntoIterator<Item = f64>) -> Self {
        Self
    }

    #[allow(clippy::unused_self, reason = "the signature of what counts")]
    pub(crate) fn observe(&self, _: f64) {}
}

pub(super) fn exponential_buckets(_: f64, _: f64, _: u16) -> [f64; 0] {
    []
}

/// Instruments by labels.
pub(super) struct Family<L, M, C = fn() -> M> {
    make: C,
    of: PhantomData<fn(L) -> M>,
}

impl<L, M: Default> Default for Family<L, M> {
    fn default() -> Self {
        Self::new_with_constructor(M::default)
    }
}

impl<L, M, C: Clone> Clone for Family<L, M, C> {
    fn clone(&self) -> Self {
        Self::new_with_constructor(self.make.clone())
    }
}

impl<L, M, C> Family<L, M, C> {
    pub(super) fn new_with_constructor(make: C) -> Self {
        let of = PhantomData;
        Self { make, of }
    }
}

impl<L, M> Family<L, M> {
    pub(super) fn get_or_create(&self, _: &L) -> M {
        (self.make)()
    }

    pub(super) fn get_or_create_owned(&self, _: &L) -> M {
        (self.make)()
    }
}

#[derive(Default)]
pub(super) struct Registry(());

impl Registry {
    #[allow(clippy::unused_self, reason = "the signature of what counts")]
    pub(super) fn register<M>(&mut self, _: &str, _: &str, _: M) {}
}
