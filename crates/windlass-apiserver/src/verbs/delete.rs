//! Delete: finalizers, grace, propagation, preconditions, and whole collections.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use super::Call;
use super::admit::Admitted;
use super::present::list_item;
use super::write::Written;
use crate::admission::IMMORTAL_NAMESPACES;
use crate::http::{Answer, Shape};
use crate::object::{self, set_meta};
use crate::resource::Resource;
use crate::selector::Selector;
use crate::status::{self, ApiError, Result, field};
use crate::store::{Key, Stored, WriteError};
use crate::webhook::Operation;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
/// How often a delete that lost a race is tried again.
const RACE_RETRIES: usize = 64;

/// Kinds whose deletion answers the object; the others answer a Status.
const ANSWERS_OBJECT: &[(&str, &str)] = &[
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "pods"),
    ("", "podtemplates"),
    ("", "resourcequotas"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
    ("resource.k8s.io", "resourceslices"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
    ("storage.k8s.io", "volumeattributesclasses"),
];

/// Kinds that leave their dependents alone unless told otherwise.
const ORPHANS_BY_DEFAULT: &[(&str, &str)] = &[("", "replicationcontrollers"), ("batch", "jobs")];

/// What a delete was asked to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    grace: Option<i64>,
    propagation: Option<String>,
    orphan_dependents: Option<bool>,
    uid: Option<String>,
    pub(super) revision: Option<String>,
}

