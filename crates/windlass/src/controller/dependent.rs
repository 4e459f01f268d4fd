//! [`Dependent`]: objects that belong to another, as a function of it.

use super::observed::Observed;
use crate::{Error, Kind, Result};

/// A function that computes the objects which belong to an object of kind `K`: what
/// [`Controller::dependent`](crate::Controller::dependent) takes.
///
/// The function takes the object, or the object and what was [`Observed`] before it. It returns
/// `T`, `Option<T>`, `Vec<T>`, or a [`Result`] of one of these, where `T` is any kind. `M` tells
/// these apart; it is inferred.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
/// use windlass::{Controller, Error, Observed, Result, Watched};
/// # type App = ConfigMap;
/// # fn name_of(app: &App) -> String { String::new() }
///
/// fn config(app: &App) -> ConfigMap {
///     # ConfigMap::default()
///     // …
/// }
///
/// fn service(app: &App) -> Option<Service> {
///     # None
///     // …
/// }
///
/// fn users(app: &App, observed: &Observed) -> Result<Vec<Secret>> {
///     let Some(root) = observed.get::<Secret>(name_of(app)) else {
///         return Err(Error::waiting("SecretNotFound", "the root password is missing"));
///     };
///     # Ok(Vec::from([root.clone()]))
///     // …
/// }
///
/// Controller::of_existing::<App>()
///     .reads(Secret::referenced_by(name_of))
///     .dependent(config)
///     .dependent(service)
///     .dependent(users);
/// ```
pub trait Dependent<K, M>: Send + Sync + 'static {
    /// The kind of the objects.
    type Kind: Kind;

    /// The objects that should exist.
    fn wanted(&self, object: &K, observed: &Observed) -> Result<Vec<Self::Kind>>;
}

/// Marks a function of the object alone.
pub struct OfObject<M>(std::marker::PhantomData<M>);

/// Marks a function of the object and what was observed.
pub struct OfObserved<M>(std::marker::PhantomData<M>);

impl<K, R, M, F> Dependent<K, OfObject<(R, M)>> for F
where
    F: Fn(&K) -> R + Send + Sync + 'static,
    R: IntoObjects<M>,
{
    type Kind = R::Kind;

    fn wanted(&self, object: &K, _: &Observed) -> Result<Vec<R::Kind>> {
        self(object).into_objects()
    }
}

impl<K, R, M, F> Dependent<K, OfObserved<(R, M)>> for F
where
    F: Fn(&K, &Observed) -> R + Send + Sync + 'static,
    R: IntoObjects<M>,
{
    type Kind = R::Kind;

    fn wanted(&self, object: &K, observed: &Observed) -> Result<Vec<R::Kind>> {
        self(object, observed).into_objects()
    }
}

/// What a dependent may return. `M` tells the impls apart, because a type that is no kind today
/// could become one.
pub trait IntoObjects<M> {
    /// The kind of the objects.
    type Kind: Kind;

    /// The objects, however many there are.
    fn into_objects(self) -> Result<Vec<Self::Kind>>;
}

/// Marks one object.
pub struct One;

/// Marks an object that may be wanted or not.
pub struct Maybe;

/// Marks any number of objects.
pub struct Many;

/// Marks objects that may not be had (yet).
pub struct Fallible<M>(std::marker::PhantomData<M>);

impl<T: Kind> IntoObjects<One> for T {
    type Kind = T;

    fn into_objects(self) -> Result<Vec<T>> {
        Ok(vec![self])
    }
}

impl<T: Kind> IntoObjects<Maybe> for Option<T> {
    type Kind = T;

    fn into_objects(self) -> Result<Vec<T>> {
        Ok(self.into_iter().collect())
    }
}

impl<T: Kind> IntoObjects<Many> for Vec<T> {
    type Kind = T;

    fn into_objects(self) -> Result<Vec<T>> {
        Ok(self)
    }
}

impl<M, R: IntoObjects<M>, E: Into<Error>> IntoObjects<Fallible<M>> for Result<R, E> {
    type Kind = R::Kind;

    fn into_objects(self) -> Result<Vec<R::Kind>> {
        self.map_err(Into::into)?.into_objects()
    }
}
