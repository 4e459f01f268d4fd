//! Who has a say in a write: mutating webhooks before it is prepared, policies and validating
//! webhooks before it is stored.

use serde_json::{Value, json};

use super::Call;
use crate::admission;
use crate::decode;
use crate::object::{meta, set_meta};
use crate::policy;
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

impl Call<'_> {
    fn attributes<'a>(&'a self, admitted: &Admitted<'a>) -> Attributes<'a> {
        Attributes {
            server: self.server,
            who: self.who,
            resource: &self.resource,
            subresource: admitted.subresource,
            operation: admitted.operation,
            // A namespace is in itself.
            namespace: if self.resource.strategy.is_namespace() {
                admitted.name
            } else {
                self.namespace()
            },
            name: admitted.name,
            old: admitted.old,
            options: admitted.options,
            dry_run: admitted.dry_run,
            warnings: &self.warnings,
        }
    }

    /// Lets webhooks change the object.
    pub(super) async fn mutate(
        &self,
        admitted: &Admitted<'_>,
        object: Option<&mut Value>,
    ) -> Result<()> {
        let attributes = self.attributes(admitted);
        // What is made below an object, or beside one, is new content as well.
        let below = !admitted.subresource.is_empty() || self.resource.strategy.binds_pods();
        if admitted.operation == Operation::Create && below {
            self.check_namespace(admitted.name)?;
        }
        let built_in = |object: &mut Value| match admitted.operation {
            Operation::Create if admitted.subresource.is_empty() => {
                admission::admit(self.server, &self.resource, self.namespace(), object)
            }
            Operation::Update => {
                if let Some(old) = admitted.old {
                    admission::admit_change(&self.resource, admitted.subresource, object, old);
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
            self.settle_patched(object)
        };
        webhook::mutate(&attributes, object, &built_in, &settle).await
    }

    /// Lets webhooks change what is posted to a subresource.
    pub(crate) async fn mutate_posted(&self, subresource: &str, body: &mut Value) -> Result<()> {
        let options = self.create_options();
        let admitted = Admitted {
            subresource,
            ..Admitted::create(self, self.name(), &options)
        };
        self.mutate(&admitted, Some(body)).await
    }

    /// Asks whether what is posted to a subresource may be done.
    pub(crate) async fn judge_posted(&self, subresource: &str, body: &Value) -> Result<()> {
        let options = self.create_options();
        let admitted = Admitted {
            subresource,
            ..Admitted::create(self, self.name(), &options)
        };
        self.judge(&admitted, Some(body)).await
    }

    /// Nothing is made in a namespace that is missing or going.
    pub(crate) fn check_namespace(&self, name: &str) -> Result<()> {
        let store = self.server.store();
        admission::namespace_lifecycle(store, &self.resource, self.namespace(), name)
    }

    /// Brings what a webhook made of an object back into stored form.
    fn settle_patched(&self, object: &mut Value) -> Result<()> {
        if !object.is_object() {
            return Err(webhook::internal_error(&decode::not_an_object(object)));
        }
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        if self.resource.is_custom() && kind != self.resource.kind {
            let must = format!("must be {}", self.resource.kind);
            let subject = Subject {
                group: &self.resource.group,
                kind: &kind,
            };
            let cause = field::invalid("kind", &object["kind"], &must);
            return Err(ApiError::invalid(subject, meta(object, "name"), &[cause]));
        }
        let forgotten = object["metadata"]["managedFields"] == json!([]);
        decode::normalise(object, &self.resource)
            .map_err(|why| webhook::internal_error(&why.to_string()))?;
        if forgotten {
            set_meta(object, "managedFields", None);
        }
        self.fill_defaults(object);
        Ok(())
    }

    /// Asks policies, webhooks and quotas whether the object may be stored as it is.
    pub(super) async fn judge(
        &self,
        admitted: &Admitted<'_>,
        object: Option<&Value>,
    ) -> Result<()> {
        let attributes = self.attributes(admitted);
        admission::judge(&attributes, object)?;
        policy::validate(&attributes, object).await?;
        webhook::validate(&attributes, object).await?;
        admission::quota::admit(&attributes, object)
    }

    /// The options of an update as webhooks see them: a patch is one too.
    pub(super) fn update_options(&self) -> Value {
        self.options_of("UpdateOptions")
    }

    /// The same for a create, which may have come as an update or as an apply.
    pub(super) fn create_options(&self) -> Value {
        self.options_of("CreateOptions")
    }

    fn options_of(&self, kind: &str) -> Value {
        let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        let dry_run = self.query.all("dryRun");
        if !dry_run.is_empty() {
            options["dryRun"] = json!(dry_run);
        }
        for field in ["fieldManager", "fieldValidation"] {
            if let Some(value) = self.query.get(field) {
                options[field] = value.into();
            }
        }
        options
    }
}
