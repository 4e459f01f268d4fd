//! [`Parts`]: everything a controller does for one object, in order.
//!
//! A reconcile answers the reads, then runs dependents, templates and reconcilers in the order in
//! which they were declared, prunes what is no longer applied, and sets the status. Dependents are
//! independent of each other: one that fails does not keep the others from being repaired. A
//! reconciler runs only if everything before it succeeded, and what comes after it only if it
//! completed.

use std::{marker::PhantomData, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;

use super::{
    action::Action,
    context::Context,
    dependent::Dependent,
    observed::{Observed, Source},
    reconciler::{Steps, sealed},
};
use crate::{
    Declare, Error, Key, Kind, Result,
    cache::Store,
    declare::{Observer, Wakes, Watch},
    handle::{self, Owned, Reads},
    kind::Object,
    watch::Select,
};

pub(crate) type StatusOf<K> = Arc<dyn Fn(&K, &Observed) -> Result<Value> + Send + Sync>;

/// A part of a controller, before it is bound to a running operator.
pub(crate) trait Part<K>: Send + Sync {
    fn bind(&self, declare: &mut Declare<K>) -> Bound<K>;

    fn has_cleanup(&self) -> bool {
        false
    }

    /// Whether it waits for what is applied before it.
    fn is_stage(&self) -> bool {
        false
    }
}

/// A part of a running controller.
pub(crate) enum Bound<K> {
    Read(Box<dyn Visit<K>>),
    Apply(Box<dyn Visit<K>>),
    Steps(Arc<dyn Steps<K>>),
    /// What comes after waits for what came before.
    Stage,
}

/// A part that only reads, or only applies.
pub(crate) trait Visit<K>: Send + Sync {
    fn visit<'a>(&'a self, object: &'a K, ctx: &'a Context<K>) -> BoxFuture<'a, Result<()>>;
}

/// The parts of a running controller.
pub(crate) struct Parts<K> {
    reads: Vec<Box<dyn Visit<K>>>,
    /// What applies, in the order of its declaration.
    steps: Vec<Bound<K>>,
    status: Option<StatusOf<K>>,
    /// The stores of the kinds whose objects are pruned.
    pruned: Vec<Arc<Store>>,
    observers: Vec<Observer>,
}

impl<K: Object> Parts<K> {
    pub(crate) fn bind(
        parts: &[Box<dyn Part<K>>],
        status: Option<StatusOf<K>>,
        declare: &mut Declare<K>,
    ) -> Self {
        let (mut reads, mut rest) = (Vec::new(), Vec::new());
        for part in parts {
            match part.bind(declare) {
                Bound::Read(read) => reads.push(read),
                other => rest.push(other),
            }
        }
        Self {
            reads,
            steps: rest,
            status,
            pruned: std::mem::take(&mut declare.pruned),
            observers: std::mem::take(&mut declare.observers),
        }
    }

    pub(crate) async fn reconcile(&self, object: &K, ctx: &Context<K>) -> Result<Action> {
        for read in &self.reads {
            read.visit(object, ctx).await?;
        }
        let result = self.run(object, ctx).await;
        let complete = result.as_ref().is_ok_and(Action::is_complete);
        if complete {
            for store in &self.pruned {
                handle::prune(&ctx.session, store).await?;
            }
        }
        if let Some(status) = &self.status {
            self.set_status(status, object, ctx, complete)?;
        }
        result
    }

    async fn run(&self, object: &K, ctx: &Context<K>) -> Result<Action> {
        let mut action = Action::done();
        let mut failure: Option<Error> = None;
        for part in &self.steps {
            match part {
                Bound::Read(part) | Bound::Apply(part) => {
                    if let Err(error) = part.visit(object, ctx).await {
                        // A failure says more than that something else is waited for.
                        let replace = failure.as_ref().is_none_or(Error::is_waiting);
                        if replace && !(failure.is_some() && error.is_waiting()) {
                            failure = Some(error);
                        }
                    }
                }
                Bound::Steps(_) | Bound::Stage if failure.is_some() => break,
                Bound::Stage => {
                    if let Some(why) = ctx.session.not_ready() {
                        return Ok(action.and(Action::waiting("NotReady", why), ctx.clock().now()));
                    }
                }
                Bound::Steps(steps) => {
                    let now = ctx.clock().now();
                    action = action.and(steps.reconcile(object, ctx).await?, now);
                    if !action.is_complete() {
                        break;
                    }
                }
            }
        }
        failure.map_or(Ok(action), Err)
    }

    fn set_status(
        &self,
        status: &StatusOf<K>,
        object: &K,
        ctx: &Context<K>,
        complete: bool,
    ) -> Result<()> {
        let mut observed = ctx.session.observed();
        if !complete {
            // What was not applied this time is there all the same.
            for observer in &self.observers {
                observer(&ctx.session, &mut observed)?;
            }
        }
        let status = status(object, &observed)?;
        drop(observed);
        ctx.session.set_status(status)
    }

