//! [`AnyWebhook`]: a webhook of any kind, as operators hold it.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};
use windlass_manifests::{Part, Webhook as WebhookFact};

use super::{
    change,
    hook::{Settings, Webhook},
    review::{Operation, Review},
    reviewer::{Defaulter, Validator},
    verdict::Verdict,
};
use crate::{Declare, Error, Kind, Result, cache::Caches, kind::KindInfo};

/// Answers the `request` of an admission review with a response.
pub(super) type Answer = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value>> + Send + Sync>;

/// Makes something from a webhook's handles.
pub(super) type Build<K, T> = Box<dyn Fn(&mut Declare<Webhook<K>>) -> T + Send + Sync>;

/// Makes what answers at each path, from the caches that it reads.
type Bind = dyn Fn(&Arc<Caches>) -> Vec<(String, Answer)> + Send + Sync;

/// A webhook of any kind; every [`Webhook`] becomes one by `into()`.
pub struct AnyWebhook {
    facts: Vec<WebhookFact>,
    describe: Box<dyn Fn() -> Part + Send + Sync>,
    bind: Box<Bind>,
}

/// One of the two things a webhook does, at a path of its own.
struct Role<K> {
    fact: WebhookFact,
    build: Build<K, Answer>,
}

pub(super) fn defaulter<K: Kind, D: Defaulter<Object = K>>(
    declare: impl Fn(&mut Declare<Webhook<K>>) -> Arc<D> + Send + Sync + 'static,
) -> Build<K, Answer> {
    Box::new(move |handles| {
        let defaulter = declare(handles);
        Arc::new(move |request| {
            let defaulter = Arc::clone(&defaulter);
            async move { default(defaulter.as_ref(), &request).await }.boxed()
        })
    })
}

pub(super) fn validator<K: Kind, V: Validator<Object = K>>(
    declare: impl Fn(&mut Declare<Webhook<K>>) -> Arc<V> + Send + Sync + 'static,
) -> Build<K, Answer> {
    Box::new(move |handles| {
        let validator = declare(handles);
        Arc::new(move |request| {
            let validator = Arc::clone(&validator);
            async move { validate(validator.as_ref(), &request).await }.boxed()
        })
    })
}

async fn default<D: Defaulter>(defaulter: &D, request: &Value) -> Result<Value> {
    let review: Review<D::Object> = Review::read(request)?;
    let Some(mut object) = review.object.clone() else {
        return Ok(json!({"allowed": true}));
    };
    let encode = |object: &D::Object| {
        serde_json::to_value(object).map_err(|source| Error::Codec {
            verb: "encode",
            object: KindInfo::of::<D::Object>().to_string(),
            source,
        })
    };
    let before = encode(&object)?;
    contained(defaulter.default(&mut object, &review)).await?;
    let original = &request["object"];
    let changed = change::carry(original, &before, &encode(&object)?);
    let patch = change::patch(original, &changed);
    let mut response = json!({"allowed": true});
    if !patch.is_empty() {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = crate::webhook::router::base64(&Value::Array(patch).to_string()).into();
    }
    Ok(response)
}

async fn validate<V: Validator>(validator: &V, request: &Value) -> Result<Value> {
    let review: Review<V::Object> = Review::read(request)?;
    let verdict: Verdict = contained(validator.validate(&review)).await?;
    Ok(verdict.response(&KindInfo::of::<V::Object>(), &review.name))
}

/// A panic in the author's code is an error like any other.
async fn contained<T>(work: impl Future<Output = Result<T>> + Send) -> Result<T> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(Error::other(Panicked)))
}

/// The author's code panicked.
#[derive(Debug, thiserror::Error)]
#[error("a webhook panicked")]
pub(super) struct Panicked;

