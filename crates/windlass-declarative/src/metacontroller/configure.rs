//! Controllers that are configured by objects: they start, change and stop with them.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Secret, Service},
        discovery::v1::EndpointSlice,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::core::{Expression, PartialObjectMeta, Selector};
use serde_json::{Value, json};
use windlass::{
    Action, Context, Declare, Reconciler, Result, Watched,
    handle::{Access, Controllers, Interest, Raw, Verb, Watches},
    hash_of,
    kind::{Key, Kind, KindInfo},
    watch::Select,
};

use super::{
    Options,
    controllers::{Configures, Resolved},
    kinds::{CompositeController, DecoratorController, ResourceRule},
    resolve::{Found, Named, Said},
};

/// How soon a kind that is not served is asked for again, if its definition does not change before.
const ABSENT: Duration = Duration::from_secs(30);

/// Everything that a controller it starts may need: what these do is in objects, and not known
/// when the role is made.
const EVERYTHING: [Verb; 7] = [
    Verb::Get,
    Verb::List,
    Verb::Watch,
    Verb::Create,
    Verb::Update,
    Verb::Patch,
    Verb::Delete,
];

/// Starts and stops the controllers that the objects of a kind describe.
pub(super) struct Configured {
    controllers: Controllers,
    watches: Watches,
    raw: Raw,
    options: Arc<Options>,
}

impl Configured {
    fn declare<C: Kind>(declare: &mut Declare<C>, options: &Arc<Options>) -> Self {
        // A definition that comes later makes a controller possible.
        type Definition = PartialObjectMeta<CustomResourceDefinition>;
        declare.reads(Definition::triggering_all().metadata_only());
        let read = [
            Access::of::<Secret>(Verb::READ),
            Access::of::<ConfigMap>(Verb::READ),
            Access::of::<Service>(Verb::READ),
            Access::of::<EndpointSlice>(Verb::READ),
        ];
        Self {
            controllers: declare.controllers([Access::everything(EVERYTHING)]),
            watches: declare.watches(read),
            raw: declare.raw([]),
            options: Arc::clone(options),
        }
    }

    async fn configure<C: Configures>(&self, object: &C, ctx: &Context<C>) -> Result<Action> {
        let name = C::PREFIX.to_owned() + ctx.key().name();
        let client = self.raw.client(ctx);
        let mut kinds = Vec::new();
        for ResourceRule {
            api_version,
            resource,
        } in object.rules()
        {
            match KindInfo::discover_resource(&client, &api_version, &resource).await {
                Ok(kind) => kinds.push(kind),
                Err(error) => {
                    // What is not there cannot be watched, and nothing is known to be wrong.
                    self.stop_from(&name, 0).await;
                    let waiting = Action::waiting("KindNotServed", error.to_string());
                    return Ok(waiting.requeue_after(ABSENT));
                }
            }
        }
        let said = Said {
            hooks: object.hooks(),
            endpoints: object.endpoints(),
            exec: self.options.exec,
            transport: &self.options.transport,
        };
        let found = self.find(ctx, &said.named()).await?;
        let resolved = said.callers(&found).and_then(|callers| {
            // Whatever changes of these makes another controller.
            let about = json!({
                "controller": object.value(),
                "kinds": kinds.iter().map(describe).collect::<Vec<Value>>(),
                "found": found.iter().map(|((kind, key), value)| {
                    json!([format!("{kind:?} {key}"), relevant(*kind, value)])
                }).collect::<Vec<Value>>(),
            });
            let resolved = Resolved { kinds, callers };
            Ok((hash_of(&about), object.check().map(|()| resolved)?))
        });
        match resolved {
            Ok((version, resolved)) => {
                let controllers = object.controllers(resolved, &name);
                self.stop_from(&name, controllers.len()).await;
                for (nth, controller) in controllers.into_iter().enumerate() {
                    let name = format!("{name}#{nth}");
                    self.controllers
                        .run(ctx, &name, &version, move || controller.into())
                        .await?;
                }
                Ok(Action::done())
            }
            Err(why) => {
                self.stop_from(&name, 0).await;
                Ok(Action::waiting("InvalidHooks", why))
            }
        }
    }

