//! What every write passes on its way to the store.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::Call;
use super::admit::Admitted;
use crate::apply::Managers;
use crate::auth::rbac::{self, escalation};
use crate::decode::{self, FieldValidation};
use crate::http::Answer;
use crate::object::{meta, set_meta};
use crate::resource::Resource;
use crate::server::ApiServer;
use crate::status::{ApiError, Cause, Result};
use crate::store::{Key, Stored, WriteError};
use crate::types::Type;
use crate::{
    admission, autoscaler, crd, defaults, event, metadata, pending_claim, services, strategy,
    validation, webhook,
};

/// The form autoscalers are stored in.
const AUTOSCALER: &str = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler";
/// How often a name that is taken is drawn again, the first time counted in.
const GENERATE_TRIES: usize = 8;
/// How much of `generateName` is used, so that the name stays a label.
const GENERATED_BASE_LENGTH: usize = 63 - crate::random::SUFFIX_LENGTH;

/// The result of a write: what is stored now, or would be.
pub(super) enum Written {
    Stored(Arc<Stored>),
    /// A dry run's object, or one that was deleted by the write.
    Value(Value),
}

impl Call<'_> {
    /// Reads the body as an object of this resource, in stored form.
    pub(crate) fn decode(&self) -> Result<Value> {
        let document = self.decode_as(&self.resource.kind)?;
        let mut object = document.value;
        decode::check_kind(&object, &self.resource)?;
        let unreadable = |why: String| decode::unreadable(&self.resource, &why);
        let strange = document.duplicates.iter();
        let mut strange: Vec<String> = strange
            .map(|path| format!("duplicate field \"{path}\""))
            .collect();
        strange.extend(self.normalise(&mut object).map_err(unreadable)?);
        if !self.resource.is_custom() {
            strange.truncate(decode::MOST_STRANGE);
        }
        self.judge_strange(strange, unreadable)?;
        Ok(object)
    }

    /// Brings a client's object into stored form; what is strange about it comes back, or why it
    /// cannot be read.
    pub(super) fn normalise(&self, object: &mut Value) -> Result<Vec<String>, String> {
        let unknown = decode::normalise(object, &self.resource)?;
        if !self.resource.is_custom() {
            defaults::drop_zeros(object, &self.resource.ty);
        }
        if self
            .resource
            .is("apiextensions.k8s.io", "customresourcedefinitions")
        {
            // The JSON within a schema is written anew: a default of 2.0 is one of 2.
            decode::whole_numbers(object);
        }
        self.fill_defaults(object);
        if self.resource.is("", "services") {
            defaults::load_balancer_mode(object);
        }
        Ok(unknown
            .iter()
            .map(|path| format!("unknown field \"{path}\""))
            .collect())
    }

    /// What to do about unknown and repeated fields: nothing, warnings, or an error made by `refuse`.
    pub(super) fn judge_strange(
        &self,
        strange: Vec<String>,
        refuse: impl FnOnce(String) -> ApiError,
    ) -> Result<()> {
        match self.field_validation {
            FieldValidation::Ignore => Ok(()),
            FieldValidation::Strict if !strange.is_empty() => Err(refuse(format!(
                "strict decoding error: {}",
                strange.join(", ")
            ))),
            FieldValidation::Strict | FieldValidation::Warn => {
                self.warn(strange);
                Ok(())
            }
        }
    }

    pub(super) fn fill_defaults(&self, object: &mut Value) {
        if self.resource.is_old_autoscaler() {
            // What is filled in is decided in the form it is stored in.
            autoscaler::to_new(object);
            defaults::fill(object, &Type::Named(AUTOSCALER.into()));
            autoscaler::to_old(object);
        }
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

    /// The last step to stored form, once it is recorded who wrote what.
    pub(super) fn settle(&self, object: &mut Value) {
        if !self.resource.is_custom() {
            defaults::settle(object, &self.resource.ty);
        }
    }

    /// What was kept to be shown to who is refused is of no more use.
    pub(super) fn drop_shown_empties(&self, object: &mut Value) {
        if !self.resource.is_custom() {
            defaults::drop_shown_empties(object, &self.resource.ty);
        }
    }

    /// What is wrong with a new object: by the rules of its kind, or else by those of all.
    fn validate(&self, object: &Value) -> Result<()> {
        let metadata = metadata::create_causes(object, &self.resource);
        let mut kind = self.kind_causes(object, None, "");
        if self.resource.group == "resource.k8s.io" {
            kind.splice(0..0, self.admin_access_causes(object));
        }
        if metadata::Checks::of(&self.resource).created == metadata::Own::Not {
            self.refuse(object, &kind)?;
            return self.refuse(object, &metadata);
        }
        self.refuse(object, &[metadata, kind].concat())
    }

    /// What is wrong with an object by the rules of its kind.
    pub(super) fn kind_causes(
        &self,
        object: &Value,
        old: Option<&Value>,
        subresource: &str,
    ) -> Vec<Cause> {
        if let Some(custom) = &self.resource.custom {
            let Some(old) = old else {
                return custom.check_create(object);
            };
            let (causes, warnings) = custom.check_update(object, old, subresource);
            self.warn(warnings);
            causes
        } else if self
            .resource
            .is("apiextensions.k8s.io", "customresourcedefinitions")
        {
            let known = old.map(crd::unknown_formats).unwrap_or_default();
            let strange = crd::unknown_formats(object).into_iter();
            self.warn(
                strange
                    .filter(|format| !known.contains(format))
                    .map(|format| format!("unrecognized format \"{format}\"")),
            );
            crd::validate(object, old)
        } else {
            self.in_stored_form(object, |object| {
                validation::check(object, old, &self.resource)
            })
        }
    }

    pub(super) fn refuse(&self, object: &Value, causes: &[Cause]) -> Result<()> {
        if causes.is_empty() {
            return Ok(());
        }
        let mut subject = self.resource.kind_subject();
        if self.resource.is("events.k8s.io", "events") {
            // Known by the group it is stored in.
            subject.group = "";
        }
        Err(ApiError::invalid(subject, meta(object, "name"), causes))
    }

    /// Looks at an object as it would be stored: some kinds are checked in that form only.
    pub(super) fn in_stored_form<T>(&self, object: &Value, look: impl FnOnce(&Value) -> T) -> T {
        if self.resource.is("events.k8s.io", "events") || self.resource.is_old_autoscaler() {
            let mut stored = object.clone();
            self.unify(&mut stored);
            look(&stored)
        } else {
            look(object)
        }
    }

    /// Built-in kinds of two forms are stored in one of them.
    fn unify(&self, object: &mut Value) {
        if self.resource.is("events.k8s.io", "events") {
            event::to_core(object);
        } else if self.resource.is_old_autoscaler() {
            autoscaler::to_new(object);
        }
    }

    /// Makes a new object of a normalised one.
    pub(super) async fn create_object(
        &self,
        object: Value,
        decided: Option<Managers>,
    ) -> Result<Written> {
        self.create_through("", object, decided).await
    }

    /// The same by a write to a subresource, which gives out no addresses.
    pub(super) async fn create_through(
        &self,
        subresource: &str,
        mut object: Value,
        decided: Option<Managers>,
    ) -> Result<Written> {
        let resource = &self.resource;
        if let Some(custom) = &resource.custom
            && custom
                .terminating
                .load(std::sync::atomic::Ordering::Relaxed)
        {
            return Err(ApiError::forbidden(
                resource.subject(),
                meta(&object, "name"),
                "create not allowed while custom resource definition is terminating",
            ));
        }
        self.place(&mut object)?;
        strategy::wipe(&mut object);
        self.record(&mut object, &self.untouched(), subresource, decided);
        admission::admit(self.server, resource, self.namespace(), &mut object)?;
        let (options, name) = (self.create_options(), meta(&object, "name").to_owned());
        let admitted = Admitted::create(self, &name, &options);
        self.mutate(&admitted, Some(&mut object)).await?;
        // What webhooks made of it is no more to be trusted than what the client sent.
        self.place(&mut object)?;
        escalation::check(
            self.server,
            self.who,
            resource,
            self.namespace(),
            &object,
            None,
        )?;
        if !meta(&object, "name").is_empty() || meta(&object, "generateName").is_empty() {
            let name = meta(&object, "name").to_owned();
            return self
                .create_named(object, &options, subresource)
                .await
                .map_err(|error| self.refusal(&name, error));
        }
        let base = meta(&object, "generateName");
        let base: String = base.chars().take(GENERATED_BASE_LENGTH).collect();
        let mut tries = 0;
        loop {
            tries += 1;
            let name = format!("{base}{}", self.server.random().name_suffix());
            let mut named = object.clone();
            set_meta(&mut named, "name", Some(name.as_str().into()));
            match self.create_named(named, &options, subresource).await {
                Err(WriteOr::Write(WriteError::Exists)) if tries < GENERATE_TRIES => {}
                Err(error) => return Err(self.refusal(&name, error)),
                Ok(written) => return Ok(written),
            }
        }
    }

    /// Prepares, checks and stores an object that has its name.
    async fn create_named(
        &self,
        mut object: Value,
        options: &Value,
        subresource: &str,
    ) -> Result<Written, WriteOr> {
        let resource = &self.resource;
        let mut reservation = self.reserve(&mut object, None, subresource)?;
        strategy::prepare_create(
            &mut object,
            resource,
            self.server.clock(),
            self.server.random(),
        );
        if let Some(custom) = &resource.custom {
            // The status that a client sent is gone, and the default of one comes instead.
            custom.fill_defaults(&mut object).map_err(too_much)?;
        }
        if resource.is("", "pods") {
            self.warn(strategy::adopt_app_armor(&mut object));
        }
        if resource.is("certificates.k8s.io", "certificatesigningrequests") {
            strategy::set_requester(&mut object, self.who);
        }
        self.fill_defaults(&mut object);
        self.settle(&mut object);
        self.validate(&object)?;
        self.drop_shown_empties(&mut object);
        self.warn(validation::warnings(resource, &object));
        if resource.is_custom() {
            self.warn(crd::finalizer_warnings(&object, None));
            decode::whole_numbers(&mut object);
        }
        admission::validate(self.server, resource, self.namespace(), &object)?;
        let admitted = Admitted::create(self, meta(&object, "name"), options);
        self.judge(&admitted, Some(&object)).await?;
        if self.dry_run
            && self
                .server
                .store()
                .get(
                    &resource.table,
                    &Key::new(meta(&object, "namespace"), meta(&object, "name")),
                )
                .is_some()
        {
            return Err(WriteOr::Write(WriteError::Exists));
        }
        if !self.dry_run && !matches!(meta(&object, "resourceVersion"), "" | "0") {
            return Err(WriteOr::Refused(ApiError::without_reason(
                "resourceVersion should not be set on objects to be created",
            )));
        }
        let key = Key::new(meta(&object, "namespace"), meta(&object, "name"));
        if self.dry_run {
            return match self.server.store().get(&resource.table, &key) {
                Some(_) => Err(WriteOr::Write(WriteError::Exists)),
                None => Ok(Written::Value(self.as_if_stored(object).await?)),
            };
        }
        let mut object = self.to_stored(object).await?;
        if resource.is("", "persistentvolumeclaims") {
            pending_claim::keep_new(&mut object);
        }
        self.claim(reservation.as_mut(), &object)?;
        let stored = self
            .server
            .store()
            .create(&resource.table, key, object, &resource.selectable)
            .map_err(WriteOr::Write)?;
        if let Some(reservation) = reservation {
            reservation.keep();
        }
        self.after_write(&stored, false);
        Ok(Written::Stored(stored))
    }

    fn refusal(&self, name: &str, error: WriteOr) -> ApiError {
        match error {
            WriteOr::Write(error) => self.write_error(name, error),
            WriteOr::Refused(error) => error,
        }
    }

    /// Puts the object where the path says, or says that it is elsewhere.
    pub(crate) fn place(&self, object: &mut Value) -> Result<()> {
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
        let namespace = Some(self.namespace()).filter(|namespace| !namespace.is_empty());
        set_meta(object, "namespace", namespace.map(Value::from));
        Ok(())
    }

    pub(super) fn write_error(&self, name: &str, error: WriteError) -> ApiError {
        match error {
            WriteError::Exists => {
                let mut error = ApiError::already_exists(self.resource.subject(), name);
                let key = Key::new(self.namespace(), name);
                let found = self.server.store().get(&self.resource.table, &key);
                if found.is_some_and(|found| found.terminating) {
                    error.message = format!("object is being deleted: {}", error.message);
                }
                error
            }
            WriteError::Missing => ApiError::not_found(self.resource.subject(), name),
            WriteError::Changed => ApiError::modified(self.resource.subject(), name),
            WriteError::Encode(error) => ApiError::internal(format!("encoding {name}: {error}")),
            WriteError::TooLarge => ApiError::without_reason("etcdserver: request is too large"),
            WriteError::Storage(why) => ApiError::without_reason(&*why),
        }
    }

    /// The form an object is stored in.
    pub(super) async fn to_stored(&self, mut object: Value) -> Result<Value> {
        self.unify(&mut object);
        if let Some(custom) = &self.resource.custom {
            let api_version = custom.stored_api_version(&self.resource.group);
            let one = vec![object];
            let converted =
                webhook::convert(self.server, &self.resource, &api_version, one).await?;
            object = converted.into_iter().next().unwrap_or_default();
            custom.fill_stored(&mut object).map_err(too_much)?;
        }
        Ok(object)
    }

    /// What would be read after a dry run: what the stored version has defaults for comes, and what
    /// it does not know goes.
    pub(super) async fn as_if_stored(&self, object: Value) -> Result<Value> {
        match &self.resource.custom {
            Some(custom) if !custom.is_stored_version() => {
                let stored = self.to_stored(object).await?;
                self.to_requested(stored).await
            }
            _ => Ok(object),
        }
    }

    /// The form of the version that was asked for.
    pub(super) async fn to_requested(&self, object: Value) -> Result<Value> {
        to_requested(object, &self.resource, self.server).await
    }

    /// What follows from a write: CRDs start and stop being served, roles take effect.
    pub(super) fn after_write(&self, stored: &Stored, deleted: bool) {
        crate::custom::after_write(self.server, &self.resource, stored, deleted);
        rbac::after_write(self.server, &self.resource, &stored.key);
        let is_event = self.resource.plural == "events" && !self.resource.is_custom();
        if is_event && !deleted {
            event::expire_later(self.server, &self.resource, stored);
        }
        if deleted && self.resource.is("", "services") {
            services::release(self.server, &stored.value());
            self.forget_endpoints(&stored.key);
        }
    }

    /// The answer to a write.
    pub(super) async fn answer_written(
        &self,
        written: Written,
        code: StatusCode,
    ) -> Result<Answer> {
        let answer = match written {
            Written::Stored(stored) => self.present(&stored).await?,
            Written::Value(object) => self.present_value(object),
        };
        Ok(answer.with_code(code))
    }
}

