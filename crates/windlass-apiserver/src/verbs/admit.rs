//! Who has a say in a write: mutating webhooks before it is prepared, policies and validating
//! webhooks before it is stored.

use serde_json::{Value, json};

use super::{Call, form, options};
use crate::admission;
use crate::decode::{self, DecodeError};
use crate::object::{meta, set_meta};
use crate::policy;
use crate::registry::resource::Resource;
use crate::status::{ApiError, Result, Subject, field};
use crate::webhook::{self, Attributes, Operation};

/// What a write does to which object.
#[derive(Clone, Copy)]
pub(super) struct Admitted<'a> {
    pub(super) operation: Operation,
    pub(super) subresource: &'a str,
    /// The name of the request: empty while it is still to be generated, and for collections.
    pub(super) name: &'a str,
    pub(super) old: Option<&'a Value>,
    pub(super) options: &'a Value,
    pub(super) dry_run: bool,
}

impl<'a> Admitted<'a> {
    pub(super) fn create(call: &'a Call<'_>, name: &'a str, options: &'a Value) -> Self {
        Self {
            operation: Operation::Create,
            subresource: "",
            name,
            old: None,
            options,
            dry_run: call.dry_run,
        }
    }

    pub(super) fn update(
        call: &'a Call<'_>,
        subresource: &'a str,
        old: &'a Value,
        options: &'a Value,
    ) -> Self {
        Self {
            operation: Operation::Update,
            subresource,
            name: call.name(),
            old: Some(old),
            options,
            dry_run: call.dry_run,
        }
    }
}

fn attributes<'a>(call: &'a Call<'_>, admitted: &Admitted<'a>) -> Attributes<'a> {
    Attributes {
        server: call.server,
        who: call.who,
        resource: &call.resource,
        subresource: admitted.subresource,
        operation: admitted.operation,
        // A namespace is in itself.
        namespace: if call.resource.strategy.is_namespace() {
            admitted.name
        } else {
            call.namespace()
        },
        name: admitted.name,
        old: admitted.old,
        options: admitted.options,
        dry_run: admitted.dry_run,
        warnings: &call.warnings,
    }
}

/// Lets webhooks change the object.
pub(super) async fn mutate(
    call: &Call<'_>,
    admitted: &Admitted<'_>,
    object: Option<&mut Value>,
) -> Result<()> {
    let attributes = attributes(call, admitted);
    // What is made below an object, or beside one, is new content as well.
    let below = !admitted.subresource.is_empty() || call.resource.strategy.binds_pods();
    if admitted.operation == Operation::Create && below {
        check_namespace(call, admitted.name)?;
    }
    let built_in = |object: &mut Value| match admitted.operation {
        Operation::Create if admitted.subresource.is_empty() => {
            admission::admit(call.server, &call.resource, call.namespace(), object)
        }
        Operation::Update => {
            if let Some(old) = admitted.old {
                admission::admit_change(&call.resource, admitted.subresource, object, old);
            }
            Ok(())
        }
        _ => Ok(()),
    };
    let settle = |object: &mut Value| {
        if attributes.has_own_body() {
            let (group, version, kind) = attributes.kind();
            return decode::check_body(object, &group, &version, &kind)
                .map_err(|why| webhook::internal_error(&why.to_string()));
        }
        settle_patched(&call.resource, object)
    };
    webhook::mutate(&attributes, object, &built_in, &settle).await
}

/// Lets webhooks change what is posted to a subresource.
pub(crate) async fn mutate_posted(
    call: &Call<'_>,
    subresource: &str,
    body: &mut Value,
) -> Result<()> {
    let options = options::shown(&call.query, "CreateOptions");
    let admitted = Admitted {
        subresource,
        ..Admitted::create(call, call.name(), &options)
    };
    mutate(call, &admitted, Some(body)).await
}

/// Asks whether what is posted to a subresource may be done.
pub(crate) async fn judge_posted(call: &Call<'_>, subresource: &str, body: &Value) -> Result<()> {
    let options = options::shown(&call.query, "CreateOptions");
    let admitted = Admitted {
        subresource,
        ..Admitted::create(call, call.name(), &options)
    };
    judge(call, &admitted, Some(body)).await
}

/// Nothing is made in a namespace that is missing or going.
pub(crate) fn check_namespace(call: &Call<'_>, name: &str) -> Result<()> {
    let store = call.server.store();
    admission::namespace_lifecycle(store, &call.resource, call.namespace(), name)
}

/// Brings what a webhook made of an object back into stored form.
fn settle_patched(resource: &Resource, object: &mut Value) -> Result<()> {
    if !object.is_object() {
        return Err(webhook::internal_error(
            &DecodeError::not_an_object(object).to_string(),
        ));
    }
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    if resource.is_custom() && kind != resource.kind {
        let must = format!("must be {}", resource.kind);
        let subject = Subject {
            group: &resource.group,
            kind: &kind,
        };
        let cause = field::invalid("kind", &object["kind"], &must);
        return Err(ApiError::invalid(subject, meta(object, "name"), &[cause]));
    }
    let forgotten = object["metadata"]["managedFields"] == json!([]);
    decode::normalise(object, resource).map_err(|why| webhook::internal_error(&why.to_string()))?;
    if forgotten {
        set_meta(object, "managedFields", None);
    }
    form::fill_defaults(resource, object);
    Ok(())
}

/// Asks policies, webhooks and quotas whether the object may be stored as it is.
pub(super) async fn judge(
    call: &Call<'_>,
    admitted: &Admitted<'_>,
    object: Option<&Value>,
) -> Result<()> {
    let attributes = attributes(call, admitted);
    admission::judge(&attributes, object)?;
    policy::validate(&attributes, object).await?;
    webhook::validate(&attributes, object).await?;
    admission::quota::admit(&attributes, object)
}
