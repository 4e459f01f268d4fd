//! What every write passes on its way to the store.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::Call;
use crate::apply::{self, Managers, Writer};
use crate::decode::{self, FieldValidation};
use crate::http::Answer;
use crate::object::{self, meta, set_meta};
use crate::resource::Resource;
use crate::status::{ApiError, Cause, Result, field};
use crate::store::{Key, Stored, WriteError};
use crate::{admission, crd, defaults, event, names, strategy};

/// How often a patch that lost a race is tried again.
const RACE_RETRIES: usize = 64;

/// The result of a write: what is stored now, or would be.
pub(super) enum Written {
    Stored(Arc<Stored>),
    /// A dry run's object, or one that was deleted by the write.
    Value(Value),
}

/// What an update wants to store.
pub(super) struct Update {
    pub(super) object: Value,
    /// Ownership, when it was decided already (by an apply).
    pub(super) managers: Option<Managers>,
}

impl Call<'_> {
    /// Brings a client's object into stored form, and tells of what it does not know.
    pub(super) fn normalise(&self, object: &mut Value, warnings: &mut Vec<String>) -> Result<()> {
        let validation = FieldValidation::from_query(&self.query)?;
        let unknown = decode::normalise(object, &self.resource)?;
        self.report_unknown(&unknown, validation, warnings)?;
        self.fill_defaults(object);
        Ok(())
    }

    fn report_unknown(
        &self,
        unknown: &[String],
        validation: FieldValidation,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let sentences: Vec<String> = unknown
            .iter()
            .map(|path| format!("unknown field \"{path}\""))
            .collect();
        match validation {
            _ if sentences.is_empty() => Ok(()),
            FieldValidation::Ignore => Ok(()),
            FieldValidation::Warn => {
                warnings.extend(sentences);
                Ok(())
            }
            FieldValidation::Strict => {
                let problem = format!("strict decoding error: {}", sentences.join(", "));
                Err(ApiError::bad_request(if self.resource.is_custom() {
                    problem
                } else {
                    format!(
                        "{} in version \"{}\" cannot be handled as a {}: {problem}",
                        self.resource.kind, self.resource.version, self.resource.kind
                    )
                }))
            }
        }
    }

    fn fill_defaults(&self, object: &mut Value) {
        if !self.resource.is_custom() {
            defaults::fill(object, &self.resource.ty);
        }
        if self
            .resource
            .is("apiextensions.k8s.io", "customresourcedefinitions")
        {
            crd::fill_defaults(object);
        }
    }

    /// What is wrong with an object that is about to be stored.
    pub(super) fn validate(&self, object: &Value) -> Result<()> {
        let mut causes = names::metadata_causes(object, &self.resource);
        if let Some(custom) = &self.resource.custom {
            causes.extend(custom.validate(object));
        } else if self
            .resource
            .is("apiextensions.k8s.io", "customresourcedefinitions")
        {
            causes.extend(crd::validate(object));
        } else {
            causes.extend(crate::validation::check(object, &self.resource));
        }
        self.refuse(object, &causes)
    }

    pub(super) fn refuse(&self, object: &Value, causes: &[Cause]) -> Result<()> {
        if causes.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(
            self.resource.kind_subject(),
            meta(object, "name"),
            causes,
        ))
    }

    /// Ownership as the object tells it; a client that sends its own entries replaces them.
    fn managers(object: &Value, old: Option<&Value>) -> Managers {
        match object["metadata"].get("managedFields") {
            Some(Value::Array(entries)) if !entries.is_empty() => {
                Managers::read(&Value::Array(entries.clone()))
            }
            Some(Value::Array(_)) => Managers::default(),
            _ => old
                .map(|old| Managers::read(&old["metadata"]["managedFields"]))
                .unwrap_or_default(),
        }
    }

    /// Records who wrote what. `old` is empty for a create.
    pub(super) fn record(
        &self,
        object: &mut Value,
        old: Option<&Value>,
        subresource: &str,
        decided: Option<Managers>,
    ) {
        let managers = decided.unwrap_or_else(|| {
            let empty = Value::Object(serde_json::Map::new());
            let (manager, now) = (self.field_manager(), self.server.clock().now_seconds());
            let api_version = self.resource.api_version();
            let writer = Writer {
                manager: &manager,
                api_version: &api_version,
                subresource,
                now: &now,
            };
            let managers = Self::managers(object, old);
            let bare = |object: &Value| {
                let mut object = object.clone();
                set_meta(&mut object, "managedFields", None);
                object
            };
            apply::record_update(
                &bare(old.unwrap_or(&empty)),
                &bare(object),
                &self.resource.ty,
                managers,
                &writer,
            )
        });
        set_meta(
            object,
            "managedFields",
            (!managers.is_empty()).then(|| managers.write()),
        );
    }

    /// Makes a new object of a normalised one.
    pub(super) fn create_object(
        &self,
        mut object: Value,
        decided: Option<Managers>,
    ) -> Result<Written> {
        let resource = &self.resource;
        self.place(&mut object)?;
        let generated =
            meta(&object, "name").is_empty() && !meta(&object, "generateName").is_empty();
        if !meta(&object, "resourceVersion").is_empty() {
            return Err(ApiError::bad_request(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        admission::namespace_lifecycle(
            self.server.store(),
            resource,
            self.namespace(),
            meta(&object, "name"),
        )?;
        self.record(&mut object, None, "", decided);
        if resource.is("", "pods") {
            admission::admit_pod(&mut object);
        }
        strategy::prepare_create(
            &mut object,
            resource,
            self.server.clock(),
            self.server.random(),
        );
        self.fill_defaults(&mut object);
        if resource.is("", "services") {
            let random = self.server.random();
            let causes = crate::services::allocate(
                &mut object,
                self.server.store(),
                self.server.service_range(),
                |below| random.between(0, below),
            )?;
            self.refuse(&object, &causes)?;
        }
        if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
            object["status"] = serde_json::json!({
                "acceptedNames": {"plural": "", "kind": ""}, "conditions": [], "storedVersions": stored_versions(&object)});
            let mut finalizers = object["metadata"]["finalizers"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            finalizers.push(crd::CLEANUP_FINALIZER.into());
            set_meta(&mut object, "finalizers", Some(finalizers.into()));
        }
        // A generated name that is taken is drawn again, eight times in all.
        for attempt in 0..8 {
            if generated {
                let base = meta(&object, "generateName");
                let room = 63 - crate::random::SUFFIX_LENGTH;
                let base: String = base.chars().take(room).collect();
                let name = format!("{base}{}", self.server.random().name_suffix());
                set_meta(&mut object, "name", Some(name.into()));
            }
            self.validate(&object)?;
            let key = Key::new(meta(&object, "namespace"), meta(&object, "name"));
            if self.dry_run {
                return match self.server.store().get(&resource.table, &key) {
                    Some(_) => Err(ApiError::already_exists(resource.subject(), key.name())),
                    None => Ok(Written::Value(object)),
                };
            }
            let stored = self.to_stored(object.clone());
            match self
                .server
                .store()
                .create(&resource.table, key, stored, &resource.selectable)
            {
                Ok(stored) => {
                    self.after_write(&stored, false);
                    return Ok(Written::Stored(stored));
                }
                Err(WriteError::Exists) if generated && attempt < 7 => {}
                Err(error) => return Err(self.write_error(meta(&object, "name"), error)),
            }
        }
        Err(ApiError::already_exists(
            resource.subject(),
            meta(&object, "name"),
        ))
    }

    /// Puts the object where the path says, or says that it is elsewhere.
    fn place(&self, object: &mut Value) -> Result<()> {
        let given = meta(object, "namespace").to_owned();
        if !self.resource.namespaced {
            set_meta(object, "namespace", None);
            return Ok(());
        }
        if !given.is_empty() && given != self.namespace() {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        set_meta(object, "namespace", Some(self.namespace().into()));
        Ok(())
    }

    /// Changes the object the path names by `make`, which sees what is stored.
    pub(super) fn update_object(
        &self,
        subresource: &str,
        make: &dyn Fn(&Value) -> Result<Update>,
    ) -> Result<Written> {
        for _ in 0..RACE_RETRIES {
            let found = self.find()?;
            let old = self.to_requested(found.value());
            let update = make(&old)?;
            let named = meta(&update.object, "resourceVersion").to_owned();
            if !named.is_empty() && named != found.revision.to_string() {
                return Err(ApiError::modified(self.resource.subject(), self.name()));
            }
            match self.update_from(&found, &old, update, subresource) {
                // Somebody else was quicker. Who named no version wants the change anyway.
                Err(WriteOr::Write(WriteError::Changed)) if named.is_empty() || !self.is_put() => {}
                Err(WriteOr::Write(error)) => return Err(self.write_error(self.name(), error)),
                Err(WriteOr::Refused(error)) => return Err(error),
                Ok(written) => return Ok(written),
            }
        }
        Err(ApiError::modified(self.resource.subject(), self.name()))
    }

    /// A PUT that names a version means that version; every other write is remade from what is there.
    fn is_put(&self) -> bool {
        self.request.verb == crate::http::Verb::Update
    }

    fn update_from(
        &self,
        found: &Arc<Stored>,
        old: &Value,
        update: Update,
        subresource: &str,
    ) -> Result<Written, WriteOr> {
        let resource = &self.resource;
        let mut new = update.object;
        self.check_identity(&new, old)?;
        self.place(&mut new)?;
        set_meta(&mut new, "name", Some(self.name().into()));
        strategy::prepare_update(&mut new, old, resource, subresource);
        set_meta(
            &mut new,
            "resourceVersion",
            Some(found.revision.to_string().into()),
        );
        check_finalizers(&new, old)
            .map_err(|causes| ApiError::invalid(resource.kind_subject(), self.name(), &causes))?;
        self.record(&mut new, Some(old), subresource, update.managers);
        self.fill_defaults(&mut new);
        self.validate(&new)?;
        let causes = crate::validation::check_update(&new, old, resource);
        self.refuse(&new, &causes)?;
        if apply::equal_but_for_times(&new, old) {
            return Ok(Written::Stored(found.clone()));
        }
        let key = found.key.clone();
        if is_finished(&new, old, resource) {
            if !self.dry_run {
                let deleted = self
                    .server
                    .store()
                    .delete(
                        &resource.table,
                        key,
                        found.revision,
                        self.to_stored(old.clone()),
                        &resource.selectable,
                    )
                    .map_err(WriteOr::Write)?;
                self.after_write(&deleted, true);
            }
            return Ok(Written::Value(new));
        }
        if self.dry_run {
            return Ok(Written::Value(new));
        }
        let stored = self
            .server
            .store()
            .update(
                &resource.table,
                key,
                found.revision,
                self.to_stored(new),
                &resource.selectable,
            )
            .map_err(WriteOr::Write)?;
        self.after_write(&stored, false);
        Ok(Written::Stored(stored))
    }

    fn check_identity(&self, new: &Value, old: &Value) -> Result<()> {
        let (name, uid) = (meta(new, "name"), meta(new, "uid"));
        if !name.is_empty() && name != self.name() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                self.name()
            )));
        }
        if !uid.is_empty() && uid != meta(old, "uid") {
            let detail = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                meta(old, "uid")
            );
            return Err(ApiError::conflict(
                self.resource.subject(),
                self.name(),
                &detail,
            ));
        }
        Ok(())
    }

    pub(super) fn write_error(&self, name: &str, error: WriteError) -> ApiError {
        match error {
            WriteError::Exists => ApiError::already_exists(self.resource.subject(), name),
            WriteError::Missing => ApiError::not_found(self.resource.subject(), name),
            WriteError::Changed => ApiError::modified(self.resource.subject(), name),
            WriteError::Encode(error) => ApiError::internal(format!("encoding {name}: {error}")),
        }
    }

    /// The form an object is stored in.
    pub(super) fn to_stored(&self, mut object: Value) -> Value {
        if self.resource.is("events.k8s.io", "events") {
            event::to_core(&mut object);
        }
        if let Some(custom) = &self.resource.custom {
            object["apiVersion"] =
                format!("{}/{}", self.resource.group, custom.storage_version).into();
        }
        object
    }

    /// The form of the version that was asked for.
    pub(super) fn to_requested(&self, object: Value) -> Value {
        to_requested(object, &self.resource)
    }

    /// What follows from a write: CRDs start and stop being served.
    pub(super) fn after_write(&self, stored: &Stored, deleted: bool) {
        crate::custom::after_write(self.server, &self.resource, stored, deleted);
    }

    /// The answer to a write.
    pub(super) fn answer_written(
        &self,
        written: Written,
        code: StatusCode,
        warnings: Vec<String>,
    ) -> Result<Answer> {
        let mut answer = match written {
            Written::Stored(stored) => self.present(&stored)?,
            Written::Value(object) => self.present_value(object)?,
        }
        .with_code(code);
        answer.warnings = warnings;
        Ok(answer)
    }
}

