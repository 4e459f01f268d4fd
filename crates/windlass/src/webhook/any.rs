//! [`AnyWebhook`]: a webhook of whatever kind, as operators hold it.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};
use windlass_manifests::{Part, Webhook as WebhookFact};

use super::{
    change,
    declare::DeclareWebhook,
    hook::{Settings, Webhook},
    review::{Operation, Review},
    reviewer::{Defaulter, Validator},
    verdict::Verdict,
};
use crate::{Error, Kind, KindInfo, Result, cache::Caches};

/// Answers the `request` of an admission review with a response.
pub(super) type Answer = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value>> + Send + Sync>;

/// Makes something from a webhook's handles.
pub(super) type Build<T> = Arc<dyn Fn(&mut DeclareWebhook) -> T + Send + Sync>;
pub(super) type DefaultOf = Answer;
pub(super) type ValidateOf = Answer;

/// A webhook of any kind; every [`Webhook`] becomes one by `into()`.
pub struct AnyWebhook {
    kind: KindInfo,
    roles: Vec<Role>,
}

/// One of the two things a webhook does, at a path of its own.
pub(super) struct Role {
    fact: WebhookFact,
    build: Build<Answer>,
}

impl Role {
    pub(super) fn defaulter<D: Defaulter>(
        declare: impl Fn(&mut DeclareWebhook) -> Arc<D> + Send + Sync + 'static,
    ) -> Build<Answer> {
        Arc::new(move |handles| {
            let defaulter = declare(handles);
            Arc::new(move |request| {
                let defaulter = Arc::clone(&defaulter);
                async move { default(defaulter.as_ref(), &request).await }.boxed()
            })
        })
    }

    pub(super) fn validator<V: Validator>(
        declare: impl Fn(&mut DeclareWebhook) -> Arc<V> + Send + Sync + 'static,
    ) -> Build<Answer> {
        Arc::new(move |handles| {
            let validator = declare(handles);
            Arc::new(move |request| {
                let validator = Arc::clone(&validator);
                async move { validate(validator.as_ref(), &request).await }.boxed()
            })
        })
    }
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
        let mut roles = Vec::new();
        let (name, settings) = (webhook.name, webhook.settings);
        let fact = |mutating, operations: &[Operation]| {
            fact(&kind, name.as_deref(), &settings, mutating, operations)
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
                build: Role::validator(move |_| Arc::clone(&judges)),
            });
        }
        Self { kind, roles }
    }
}

impl AnyWebhook {
    /// What the manifests say of it.
    pub(crate) fn facts(&self) -> impl Iterator<Item = WebhookFact> + '_ {
        self.roles.iter().map(|role| role.fact.clone())
    }

    /// What it reads.
    pub(crate) fn describe(&self) -> Part {
        let caches = Arc::new(Caches::new(
            "description".into(),
            std::collections::BTreeMap::new(),
            crate::Metrics::default(),
        ));
        let mut declare = DeclareWebhook::new(caches);
        for role in &self.roles {
            (role.build)(&mut declare);
        }
        Part {
            name: self.kind.to_string(),
            purpose: format!("judges {}", self.kind),
            watches: declare.watches,
            rules: declare.rules,
        }
    }

    /// The paths it answers at, with what answers there.
    pub(super) fn bind(&self, caches: &Arc<Caches>) -> Vec<(String, Answer)> {
        let mut declare = DeclareWebhook::new(Arc::clone(caches));
        self.roles
            .iter()
            .map(|role| (role.fact.path.clone(), (role.build)(&mut declare)))
            .collect()
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
