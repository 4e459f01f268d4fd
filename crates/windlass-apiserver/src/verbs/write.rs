//! How objects are read from a request, brought into the form they are stored in, and answered.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::Call;
use crate::decode::{self, DecodeError, FieldValidation};
use crate::http::Answer;
use crate::kinds::Admission;
use crate::object::meta;
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::status::{ApiError, Cause, Result};
use crate::store::{Key, Stored, WriteError};
use crate::{defaults, webhook};

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
        let unknown = self.normalise(&mut object);
        strange.extend(unknown.map_err(|why| unreadable(why.to_string()))?);
        if !self.resource.is_custom() {
            strange.truncate(crate::findings::MOST_STRANGE);
        }
        self.judge_strange(strange, unreadable)?;
        Ok(object)
    }

    /// Brings a client's object into stored form; what is strange about it comes back, or why it
    /// cannot be read.
    pub(super) fn normalise(&self, object: &mut Value) -> Result<Vec<String>, DecodeError> {
        let unknown = decode::normalise(object, &self.resource)?;
        if !self.resource.is_custom() {
            defaults::drop_zeros(object, &self.resource.ty);
        }
        self.resource.strategy.before_defaults(object);
        self.fill_defaults(object);
        self.resource.strategy.after_defaults(object);
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
        let resource = &self.resource;
        resource.strategy.fill_defaults(object, &resource.ty);
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

    pub(super) fn refuse(&self, object: &Value, causes: &[Cause]) -> Result<()> {
        if causes.is_empty() {
            return Ok(());
        }
        let mut subject = self.resource.kind_subject();
        subject.group = self.resource.strategy.error_group(subject.group);
        Err(ApiError::invalid(subject, meta(object, "name"), causes))
    }

    /// Looks at an object as it would be stored: some kinds are checked in that form only.
    pub(super) fn in_stored_form<T>(&self, object: &Value, look: impl FnOnce(&Value) -> T) -> T {
        let Some(to_stored) = self.resource.strategy.stored_form() else {
            return look(object);
        };
        let mut stored = object.clone();
        to_stored(&mut stored);
        look(&stored)
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
        if let Some(to_stored) = self.resource.strategy.stored_form() {
            to_stored(&mut object);
        }
        if let Some(custom) = &self.resource.custom {
            let api_version = custom.objects.stored_api_version(&self.resource.group);
            let one = vec![object];
            let converted =
                webhook::convert(self.server, &self.resource, &api_version, one).await?;
            object = converted.into_iter().next().unwrap_or_default();
            custom.objects.fill_stored(&mut object).map_err(too_much)?;
        }
        Ok(object)
    }

    /// What would be read after a dry run: what the stored version has defaults for comes, and what
    /// it does not know goes.
    pub(super) async fn as_if_stored(&self, object: Value) -> Result<Value> {
        match &self.resource.custom {
            Some(custom) if !custom.objects.is_stored_version() => {
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
        let resource = &self.resource;
        let strategy = resource.strategy;
        strategy.after_write(self.server, resource, stored, deleted);
    }

    /// What is admitted where.
    pub(super) fn admission(&self) -> Admission<'_> {
        Admission {
            server: self.server,
            resource: &self.resource,
            namespace: self.namespace(),
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
        if let Some(to_requested) = resource.strategy.requested_form() {
            to_requested(object);
        }
        if let Some(custom) = &resource.custom {
            custom.objects.read_stored(object);
        }
    }
    if resource.is_custom() {
        return webhook::convert(server, resource, &resource.api_version(), objects).await;
    }
    Ok(objects)
}

/// No object may have that many defaults.
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn too_much(error: windlass_schema::TooMuch) -> ApiError {
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
