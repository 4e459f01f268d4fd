//! Delete: finalizers, grace, propagation, preconditions, and whole collections.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use super::Call;
use super::write::Written;
use crate::admission::IMMORTAL_NAMESPACES;
use crate::http::{Answer, Shape};
use crate::object::{self, meta, set_meta};
use crate::resource::Resource;
use crate::selector::Selector;
use crate::status::{self, ApiError, Result, field};
use crate::store::{Key, Stored, WriteError};

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
];

/// Kinds that leave their dependents alone unless told otherwise.
const ORPHANS_BY_DEFAULT: &[(&str, &str)] = &[("", "replicationcontrollers"), ("batch", "jobs")];

/// What a delete was asked to do.
#[derive(Clone, Debug, Default)]
struct Options {
    grace: Option<i64>,
    propagation: Option<String>,
    orphan_dependents: Option<bool>,
    uid: Option<String>,
    revision: Option<String>,
}

impl Options {
    fn read(call: &Call<'_>) -> Result<(Self, bool)> {
        let mut options = Self::default();
        let mut dry_run = call.dry_run;
        if !call.body.is_empty() {
            let body = call.decode()?;
            options.grace = body["gracePeriodSeconds"].as_i64();
            options.propagation = body["propagationPolicy"].as_str().map(str::to_owned);
            options.orphan_dependents = body["orphanDependents"].as_bool();
            options.uid = body["preconditions"]["uid"].as_str().map(str::to_owned);
            options.revision = body["preconditions"]["resourceVersion"]
                .as_str()
                .map(str::to_owned);
            dry_run |= body["dryRun"]
                .as_array()
                .is_some_and(|dry_run| dry_run.iter().any(|all| all == "All"));
        }
        if let Some(grace) = call.query.get("gracePeriodSeconds") {
            options.grace = grace.parse().ok();
        }
        if let Some(policy) = call.query.get("propagationPolicy") {
            options.propagation = Some(policy.to_owned());
        }
        if let Some(policy) = options.propagation.as_deref()
            && !matches!(policy, "Foreground" | "Background" | "Orphan")
        {
            let allowed =
                ["Foreground", "Background", "Orphan", "nil"].map(|policy| format!("\"{policy}\""));
            let cause = field::not_supported("propagationPolicy", &policy.into(), &allowed);
            let subject = status::Subject {
                group: "meta.k8s.io",
                kind: "DeleteOptions",
            };
            return Err(ApiError::invalid(subject, "", &[cause]));
        }
        Ok((options, dry_run))
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
            (None, Some(true)) => Some("Orphan"),
            (None, Some(false)) => Some("Background"),
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

    /// Seconds the object is given. Only pods on a node are given any.
    fn grace_for(&self, object: &Value, resource: &Resource) -> i64 {
        if !resource.is("", "pods") {
            return 0;
        }
        let scheduled = object["spec"]["nodeName"]
            .as_str()
            .is_some_and(|node| !node.is_empty());
        let over = matches!(
            object["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        );
        if !scheduled || over {
            return 0;
        }
        let asked = self
            .grace
            .or(object["spec"]["terminationGracePeriodSeconds"].as_i64())
            .unwrap_or(30);
        // A negative period is one second; a pod that is going already is never given more time.
        let asked = if asked < 0 { 1 } else { asked };
        match object["metadata"]["deletionGracePeriodSeconds"].as_i64() {
            Some(left) if object::is_terminating(object) => asked.min(left),
            _ => asked,
        }
    }
}

impl Call<'_> {
    pub(super) fn delete(&self) -> Result<Answer> {
        let (options, dry_run) = Options::read(self)?;
        let key = self.key();
        let (written, uid, gone) = self.delete_object(&key, &options, dry_run)?;
        let address = (self.resource.group.as_str(), self.resource.plural.as_str());
        let answers_object =
            !gone || (ANSWERS_OBJECT.contains(&address) && !self.resource.is_custom());
        let code = if !gone && options.orphan_dependents == Some(false) {
            StatusCode::ACCEPTED
        } else {
            StatusCode::OK
        };
        if answers_object {
            return self.answer_written(written, code, Vec::new());
        }
        Ok(Answer::value(status::success(
            self.resource.subject(),
            self.name(),
            &uid,
        )))
    }

    /// Deletes one object, or marks it; tells its uid and whether it is gone.
    fn delete_object(
        &self,
        key: &Key,
        options: &Options,
        dry_run: bool,
    ) -> Result<(Written, String, bool)> {
        let (store, resource) = (self.server.store(), &self.resource);
        for _ in 0..RACE_RETRIES {
            let found = store
                .get(&resource.table, key)
                .ok_or_else(|| ApiError::not_found(resource.subject(), key.name()))?;
            self.check_preconditions(&found, options)?;
            if resource.is("", "namespaces") && IMMORTAL_NAMESPACES.contains(&key.name()) {
                return Err(ApiError::forbidden(
                    resource.subject(),
                    key.name(),
                    "this namespace may not be deleted",
                ));
            }
            let old = found.value();
            let uid = found.uid.to_string();
            let mut marked = old.clone();
            let finalizers = options.finalizers(&old, resource);
            let grace = options.grace_for(&old, resource);
            set_meta(
                &mut marked,
                "finalizers",
                (!finalizers.is_empty()).then(|| json!(finalizers)),
            );
            let held = !finalizers.is_empty() || grace > 0 || is_held_namespace(&old, resource);
            if !held {
                if dry_run {
                    return Ok((Written::Value(self.to_requested(old)), uid, true));
                }
                match store.delete(
                    &resource.table,
                    key.clone(),
                    found.revision,
                    old,
                    &resource.selectable,
                ) {
                    Ok(deleted) => {
                        self.after_write(&deleted, true);
                        return Ok((Written::Stored(deleted), uid, true));
                    }
                    Err(WriteError::Changed) => continue,
                    Err(error) => return Err(self.write_error(key.name(), error)),
                }
            }
            self.mark(&mut marked, &old, grace);
            if marked == old || dry_run {
                return Ok((Written::Stored(found), uid, false));
            }
            match store.update(
                &resource.table,
                key.clone(),
                found.revision,
                marked,
                &resource.selectable,
            ) {
                Ok(stored) => {
                    self.after_write(&stored, false);
                    return Ok((Written::Stored(stored), uid, false));
                }
                Err(WriteError::Changed) => {}
                Err(error) => return Err(self.write_error(key.name(), error)),
            }
        }
        Err(ApiError::modified(resource.subject(), key.name()))
    }

    /// Sets what says that an object is going away.
    fn mark(&self, object: &mut Value, old: &Value, grace: i64) {
        let left = old["metadata"]["deletionGracePeriodSeconds"].as_i64();
        if object::is_terminating(old) && left.is_some_and(|left| left <= grace) {
            return;
        }
        let later = Duration::from_secs(grace.unsigned_abs());
        set_meta(
            object,
            "deletionTimestamp",
            Some(self.server.clock().after_seconds(later).into()),
        );
        set_meta(object, "deletionGracePeriodSeconds", Some(grace.into()));
        if let (Some(generation), false) = (
            old["metadata"]["generation"].as_i64(),
            object::is_terminating(old),
        ) {
            set_meta(object, "generation", Some((generation + 1).into()));
        }
        if self.resource.is("", "namespaces") {
            object["status"]["phase"] = "Terminating".into();
        }
    }

    fn check_preconditions(&self, found: &Stored, options: &Options) -> Result<()> {
        let fails = |what: &str, asked: &str, is: &str| {
            let detail = format!(
                "Precondition failed: {what} in precondition: {asked}, {what} in object meta: {is}"
            );
            Err(ApiError::conflict(
                self.resource.subject(),
                found.key.name(),
                &detail,
            ))
        };
        if let Some(uid) = options.uid.as_deref().filter(|uid| **uid != *found.uid) {
            return fails("UID", uid, &found.uid);
        }
        if let Some(revision) = options
            .revision
            .as_deref()
            .filter(|revision| **revision != found.revision.to_string())
        {
            return fails("ResourceVersion", revision, &found.revision.to_string());
        }
        Ok(())
    }

    pub(super) fn delete_collection(&self) -> Result<Answer> {
        let (options, dry_run) = Options::read(self)?;
        let selector = Selector::from_query(&self.query, &self.resource)?;
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
            match self.delete_object(&object.key, &options, dry_run) {
                Ok((Written::Stored(stored), ..)) => {
                    deleted.push(self.to_requested(stored.value()))
                }
                Ok((Written::Value(value), ..)) => deleted.push(value),
                // Somebody else deleted it meanwhile: it is gone, as asked.
                Err(error) if error.code == StatusCode::NOT_FOUND => {}
                Err(error) => return Err(error),
            }
        }
        let metadata = json!({"resourceVersion": self.server.store().revision().to_string()});
        if self.wanted.shape == Shape::Table {
            return Ok(Answer::value(crate::table::of(
                &self.resource,
                &deleted,
                metadata,
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

/// A namespace stays until its own finalizers, in its spec, are removed.
fn is_held_namespace(object: &Value, resource: &Resource) -> bool {
    resource.is("", "namespaces")
        && object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty())
        && !meta(object, "name").is_empty()
}