    pub(crate) async fn terminating(&self, object: &K, ctx: &Context<K>) -> Result<Action> {
        let mut action = Action::done();
        for steps in self.steps() {
            let next = steps.terminating(object, ctx).await?;
            action = action.and(next, ctx.clock().now());
        }
        Ok(action)
    }

    /// Runs the cleanups, the last first: what was done later may rest on what was done before.
    pub(crate) async fn cleanup(&self, object: &K, ctx: &Context<K>) -> Result<Action> {
        for steps in self.steps().rev() {
            let action = steps.cleanup(object, ctx).await?;
            if !action.is_complete() {
                return Ok(action);
            }
        }
        Ok(Action::done())
    }

    pub(crate) async fn gone(&self, key: &Key) -> Result<()> {
        for steps in self.steps() {
            steps.gone(key).await?;
        }
        Ok(())
    }

    fn steps(&self) -> impl DoubleEndedIterator<Item = &Arc<dyn Steps<K>>> {
        self.steps.iter().filter_map(|part| match part {
            Bound::Steps(steps) => Some(steps),
            Bound::Read(_) | Bound::Apply(_) | Bound::Stage => None,
        })
    }
}

/// A reconciler as a part.
pub(crate) struct ReconcilerPart<F, M> {
    pub(crate) declare: F,
    pub(crate) marker: PhantomData<fn() -> M>,
}

impl<K, R, M, F> Part<K> for ReconcilerPart<F, M>
where
    F: Fn(&mut Declare<K>) -> R + Send + Sync,
    R: sealed::Sealed<K, M>,
{
    fn bind(&self, declare: &mut Declare<K>) -> Bound<K> {
        Bound::Steps((self.declare)(declare).into_steps())
    }

    fn has_cleanup(&self) -> bool {
        R::CLEANUP
    }
}

/// The end of a stage.
pub(crate) struct StagePart;

impl<K> Part<K> for StagePart {
    fn bind(&self, _: &mut Declare<K>) -> Bound<K> {
        Bound::Stage
    }

    fn is_stage(&self) -> bool {
        true
    }
}

/// A dependent as a part.
pub(crate) struct DependentPart<D, M> {
    pub(crate) dependent: Arc<D>,
    pub(crate) marker: PhantomData<fn() -> M>,
}

struct BoundDependent<D, T, M> {
    dependent: Arc<D>,
    owned: Owned<T>,
    marker: PhantomData<fn() -> M>,
}

impl<K: Object, M: 'static, D: Dependent<K, M>> Part<K> for DependentPart<D, M> {
    fn bind(&self, declare: &mut Declare<K>) -> Bound<K> {
        Bound::Apply(Box::new(BoundDependent {
            dependent: Arc::clone(&self.dependent),
            owned: declare.owns::<D::Kind>(),
            marker: PhantomData,
        }))
    }
}

impl<K: Object, M, D: Dependent<K, M>> Visit<K> for BoundDependent<D, D::Kind, M> {
    fn visit<'a>(&'a self, object: &'a K, ctx: &'a Context<K>) -> BoxFuture<'a, Result<()>> {
        async move {
            let wanted = {
                let observed = ctx.session.observed();
                self.dependent.wanted(object, &observed)?
            };
            let mut first_error = None;
            for one in wanted {
                if let Err(error) = self.owned.apply(ctx, one).await {
                    first_error.get_or_insert(error);
                }
            }
            first_error.map_or(Ok(()), Err)
        }
        .boxed()
    }
}

/// Something that is read, as a part.
pub(crate) struct ReadPart<K, T>(pub(crate) Watch<K, T>);

struct BoundRead<K, T> {
    watch: Watch<K, T>,
    reads: Reads<T>,
}

impl<K: Object, T: Kind> Part<K> for ReadPart<K, T> {
    fn bind(&self, declare: &mut Declare<K>) -> Bound<K> {
        Bound::Read(Box::new(BoundRead {
            reads: declare.reads(self.0.clone()),
            watch: self.0.clone(),
        }))
    }
}

impl<K: Object, T: Kind> BoundRead<K, T> {
    async fn read(&self, object: &K, ctx: &Context<K>) -> Result<Vec<Arc<T>>> {
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
                let mut all = self.reads.list(ctx, Select::own_namespace()).await?;
                all.retain(|one| keys(one).contains(ctx.key()));
                Ok(all)
            }
            Wakes::Handled(_) | Wakes::Everyone | Wakes::Nobody(_) => {
                self.reads.list(ctx, Select::own_namespace()).await
            }
        }
    }
}

impl<K: Object, T: Kind> Visit<K> for BoundRead<K, T> {
    fn visit<'a>(&'a self, object: &'a K, ctx: &'a Context<K>) -> BoxFuture<'a, Result<()>> {
        async move {
            let found = self.read(object, ctx).await?;
            let mut observed = ctx.session.observed();
            for one in found {
                observed.add(Source::Read, one);
            }
            Ok(())
        }
        .boxed()
    }
}