impl Options {
    /// What a `DeleteOptions` says, and whether nothing is to be stored.
    pub(super) fn from_body(body: &Value) -> Result<(Self, bool)> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let options = Self {
            grace: body["gracePeriodSeconds"].as_i64(),
            propagation: text(&body["propagationPolicy"]),
            orphan_dependents: body["orphanDependents"].as_bool(),
            uid: text(&body["preconditions"]["uid"]),
            revision: text(&body["preconditions"]["resourceVersion"]),
        };
        let asked = body["dryRun"].as_array().into_iter().flatten();
        let asked: Vec<&str> = asked.filter_map(Value::as_str).collect();
        let dry_run = super::options::dry_run(&asked)
            .map_err(|cause| super::options::invalid("DeleteOptions", &[cause]))?;
        Ok((options, dry_run))
    }

    fn read(call: &Call<'_>) -> Result<(Self, bool)> {
        let mut options = Self::default();
        let mut dry_run = call.dry_run;
        if !call.body.is_empty() {
            let body = delete_options(call)?;
            let (read, asked_dry) = Self::from_body(&body)?;
            options = read;
            dry_run |= asked_dry;
        }
        if let Some(grace) = call.query.get("gracePeriodSeconds") {
            options.grace = Some(super::parse_int(grace)?);
        }
        if let Some(policy) = call.query.get("propagationPolicy") {
            options.propagation = Some(policy.to_owned());
        }
        if let Some(policy) = options.propagation.as_deref() {
            let cause = if options.orphan_dependents.is_some() {
                Some(field::invalid(
                    "propagationPolicy",
                    &policy.into(),
                    "orphanDependents and deletionPropagation cannot be both set",
                ))
            } else if matches!(policy, "Foreground" | "Background" | "Orphan") {
                None
            } else {
                let allowed = ["Foreground", "Background", "Orphan", "nil"]
                    .map(|policy| format!("\"{policy}\""));
                Some(field::not_supported(
                    "propagationPolicy",
                    &policy.into(),
                    &allowed,
                ))
            };
            if let Some(cause) = cause {
                let subject = status::Subject {
                    group: "meta.k8s.io",
                    kind: "DeleteOptions",
                };
                return Err(ApiError::invalid(subject, "", &[cause]));
            }
        }
        Ok((options, dry_run))
    }

    /// The options as webhooks see them.
    fn shown(&self, dry_run: bool) -> Value {
        let mut shown = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        let mut set = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                shown[field] = value;
            }
        };
        set("gracePeriodSeconds", self.grace.map(Value::from));
        set("orphanDependents", self.orphan_dependents.map(Value::from));
        set(
            "propagationPolicy",
            self.propagation.clone().map(Value::from),
        );
        set("dryRun", dry_run.then(|| json!(["All"])));
        let mut preconditions = serde_json::Map::new();
        if let Some(uid) = &self.uid {
            preconditions.insert("uid".into(), uid.as_str().into());
        }
        if let Some(revision) = &self.revision {
            preconditions.insert("resourceVersion".into(), revision.as_str().into());
        }
        let preconditions = Value::Object(preconditions);
        set(
            "preconditions",
            Some(preconditions).filter(|all| *all != json!({})),
        );
        shown
    }

    /// The finalizers the object is to have while it goes.
    fn finalizers(&self, object: &Value, resource: &Resource) -> Vec<String> {
        let mut finalizers: Vec<String> = object::finalizers(object)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let address = (resource.group.as_str(), resource.plural.as_str());
        let policy = match (self.propagation.as_deref(), self.orphan_dependents) {
            (Some(policy), _) => Some(policy),
            (None, Some(orphan)) => Some(if orphan { "Orphan" } else { "Background" }),
            // A finalizer set earlier tells what was wanted.
            (None, None)
                if finalizers
                    .iter()
                    .any(|name| name == FOREGROUND || name == ORPHAN) =>
            {
                None
            }
            (None, None) if ORPHANS_BY_DEFAULT.contains(&address) && !resource.is_custom() => {
                Some("Orphan")
            }
            (None, None) => Some("Background"),
        };
        // Nothing depends on events.
        let policy = policy.filter(|_| resource.plural != "events" || resource.is_custom());
        if let Some(policy) = policy {
            finalizers.retain(|name| name != FOREGROUND && name != ORPHAN);
            match policy {
                "Foreground" => finalizers.push(FOREGROUND.into()),
                "Orphan" => finalizers.push(ORPHAN.into()),
                _ => {}
            }
        }
        finalizers
    }

    /// Seconds a pod is given: none unless it runs on a node.
    fn grace_for(&self, pod: &Value) -> i64 {
        let scheduled = pod["spec"]["nodeName"]
            .as_str()
            .is_some_and(|node| !node.is_empty());
        let over = matches!(
            pod["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        );
        if !scheduled || over {
            return 0;
        }
        let asked = self
            .grace
            .or(pod["spec"]["terminationGracePeriodSeconds"].as_i64())
            .unwrap_or(30);
        one_at_least(asked)
    }
}

/// A negative period is one second.
fn one_at_least(grace: i64) -> i64 {
    if grace < 0 { 1 } else { grace }
}

/// The body of a delete.
fn delete_options(call: &Call<'_>) -> Result<Value> {
    let body = call.decode_as("DeleteOptions").map_err(|mut error| {
        // Said as of any kind: what it should be was not asked.
        if let Some(at) = error.message.find("couldn't get version/kind") {
            let end = error.message.rfind(" (").unwrap_or(error.message.len());
            error.message = error.message[at..end].to_owned();
        }
        error
    })?;
    let text = |field: &str| body.value[field].as_str().unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if !matches!(kind, "" | "DeleteOptions") {
        return Err(ApiError::bad_request(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    Ok(body.value)
}

/// What a delete does to an object.
enum Fate {
    /// It goes.
    Gone,
    /// It is marked, and stays until its finalizers are removed or its grace is over.
    Marked(Value),
    /// It is marked and, having no grace left, goes at once: watches see both.
    MarkedAndGone(Value),
    /// It is going already, and nothing changes.
    Going,
}

impl Call<'_> {
    pub(super) async fn delete(&self) -> Result<Answer> {
        let (options, dry_run) = Options::read(self)?;
        let key = self.key();
        self.warn_of_orphans(&options);
        let (written, uid, gone) = self
            .delete_object(&key, Some(self.name()), &options, dry_run)
            .await?;
        let address = (self.resource.group.as_str(), self.resource.plural.as_str());
        let answers_object =
            !gone || (ANSWERS_OBJECT.contains(&address) && !self.resource.is_custom());
        let code = if !gone && options.orphan_dependents == Some(false) {
            StatusCode::ACCEPTED
        } else {
            StatusCode::OK
        };
        if answers_object {
            return self.answer_written(written, code).await;
        }
        Ok(Answer::value(status::success(
            self.resource.subject(),
            self.name(),
            &uid,
        )))
    }

    /// Who deletes a job and says nothing of its pods may not know that they stay.
    fn warn_of_orphans(&self, options: &Options) {
        let silent = options.propagation.is_none() && options.orphan_dependents.is_none();
        if silent && self.resource.is("batch", "jobs") {
            self.warn([
                "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"
                    .to_owned(),
            ]);
        }
    }

    /// Deletes one object, or marks it; tells its uid and whether it is gone.
    /// Webhooks are asked about the name the request has, unless they were asked before.
    pub(super) async fn delete_object(
        &self,
        key: &Key,
        asked_name: Option<&str>,
        options: &Options,
        dry_run: bool,
    ) -> Result<(Written, String, bool)> {
        let (store, resource) = (self.server.store(), &self.resource);
        for _ in 0..RACE_RETRIES {
            let found = store
                .get(&resource.table, key)
                .ok_or_else(|| ApiError::not_found(resource.subject(), key.name()))?;
            self.check_preconditions(&found, options)?;
            crate::admission::validate_delete(resource, key.name())?;
            if resource.is("", "namespaces") && IMMORTAL_NAMESPACES.contains(&key.name()) {
                return Err(ApiError::forbidden(
                    resource.subject(),
                    key.name(),
                    "this namespace may not be deleted",
                ));
            }
            let (mut old, uid) = (found.value(), found.uid.to_string());
            if resource.is("", "persistentvolumeclaims") {
                crate::claim::read_kept(&mut old);
            }
            if let Some(name) = asked_name {
                let mut shown = options.clone();
                if resource.is("", "namespaces") {
                    // The deletion of a namespace is always of this very one.
                    shown.uid.get_or_insert_with(|| uid.clone());
                }
                self.admit_delete(&old, name, &shown, dry_run).await?;
            }
            let fate = self.fate(&old, options);
            if dry_run {
                let (shown, gone) = match fate {
                    Fate::Gone => (old, true),
                    Fate::Marked(marked) => (marked, false),
                    Fate::MarkedAndGone(marked) => (marked, true),
                    Fate::Going => (old, false),
                };
                let shown = self.to_requested(shown).await?;
                return Ok((Written::Value(shown), uid, gone));
            }
            let update = |marked: Value| {
                store.update(
                    &resource.table,
                    key.clone(),
                    found.revision,
                    marked,
                    &resource.selectable,
                )
            };
            let delete = |revision: u64, last: Value| {
                store.delete(
                    &resource.table,
                    key.clone(),
                    revision,
                    last,
                    &resource.selectable,
                )
            };
            let (result, gone) = match fate {
                Fate::Going => return Ok((Written::Stored(found), uid, false)),
                Fate::Gone => (delete(found.revision, old), true),
                Fate::Marked(marked) => (update(marked), false),
                Fate::MarkedAndGone(marked) => {
                    let marked = update(marked);
                    let gone = marked.and_then(|marked| delete(marked.revision, marked.value()));
                    (gone, true)
                }
            };
            match result {
                Ok(stored) => {
                    self.after_write(&stored, gone);
                    return Ok((Written::Stored(stored), uid, gone));
                }
                Err(WriteError::Changed) => {}
                Err(error) => return Err(self.write_error(key.name(), error)),
            }
        }
        Err(ApiError::modified(resource.subject(), key.name()))
    }

    /// Webhooks have a say in a deletion too, and nothing to change.
    async fn admit_delete(
        &self,
        stored: &Value,
        name: &str,
        options: &Options,
        dry_run: bool,
    ) -> Result<()> {
        let old = self.to_requested(stored.clone()).await?;
        let shown = options.shown(dry_run);
        let admitted = Admitted {
            operation: Operation::Delete,
            subresource: "",
            name,
            old: Some(&old),
            options: &shown,
            dry_run,
        };
        self.mutate(&admitted, None).await?;
        self.judge(&admitted, None).await
    }

    fn fate(&self, old: &Value, options: &Options) -> Fate {
        let resource = &self.resource;
        if resource.is("", "pods") {
            return self.fate_of_pod(old, options);
        }
        if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
            return self.fate_of_definition(old);
        }
        let finalizers = options.finalizers(old, resource);
        let mut marked = old.clone();
        set_finalizers(&mut marked, &finalizers);
        if resource.is("", "namespaces") {
            return self.fate_of_namespace(marked, old, &finalizers);
        }
        if finalizers.is_empty() {
            return Fate::Gone;
        }
        self.mark(&mut marked, old, 0);
        if marked == *old {
            Fate::Going
        } else {
            Fate::Marked(marked)
        }
    }

    /// A pod is given its grace; once it is going, only a shorter one changes anything.
    fn fate_of_pod(&self, old: &Value, options: &Options) -> Fate {
        let mut marked = old.clone();
        let left = old["metadata"]["deletionGracePeriodSeconds"].as_i64();
        let grace = match (object::is_terminating(old), left) {
            (false, _) => options.grace_for(old),
            (true, None) => 0,
            (true, Some(left)) => match options.grace {
                Some(asked) if one_at_least(asked) < left => one_at_least(asked),
                // Nothing is waited for but the finalizers, of which more may be wanted now.
                _ if left == 0 => {
                    let finalizers = options.finalizers(old, &self.resource);
                    set_finalizers(&mut marked, &finalizers);
                    return if finalizers.is_empty() {
                        Fate::Gone
                    } else if marked == *old {
                        Fate::Going
                    } else {
                        Fate::Marked(marked)
                    };
                }
                _ => return Fate::Going,
            },
        };
        let finalizers = options.finalizers(old, &self.resource);
        set_finalizers(&mut marked, &finalizers);
        self.mark(&mut marked, old, grace);
        if grace == 0 && finalizers.is_empty() {
            Fate::MarkedAndGone(marked)
        } else {
            Fate::Marked(marked)
        }
    }

    /// A namespace stays until the finalizers in its spec are removed.
    fn fate_of_namespace(&self, mut marked: Value, old: &Value, finalizers: &[String]) -> Fate {
        let held = old["spec"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty());
        // The first request only says that it is to go.
        if object::is_terminating(old) {
            return if !held && finalizers.is_empty() {
                Fate::Gone
            } else {
                Fate::Going
            };
        }
        let now = self.server.clock().now_seconds();
        set_meta(&mut marked, "deletionTimestamp", Some(now.into()));
        marked["status"]["phase"] = "Terminating".into();
        Fate::Marked(marked)
    }

    /// A definition stays until its objects are gone: see `custom`.
    fn fate_of_definition(&self, old: &Value) -> Fate {
        if object::is_terminating(old) {
            let has_grace = old["metadata"].get("deletionGracePeriodSeconds").is_some();
            return if object::finalizers(old).is_empty() {
                Fate::Gone
            } else if has_grace {
                Fate::Going
            } else {
                let mut marked = old.clone();
                set_meta(&mut marked, "deletionGracePeriodSeconds", Some(0.into()));
                Fate::Marked(marked)
            };
        }
        let mut marked = old.clone();
        let now = self.server.clock().now_seconds();
        crate::crd::mark_terminating(&mut marked, &now);
        set_meta(&mut marked, "deletionTimestamp", Some(now.into()));
        Fate::Marked(marked)
    }

    /// Sets what says that an object is going away.
    fn mark(&self, object: &mut Value, old: &Value, grace: i64) {
        let left = old["metadata"]["deletionGracePeriodSeconds"].as_i64();
        let going = object::is_terminating(old);
        if going && left.is_some_and(|left| left <= grace) {
            return;
        }
        let later = Duration::from_secs(grace.unsigned_abs());
        let at = self.server.clock().after_seconds(later);
        set_meta(object, "deletionTimestamp", Some(at.into()));
        set_meta(object, "deletionGracePeriodSeconds", Some(grace.into()));
        if let (Some(generation), false) = (old["metadata"]["generation"].as_i64(), going) {
            set_meta(
                object,
                "generation",
                Some(generation.saturating_add(1).into()),
            );
        }
    }

    pub(super) fn check_preconditions(&self, found: &Stored, options: &Options) -> Result<()> {
        let refuse = |what: &str, asked: &str, is: &str, why: &str| {
            if self.resource.is("", "namespaces") {
                // Asked before the deletion of any object is.
                let detail = format!(
                    "Precondition failed: {what} in precondition: {asked}, {what} in object meta: {is}"
                );
                let subject = self.resource.subject();
                return Err(ApiError::conflict(subject, found.key.name(), &detail));
            }
            let detail = format!(
                "the {what} in the precondition ({asked}) does not match the {what} in record ({is}). The object might have been {why}"
            );
            Err(ApiError::conflict(
                self.resource.kind_subject(),
                found.key.name(),
                &detail,
            ))
        };
        if let Some(uid) = options.uid.as_deref().filter(|uid| **uid != *found.uid) {
            return refuse("UID", uid, &found.uid, "deleted and then recreated");
        }
        let revision = found.revision.to_string();
        if let Some(asked) = options
            .revision
            .as_deref()
            .filter(|asked| **asked != revision)
        {
            return refuse("ResourceVersion", asked, &revision, "modified");
        }
        Ok(())
    }

    pub(super) async fn delete_collection(&self) -> Result<Answer> {
        let (options, dry_run) = Options::read(self)?;
        let selector = Selector::from_query(&self.query, &self.resource)?;
        self.warn_of_orphans(&options);
        let listing = self
            .server
            .store()
            .list(
                &self.resource.table,
                self.request.namespace.as_deref(),
                None,
                None,
            )
            .map_err(|_| ApiError::internal("the present is always there to be listed"))?;
        let mut deleted = Vec::new();
        for object in listing
            .objects
            .iter()
            .filter(|object| selector.matches(object))
        {
            let deletion = self.delete_object(&object.key, Some(""), &options, dry_run);
            match deletion.await {
                // What is told is what was found, as it was.
                Ok(_) => {
                    let item = self.to_requested(object.value()).await?;
                    deleted.push(list_item(item, &self.resource));
                }
                // Somebody else deleted it meanwhile: it is gone, as asked.
                Err(error) if error.code == StatusCode::NOT_FOUND => {}
                Err(error) => return Err(error),
            }
        }
        let mut metadata = json!({"resourceVersion": listing.revision.to_string()});
        if self.resource.is_custom() && self.wanted.shape == Shape::Object {
            metadata["continue"] = "".into();
        }
        if self.wanted.shape == Shape::Table {
            return Ok(Answer::value(crate::table::of(
                &self.resource,
                &deleted,
                &metadata,
                self.table_options(),
            )));
        }
        Ok(Answer::value(json!({
            "kind": self.resource.list_kind,
            "apiVersion": self.resource.api_version(),
            "metadata": metadata,
            "items": deleted,
        })))
    }
}

fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let kept = (!finalizers.is_empty()).then(|| json!(finalizers));
    set_meta(object, "finalizers", kept);
}