    /// Stops the controllers of a configuration, from the one of this number on.
    async fn stop_from(&self, name: &str, first: usize) {
        for running in self.controllers.running() {
            let Some((of, number)) = running.rsplit_once('#') else {
                continue;
            };
            if of == name && number.parse().is_ok_and(|number: usize| number >= first) {
                self.controllers.stop(&running).await;
            }
        }
    }

    /// Looks at the objects that hooks name, and watches them.
    async fn find<C: Kind>(
        &self,
        ctx: &Context<C>,
        named: &BTreeSet<(Named, Key)>,
    ) -> Result<Found> {
        let mut found = Found::new();
        let mut used = BTreeSet::new();
        for (of, kind) in [
            (Named::Secret, KindInfo::of::<Secret>()),
            (Named::ConfigMap, KindInfo::of::<ConfigMap>()),
            (Named::Service, KindInfo::of::<Service>()),
            (Named::Slices, KindInfo::of::<EndpointSlice>()),
        ] {
            let keys: Vec<&Key> = named
                .iter()
                .filter(|(kind, _)| *kind == of)
                .map(|(_, key)| key)
                .collect();
            if keys.is_empty() {
                continue;
            }
            used.insert(kind.clone());
            let interest = |key: &&Key| {
                let all = Interest::all().namespace(key.namespace().unwrap_or_default());
                match of {
                    Named::Slices => all.labels(&slices_of(key)),
                    _ => all.name(key.name()),
                }
            };
            let interests = keys.iter().map(interest).collect();
            let reads = self.watches.start_for(ctx, &kind, interests).await?;
            for key in keys {
                let value = if of == Named::Slices {
                    let namespace = key.namespace().unwrap_or_default();
                    let select = Select::labels(slices_of(key)).in_namespace(namespace);
                    let slices = reads.list(ctx, select).await?;
                    let slices = slices.iter().map(|slice| serde_json::to_value(&**slice));
                    let slices: Result<Vec<Value>, _> = slices.collect();
                    Some(slices.map_err(windlass::Error::other)?.into())
                } else {
                    let object = reads.get(ctx, key).await?;
                    let value = object.map(|object| serde_json::to_value(&*object));
                    value.transpose().map_err(windlass::Error::other)?
                };
                if let Some(value) = value {
                    found.insert((of, key.clone()), value);
                }
            }
        }
        self.watches.keep_only(ctx, &used);
        Ok(found)
    }
}

fn slices_of(service: &Key) -> Selector {
    let label = "kubernetes.io/service-name".to_owned();
    [Expression::Equal(label, service.name().to_owned())]
        .into_iter()
        .collect()
}

fn describe(kind: &KindInfo) -> Value {
    json!([kind.to_string(), kind.kind, kind.version, kind.namespaced])
}

/// What of an object a hook depends on.
fn relevant(kind: Named, value: &Value) -> Value {
    match kind {
        Named::Secret | Named::ConfigMap => value["data"].clone(),
        Named::Service => value["spec"]["ports"].clone(),
        Named::Slices => {
            let slices = value.as_array().into_iter().flatten();
            let of = |slice: &Value| {
                let endpoints = slice["endpoints"].as_array().into_iter().flatten();
                let endpoints =
                    endpoints.map(|one| json!([one["addresses"], one["conditions"]["ready"]]));
                json!([slice["ports"], endpoints.collect::<Vec<Value>>()])
            };
            slices.map(of).collect()
        }
    }
}

macro_rules! reconcilers {
    ($($name:ident: $kind:ty;)*) => {$(
        /// Starts and stops the controllers that objects of the kind describe.
        pub(super) struct $name(Configured);

        impl $name {
            pub(super) fn declare(declare: &mut Declare<$kind>, options: &Arc<Options>) -> Self {
                Self(Configured::declare(declare, options))
            }
        }

        impl Reconciler for $name {
            type Object = $kind;

            async fn reconcile(&self, object: &$kind, ctx: &Context<$kind>) -> Result<Action> {
                self.0.configure(object, ctx).await
            }

            async fn terminating(&self, _: &$kind, ctx: &Context<$kind>) -> Result<Action> {
                self.gone(ctx.key()).await?;
                Ok(Action::done())
            }

            async fn gone(&self, key: &Key) -> Result<()> {
                let name = <$kind as Configures>::PREFIX.to_owned() + key.name();
                self.0.stop_from(&name, 0).await;
                Ok(())
            }
        }
    )*};
}

reconcilers! {
    Composites: CompositeController;
    Decorators: DecoratorController;
}
