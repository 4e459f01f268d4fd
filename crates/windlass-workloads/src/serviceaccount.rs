//! The ServiceAccount controller: every namespace has an account for pods that name none.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::{
    Action, Context, Controller, Declare, Key, Reconciler, Result, Watched,
    handle::{Access, Reads, Verb, Writes},
};

use crate::cause;

/// The account of pods that name none.
const NAME: &str = "default";

/// The controller that gives each namespace its account.
pub(crate) fn controller() -> Controller<Namespace> {
    Controller::of_existing::<Namespace>()
        .named("serviceaccount")
        .reconciler(ServiceAccounts::declare)
}

struct ServiceAccounts {
    accounts: Reads<ServiceAccount>,
    created: Writes<ServiceAccount>,
}

impl ServiceAccounts {
    fn declare(declare: &mut Declare<Namespace>) -> Self {
        Self {
            accounts: declare.reads(ServiceAccount::mapped_to(|account: &ServiceAccount| {
                let is_default = account.metadata.name.as_deref() == Some(NAME);
                account
                    .metadata
                    .namespace
                    .as_deref()
                    .filter(|_| is_default)
                    .map(Key::cluster)
                    .into_iter()
                    .collect()
            })),
            created: declare.writes(Access::to([Verb::Create])),
        }
    }
}

impl Reconciler for ServiceAccounts {
    type Object = Namespace;

    async fn reconcile(&self, _: &Namespace, ctx: &Context<Namespace>) -> Result<Action> {
        let namespace = ctx.key().name();
        if self.accounts.get(ctx, (namespace, NAME)).await?.is_none() {
            let account = ServiceAccount {
                metadata: ObjectMeta {
                    name: Some(NAME.to_owned()),
                    namespace: Some(namespace.to_owned()),
                    ..ObjectMeta::default()
                },
                ..ServiceAccount::default()
            };
            cause::unless_pointless(self.created.create(ctx, &account).await)?;
        }
        Ok(Action::done())
    }
}
