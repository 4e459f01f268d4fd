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
use crate::{admission, crd, defaults, event, metadata, strategy, webhook};

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
    /// Reads the body as an object of this resource, in stored form, and what to warn about.
    pub(crate) fn decode(&self) -> Result<(Value, Vec<String>)> {
        let document = self.decode_as(&self.resource.kind)?;
        let mut object = document.value;
        decode::check_kind(&object, &self.resource)?;
        let unreadable = |why: String| decode::unreadable(&self.resource, &why);
        let strange = document.duplicates.iter();
        let mut strange: Vec<String> = strange
            .map(|path| format!("duplicate field \"{path}\""))
            .collect();
        strange.extend(self.normalise(&mut object).map_err(unreadable)?);
        let warnings = self.judge_strange(strange, unreadable)?;
        Ok((object, warnings))
    }

    /// Brings a client's object into stored form; what is strange about it comes back, or why it
    /// cannot be read.
    pub(super) fn normalise(&self, object: &mut Value) -> Result<Vec<String>, String> {
        let unknown = decode::normalise(object, &self.resource)?;
        self.fill_defaults(object);
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
    ) -> Result<Vec<String>> {
        match self.field_validation {
            FieldValidation::Ignore => Ok(Vec::new()),
            FieldValidation::Strict if !strange.is_empty() => Err(refuse(format!(
                "strict decoding error: {}",
                strange.join(", ")
            ))),
            FieldValidation::Strict | FieldValidation::Warn => Ok(strange),
        }
    }

    pub(super) fn fill_defaults(&self, object: &mut Value) {
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

    /// What is wrong with a new object: by the rules of its kind, or else by those of all.
    fn validate(&self, object: &Value) -> Result<()> {
        let mut causes = metadata::create_causes(object, &self.resource);
        causes.extend(self.kind_causes(object));
        self.refuse(object, &causes)
    }

    /// What is wrong with an object by the rules of its kind.
    pub(super) fn kind_causes(&self, object: &Value) -> Vec<Cause> {
        if let Some(custom) = &self.resource.custom {
            custom.validate(object)
        } else if self
            .resource
            .is("apiextensions.k8s.io", "customresourcedefinitions")
        {
            crd::validate(object)
        } else {
            crate::validation::check(object, &self.resource)
        }
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

    /// Makes a new object of a normalised one.
    pub(super) async fn create_object(
        &self,
        mut object: Value,
        decided: Option<Managers>,
    ) -> Result<Written> {
        let resource = &self.resource;
        self.place(&mut object)?;
        escalation::check(
            self.server,
            self.who,
            resource,
            self.namespace(),
            &object,
            None,
        )?;
        strategy::wipe(&mut object);
        self.record_new(&mut object, decided);
        admission::admit(self.server, resource, self.namespace(), &mut object)?;
        let (options, name) = (self.create_options(), meta(&object, "name").to_owned());
        let admitted = Admitted::create(self, &name, &options);
        self.mutate(&admitted, Some(&mut object)).await?;
        if !meta(&object, "name").is_empty() || meta(&object, "generateName").is_empty() {
            let name = meta(&object, "name").to_owned();
            return self
                .create_named(object, &options)
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
            match self.create_named(named, &options).await {
                Err(WriteOr::Write(WriteError::Exists)) if tries < GENERATE_TRIES => {}
                Err(error) => return Err(self.refusal(&name, error)),
                Ok(written) => return Ok(written),
            }
        }
    }

    /// Prepares, checks and stores an object that has its name.
    async fn create_named(&self, mut object: Value, options: &Value) -> Result<Written, WriteOr> {
        let resource = &self.resource;
        strategy::prepare_create(
            &mut object,
            resource,
            self.server.clock(),
            self.server.random(),
        );
        self.fill_defaults(&mut object);
        self.settle(&mut object);
        self.validate(&object)?;
        if resource.is("", "services") {
            let random = self.server.random();
            let causes = crate::services::allocate(
                &mut object,
                self.server.store(),
                self.server.service_range(),
                |below| random.between(0, below),
            )?;
            self.refuse(&object, &causes)?;
            self.allocate_node_ports(&mut object)?;
        }
        let admitted = Admitted::create(self, meta(&object, "name"), options);
        self.validate_by_webhooks(&admitted, Some(&object)).await?;
        if !meta(&object, "resourceVersion").is_empty() {
            return Err(WriteOr::Refused(ApiError::without_reason(
                "resourceVersion should not be set on objects to be created",
            )));
        }
        let key = Key::new(meta(&object, "namespace"), meta(&object, "name"));
        if self.dry_run {
            return match self.server.store().get(&resource.table, &key) {
                Some(_) => Err(WriteOr::Write(WriteError::Exists)),
                None => Ok(Written::Value(object)),
            };
        }
        let object = self.to_stored(object).await?;
        let stored = self
            .server
            .store()
            .create(&resource.table, key, object, &resource.selectable)
            .map_err(WriteOr::Write)?;
        self.after_write(&stored, false);
        Ok(Written::Stored(stored))
    }

    pub(super) fn allocate_node_ports(&self, service: &mut Value) -> Result<()> {
        let random = self.server.random();
        crate::services::allocate_node_ports(service, self.server.store(), |below| {
            random.between(0, below)
        })
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
        set_meta(object, "namespace", Some(self.namespace().into()));
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
    pub(super) async fn to_stored(&self, mut object: Value) -> Result<Value> {
        if self.resource.is("events.k8s.io", "events") {
            event::to_core(&mut object);
        }
        if let Some(custom) = &self.resource.custom {
            let api_version = format!("{}/{}", self.resource.group, custom.storage_version);
            return self.convert(object, &api_version).await;
        }
        Ok(object)
    }

    /// An object of a custom resource in some version.
    async fn convert(&self, mut object: Value, api_version: &str) -> Result<Value> {
        if !webhook::is_needed(&self.resource, api_version, &object) {
            object["apiVersion"] = api_version.into();
            return Ok(object);
        }
        let one = vec![object];
        let converted = webhook::convert(self.server, &self.resource, api_version, one).await?;
        Ok(converted.into_iter().next().unwrap_or_default())
    }

    /// The form of the version that was asked for.
    pub(super) async fn to_requested(&self, object: Value) -> Result<Value> {
        to_requested(object, &self.resource, self.server).await
    }

    /// What follows from a write: CRDs start and stop being served, roles take effect.
    pub(super) fn after_write(&self, stored: &Stored, deleted: bool) {
        crate::custom::after_write(self.server, &self.resource, stored, deleted);
        rbac::after_write(self.server, &self.resource, &stored.key);
    }

    /// The answer to a write.
    pub(super) async fn answer_written(
        &self,
        written: Written,
        code: StatusCode,
        warnings: Vec<String>,
    ) -> Result<Answer> {
        let mut answer = match written {
            Written::Stored(stored) => self.present(&stored).await?,
            Written::Value(object) => self.present_value(object),
        }
        .with_code(code);
        answer.warnings = warnings;
        Ok(answer)
    }
}

/// The form of the version a resource stands for.
pub(super) async fn to_requested(
    mut object: Value,
    resource: &Resource,
    server: &ApiServer,
) -> Result<Value> {
    if resource.is("events.k8s.io", "events") {
        event::from_core(&mut object);
    }
    if resource.is_custom() {
        let all = webhook::convert(server, resource, &resource.api_version(), vec![object]).await?;
        return Ok(all.into_iter().next().unwrap_or_default());
    }
    Ok(object)
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
