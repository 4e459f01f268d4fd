//! The root CA publisher: every namespace has the certificate by which pods know the API server.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Key, Reconciler, Result, Watched,
    handle::{Access, Reads, Verb, Writes},
    watch::Scope,
};

use crate::cause;

const NAME: &str = "kube-root-ca.crt";
const ENTRY: &str = "ca.crt";

/// The controller that publishes this certificate (PEM) in each namespace.
pub(crate) fn controller(root_ca: String) -> Controller<Namespace> {
    Controller::of_existing::<Namespace>()
        .named("root-ca")
        .reconciler(move |declare| RootCa::declare(declare, root_ca.clone()))
}

struct RootCa {
    pem: String,
    maps: Reads<ConfigMap>,
    written: Writes<ConfigMap>,
}

impl RootCa {
    fn declare(declare: &mut Declare<Namespace>, root_ca: String) -> Self {
        let of_namespace = ConfigMap::mapped_to(|map: &ConfigMap| {
            let namespace = map.metadata.namespace.as_deref();
            namespace.map(Key::cluster).into_iter().collect()
        });
        // Other maps are many, and none of its business.
        let ours = Scope::all().field("metadata.name", NAME);
        Self {
            pem: root_ca,
            maps: declare.reads(of_namespace.scoped(ours)),
            written: declare.writes(Access::to([Verb::Create, Verb::Patch])),
        }
    }
}

impl Reconciler for RootCa {
    type Object = Namespace;

    async fn reconcile(&self, _: &Namespace, ctx: &Context<Namespace>) -> Result<Action> {
        let namespace = ctx.key().name();
        let data = BTreeMap::from([(ENTRY.to_owned(), self.pem.clone())]);
        match self.maps.get(ctx, (namespace, NAME)).await? {
            Some(map) if map.data.as_ref() != Some(&data) => {
                // Whatever else somebody put there goes: null removes, in a merge patch.
                let mut patch = json!({ "data": null });
                if map.data.is_some() {
                    let others = map
                        .data
                        .iter()
                        .flatten()
                        .map(|(key, _)| (key.clone(), json!(null)));
                    let ours = data.into_iter().map(|(key, pem)| (key, json!(pem)));
                    patch =
                        json!({ "data": others.chain(ours).collect::<serde_json::Map<_, _>>() });
                }
                self.written.patch(ctx, &map, patch).await?;
            }
            Some(_) => {}
            None => {
                let map = ConfigMap {
                    metadata: ObjectMeta {
                        name: Some(NAME.to_owned()),
                        namespace: Some(namespace.to_owned()),
                        ..ObjectMeta::default()
                    },
                    data: Some(data),
                    ..ConfigMap::default()
                };
                cause::unless_pointless(self.written.create(ctx, &map).await)?;
            }
        }
        Ok(Action::done())
    }
}
