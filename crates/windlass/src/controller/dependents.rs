//! [`Dependents`]: the short form of a controller, as a reconciler made of its parts.
//!
//! Each reconcile applies every dependent that is wanted, deletes the owned objects that are not
//! wanted any more, reads what is to be observed, and computes the status from all of it.

use std::{collections::BTreeSet, marker::PhantomData, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use kube::ResourceExt;
use serde_json::Value;
use tracing::info;

use super::{
    context::Context, dependent::Dependent, next::Next, observed::Observed, reconciler::Reconciler,
};
use crate::{
    Declare, Event, Key, Kind, KindInfo, Result, Select,
    cache::Store,
    declare::{Wakes, Watch},
    handle::{self, Owned, Reads},
};

/// The short form: dependents and a status, no reconcile function.
pub struct Dependents<K> {
    pub(crate) parts: Vec<Box<dyn Part<K>>>,
    pub(crate) status: Option<StatusOf<K>>,
    /// Whether what happens to dependents is told as events.
    pub(crate) tells: bool,
}

pub(crate) type StatusOf<K> = Arc<dyn Fn(&K, &Observed) -> Result<Value> + Send + Sync>;

/// A dependent or something that is read, before it is bound to a running operator.
pub(crate) trait Part<K>: Send + Sync {
    fn bind(&self, declare: &mut Declare<K>) -> Box<dyn Bound<K>>;
}

/// A part of a running controller.
pub(crate) trait Bound<K>: Send + Sync {
    /// Applies or reads, adds what it saw, and names what is wanted.
    fn visit<'a>(
        &'a self,
        object: &'a K,
        ctx: &'a Context<K>,
        seen: &'a mut Seen,
    ) -> BoxFuture<'a, Result<()>>;

    /// Deletes what is not wanted.
    fn prune<'a>(&'a self, ctx: &'a Context<K>, seen: &'a Seen) -> BoxFuture<'a, Result<()>>;
}

/// What a reconcile has seen so far.
#[derive(Default)]
pub(crate) struct Seen {
    observed: Observed,
    wanted: BTreeSet<(KindInfo, Key)>,
    /// Something could not be read, so that no status can be computed.
    blind: bool,
    /// Whether events tell of it.
    tells: bool,
}

impl Seen {
    /// An object is wanted: it is not to be pruned.
    pub(super) fn wants(&mut self, kind: KindInfo, key: Key) {
        self.wanted.insert((kind, key));
    }

    /// An object of a kind without a type.
    pub(super) fn saw_value(&mut self, object: Value) {
        self.observed.add_value(object);
    }
}

/// The parts bound together: a reconciler.
pub(crate) struct Composed<K> {
    parts: Vec<Box<dyn Bound<K>>>,
    status: Option<StatusOf<K>>,
    tells: bool,
}

impl<K: Kind> Dependents<K> {
    pub(crate) fn bind(&self, declare: &mut Declare<K>) -> Composed<K> {
        let parts = self.parts.iter().map(|part| part.bind(declare)).collect();
        Composed {
            parts,
            status: self.status.clone(),
            tells: self.tells,
        }
    }
}

impl<K: Kind> Reconciler for Composed<K> {
    type Object = K;

    async fn reconcile(&self, object: &K, ctx: &Context<K>) -> Result<Next> {
        let mut seen = Seen {
            tells: self.tells,
            ..Seen::default()
        };
        let mut first_error = None;
        for part in &self.parts {
            // One dependent that is refused should not keep the others from being repaired.
            if let Err(error) = part.visit(object, ctx, &mut seen).await {
                first_error.get_or_insert(error);
            }
        }
        if first_error.is_none() {
            for part in &self.parts {
                part.prune(ctx, &seen).await?;
            }
        }
        if let Some(status) = self.status.as_ref().filter(|_| !seen.blind) {
            let status = status(object, &seen.observed)?;
            match first_error {
                None => ctx.session.give_status(status).await?,
                // Written together with the conditions that say what went wrong.
                Some(_) => ctx.session.suggest_status(status),
            }
        }
        first_error.map_or(Ok(Next::settled()), Err)
    }
}

/// A dependent as a part.
pub(crate) struct DependentPart<D>(pub(crate) Arc<D>);

struct BoundDependent<D, T> {
    dependent: Arc<D>,
    owned: Owned<T>,
}

impl<K: Kind, D: Dependent<K> + 'static> Part<K> for DependentPart<D> {
    fn bind(&self, declare: &mut Declare<K>) -> Box<dyn Bound<K>> {
        let owned: Owned<D::Kind> = declare.applies();
        Box::new(BoundDependent {
            dependent: Arc::clone(&self.0),
            owned,
        })
    }
}