impl<K: Kind> From<Webhook<K>> for AnyWebhook {
    fn from(webhook: Webhook<K>) -> Self {
        let kind = KindInfo::of::<K>();
        let roles = Arc::new(roles(&kind, webhook));
        let described = Arc::clone(&roles);
        Self {
            facts: roles.iter().map(|role| role.fact.clone()).collect(),
            describe: Box::new(move || {
                let mut declare = declare(Arc::new(Caches::of_description()));
                for role in described.iter() {
                    (role.build)(&mut declare);
                }
                Part {
                    name: kind.to_string(),
                    purpose: format!("reviews {kind}"),
                    watches: declare.watches,
                    rules: declare.rules,
                }
            }),
            bind: Box::new(move |caches| {
                let mut declare = declare(Arc::clone(caches));
                let bound = |role: &Role<K>| (role.fact.path.clone(), (role.build)(&mut declare));
                roles.iter().map(bound).collect()
            }),
        }
    }
}

fn declare<K: Kind>(caches: Arc<Caches>) -> Declare<Webhook<K>> {
    Declare::new(
        caches,
        KindInfo::of::<K>().to_string().into(),
        KindInfo::of::<K>(),
    )
}

fn roles<K: Kind>(kind: &KindInfo, webhook: Webhook<K>) -> Vec<Role<K>> {
    let mut roles = Vec::new();
    let (name, settings) = (webhook.name, webhook.settings);
    let fact = |mutating, operations: &[Operation]| {
        fact(kind, name.as_deref(), &settings, mutating, operations)
    };
    if let Some(build) = webhook.defaulter {
        roles.push(Role {
            fact: fact(true, &webhook.defaulting_on),
            build,
        });
    }
    let judges = webhook.judges;
    if let Some((build, operations)) = webhook.validator {
        roles.push(Role {
            fact: fact(false, &operations),
            build,
        });
    } else if judges.stored.is_some() || judges.deleted.is_some() {
        let mut operations = Vec::new();
        if judges.stored.is_some() {
            operations.extend([Operation::Create, Operation::Update]);
        }
        if judges.deleted.is_some() {
            operations.push(Operation::Delete);
        }
        let judges = Arc::new(judges);
        roles.push(Role {
            fact: fact(false, &operations),
            build: validator(move |_| Arc::clone(&judges)),
        });
    }
    roles
}

impl AnyWebhook {
    /// What the manifests say of it.
    pub(crate) fn facts(&self) -> impl Iterator<Item = WebhookFact> + '_ {
        self.facts.iter().cloned()
    }

    /// What it reads.
    pub(crate) fn describe(&self) -> Part {
        (self.describe)()
    }

    /// The paths it answers at, with what answers there.
    pub(super) fn bind(&self, caches: &Arc<Caches>) -> Vec<(String, Answer)> {
        (self.bind)(caches)
    }
}

/// Names and paths follow from the kind, as kubebuilder's do: `/mutate-apps-v1-deployment`.
fn fact(
    kind: &KindInfo,
    name: Option<&str>,
    settings: &Settings,
    mutating: bool,
    operations: &[Operation],
) -> WebhookFact {
    let verb = if mutating { "mutate" } else { "validate" };
    let group = kind.group.replace('.', "-");
    let lower = kind.kind.to_lowercase();
    let sub = settings.subresource.as_deref();
    let mut path = format!("/{verb}-{group}-{}-{lower}", kind.version);
    for part in [sub, name].into_iter().flatten() {
        path.push('-');
        path.push_str(part);
    }
    let group_domain = match kind.group.as_str() {
        "" => "core.k8s.io",
        group => group,
    };
    let own = name.map(|name| format!("{name}.")).unwrap_or_default();
    let sub_name = sub.map(|sub| format!("{sub}.")).unwrap_or_default();
    WebhookFact {
        name: format!("{own}{verb}.{sub_name}{}.{group_domain}", kind.plural),
        mutating,
        path,
        group: kind.group.clone(),
        version: kind.version.clone(),
        resource: match sub {
            Some(sub) => format!("{}/{sub}", kind.plural),
            None => kind.plural.clone(),
        },
        operations: operations
            .iter()
            .filter(|operation| {
                let asked = settings.validating_on.as_ref().filter(|_| !mutating);
                asked.is_none_or(|asked| asked.contains(operation))
            })
            .map(|operation| operation.as_str().to_owned())
            .collect(),
        objects: settings.objects.clone(),
        namespaces: settings.namespaces.clone(),
        ignore_failures: settings.ignore_failures,
        timeout_seconds: settings.timeout_seconds,
    }
}