/// The form of the version a resource stands for.
pub(super) fn to_requested(mut object: Value, resource: &Resource) -> Value {
    if resource.is("events.k8s.io", "events") {
        event::from_core(&mut object);
    }
    if resource.is_custom() {
        object["apiVersion"] = resource.api_version().into();
    }
    object
}

enum WriteOr {
    Write(WriteError),
    Refused(ApiError),
}

impl From<ApiError> for WriteOr {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

fn stored_versions(crd: &Value) -> Vec<Value> {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    versions
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect()
}

/// Nothing may be added to the finalizers of an object that is going away.
fn check_finalizers(new: &Value, old: &Value) -> Result<(), Vec<Cause>> {
    if !object::is_terminating(old) {
        return Ok(());
    }
    let before = object::finalizers(old);
    let added: Vec<&str> = object::finalizers(new)
        .into_iter()
        .filter(|finalizer| !before.contains(finalizer))
        .collect();
    if added.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = added
        .iter()
        .map(|finalizer| format!("{finalizer:?}"))
        .collect();
    Err(vec![field::forbidden(
        "metadata.finalizers",
        &format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            shown.join(", ")
        ),
    )])
}

/// Whether an object that is going away has nothing left that holds it.
fn is_finished(new: &Value, old: &Value, resource: &Resource) -> bool {
    let held_by_namespace = resource.is("", "namespaces")
        && new["spec"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty());
    object::is_terminating(old)
        && object::finalizers(new).is_empty()
        && old["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or_default()
            == 0
        && !held_by_namespace
}