impl<K: Kind, D: Dependent<K>> Bound<K> for BoundDependent<D, D::Kind> {
    fn visit<'a>(
        &'a self,
        object: &'a K,
        ctx: &'a Context<K>,
        seen: &'a mut Seen,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            let Some(wanted) = self.dependent.wanted(object) else {
                return Ok(());
            };
            let name = wanted.name_any();
            let before = if seen.tells {
                self.owned.get(ctx, &name).await?
            } else {
                None
            };
            match self.owned.apply(ctx, wanted).await {
                Ok(live) => {
                    if seen.tells {
                        tell(ctx, before.as_ref(), &live);
                    }
                    seen.wants(KindInfo::of::<D::Kind>(), Key::of(&live));
                    seen.observed.add(Some(live));
                    Ok(())
                }
                Err(error) => {
                    // What could not be changed can still be looked at.
                    let live = self.owned.get(ctx, name).await;
                    seen.observed.add(live.inspect_err(|_| seen.blind = true)?);
                    Err(error)
                }
            }
        }
        .boxed()
    }

    fn prune<'a>(&'a self, ctx: &'a Context<K>, seen: &'a Seen) -> BoxFuture<'a, Result<()>> {
        async move { prune(ctx, self.owned.store(), seen).await }.boxed()
    }
}

/// Deletes the objects of a kind that are not wanted.
pub(super) async fn prune<K: Kind>(ctx: &Context<K>, store: &Store, seen: &Seen) -> Result<()> {
    let kind = &store.kind;
    let wanted = |key: &Key| seen.wanted.contains(&(kind.clone(), key.clone()));
    for key in handle::prune(&ctx.session, store, wanted).await? {
        info!(%kind, %key, "deleted what is not wanted any more");
        if seen.tells {
            let note = format!("deleted {kind} {key}, which is not wanted any more");
            ctx.event(Event::normal("Deleted", note).action("Delete"));
        }
    }
    Ok(())
}

/// Tells what an apply did, if it did anything.
fn tell<K: Kind, T: Kind>(ctx: &Context<K>, before: Option<&T>, live: &T) {
    let what = format!("{} {}", KindInfo::of::<T>(), Key::of(live));
    let event = match before {
        None => Event::normal("Created", format!("created {what}")).action("Create"),
        Some(before) if before.resource_version() != live.resource_version() => {
            Event::normal("Updated", format!("updated {what}")).action("Update")
        }
        Some(_) => return,
    };
    ctx.event(event);
}

/// Something that is read, as a part.
pub(crate) struct ReadPart<K, T>(pub(crate) Watch<K, T>);

struct BoundRead<K, T> {
    watch: Watch<K, T>,
    reads: Reads<T>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind, T: Kind> Part<K> for ReadPart<K, T> {
    fn bind(&self, declare: &mut Declare<K>) -> Box<dyn Bound<K>> {
        let reads = declare.reads(self.0.clone());
        Box::new(BoundRead {
            watch: self.0.clone(),
            reads,
            kind: PhantomData,
        })
    }
}

impl<K: Kind, T: Kind> BoundRead<K, T> {
    async fn read(&self, object: &K, ctx: &Context<K>) -> Result<Vec<T>> {
        match &self.watch.wakes {
            Wakes::Selectors(selector) => self.reads.list(ctx, selector(object)).await,
            Wakes::Referrers(names) => {
                let mut found = Vec::new();
                for name in names(object) {
                    found.extend(self.reads.get(ctx, name).await?);
                }
                Ok(found)
            }
            Wakes::Mapped(keys) => {
                let all = self.reads.list(ctx, Select::all()).await?;
                Ok(all
                    .into_iter()
                    .filter(|one| keys(one).contains(ctx.key()))
                    .collect())
            }
            Wakes::Handled(_) | Wakes::Everyone | Wakes::Nobody(_) => {
                self.reads.list(ctx, Select::all()).await
            }
        }
    }
}

impl<K: Kind, T: Kind> Bound<K> for BoundRead<K, T> {
    fn visit<'a>(
        &'a self,
        object: &'a K,
        ctx: &'a Context<K>,
        seen: &'a mut Seen,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            let read = self.read(object, ctx).await;
            seen.observed.add(read.inspect_err(|_| seen.blind = true)?);
            Ok(())
        }
        .boxed()
    }

    fn prune<'a>(&'a self, _: &'a Context<K>, _: &'a Seen) -> BoxFuture<'a, Result<()>> {
        async { Ok(()) }.boxed()
    }
}