/// The form of the version a resource stands for.
pub(super) async fn to_requested(
    object: Value,
    resource: &Resource,
    server: &ApiServer,
) -> Result<Value> {
    let all = all_to_requested(vec![object], resource, server).await?;
    Ok(all.into_iter().next().unwrap_or_default())
}

/// The same for many objects, which a webhook is sent together.
pub(super) async fn all_to_requested(
    mut objects: Vec<Value>,
    resource: &Resource,
    server: &ApiServer,
) -> Result<Vec<Value>> {
    for object in &mut objects {
        if resource.is("events.k8s.io", "events") {
            event::from_core(object);
        } else if resource.is_old_autoscaler() {
            autoscaler::to_old(object);
        } else if resource.is("", "persistentvolumeclaims") {
            pending_claim::read_kept(object);
        }
        if let Some(custom) = &resource.custom {
            custom.read_stored(object);
        }
    }
    if resource.is_custom() {
        return webhook::convert(server, resource, &resource.api_version(), objects).await;
    }
    Ok(objects)
}

/// No object may have that many defaults.
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn too_much(error: crd::TooMuch) -> ApiError {
    ApiError::bad_request(error.to_string())
}

/// Why something was not written: the store said so, or it never came to that.
pub(super) enum WriteOr {
    Write(WriteError),
    Refused(ApiError),
}

impl From<ApiError> for WriteOr {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}
