//! Operators small enough to see what they do: a Secret is a wish, `ConfigMaps` are what comes of it.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ObjectMeta;
use windlass::{
    Action, Context, Controller, Declare, Error, Operator, Reconciler, Result,
    handle::{Controlled, Owned},
};

/// A Secret of that name.
pub(crate) fn wish(name: &str) -> Secret {
    Secret {
        metadata: named(name),
        ..Secret::default()
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

pub(crate) fn map(ctx: &Context<Secret>, suffix: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            namespace: ctx.key().namespace().map(str::to_owned),
            ..named(&format!("{}-{suffix}", ctx.key().name()))
        },
        ..ConfigMap::default()
    }
}

/// Applies two `ConfigMaps` per Secret, whatever has happened before.
pub(crate) fn diligent() -> Operator {
    struct Diligent(Owned<ConfigMap>);

    impl Reconciler for Diligent {
        type Object = Secret;

        async fn reconcile(&self, _: &Secret, ctx: &Context<Secret>) -> Result<Action> {
            self.0.apply(ctx, map(ctx, "first")).await?;
            self.0.apply(ctx, map(ctx, "second")).await?;
            Ok(Action::done())
        }
    }

    let declare = |declare: &mut Declare<Secret>| Diligent(declare.owns());
    Operator::new("diligent").controller(Controller::of_existing().reconciler(declare))
}

/// Creates two `ConfigMaps` per Secret, and takes the first one for the sign that both are there.
pub(crate) fn hasty() -> Operator {
    struct Hasty(Controlled<ConfigMap>);

    impl Reconciler for Hasty {
        type Object = Secret;

        async fn reconcile(&self, _: &Secret, ctx: &Context<Secret>) -> Result<Action> {
            if self.0.list(ctx).await?.is_empty() {
                self.0.create(ctx, map(ctx, "first")).await?;
                self.0.create(ctx, map(ctx, "second")).await?;
            }
            Ok(Action::done())
        }
    }

    let declare = |declare: &mut Declare<Secret>| Hasty(declare.controls());
    Operator::new("hasty").controller(Controller::of_existing().reconciler(declare))
}

/// Fails, whatever it is asked.
pub(crate) fn hopeless() -> Operator {
    struct Hopeless;

    impl Reconciler for Hopeless {
        type Object = Secret;

        async fn reconcile(&self, _: &Secret, _: &Context<Secret>) -> Result<Action> {
            Err(Error::other("it cannot be done"))
        }
    }

    let declare = |_: &mut Declare<Secret>| Hopeless;
    Operator::new("hopeless").controller(Controller::of_existing().reconciler(declare))
}
