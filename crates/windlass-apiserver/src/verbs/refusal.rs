//! Why a write is refused: by what is wrong with the object, or by the store.

use serde_json::Value;

use super::Call;
use crate::object::meta;
use crate::registry::resource::Resource;
use crate::status::{ApiError, Cause, Result};
use crate::store::{Key, WriteError};

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

pub(super) fn invalid(resource: &Resource, object: &Value, causes: &[Cause]) -> Result<()> {
    if causes.is_empty() {
        return Ok(());
    }
    let mut subject = resource.kind_subject();
    subject.group = resource.strategy.error_group(subject.group);
    Err(ApiError::invalid(subject, meta(object, "name"), causes))
}

pub(super) fn of_write(call: &Call<'_>, name: &str, error: WriteError) -> ApiError {
    match error {
        WriteError::Exists => {
            let mut error = ApiError::already_exists(call.resource.subject(), name);
            let key = Key::new(call.namespace(), name);
            let found = call.server.store().get(&call.resource.table, &key);
            if found.is_some_and(|found| found.terminating) {
                error.message = format!("object is being deleted: {}", error.message);
            }
            error
        }
        WriteError::Missing => ApiError::not_found(call.resource.subject(), name),
        WriteError::Changed => ApiError::modified(call.resource.subject(), name),
        WriteError::Encode(error) => ApiError::internal(format!("encoding {name}: {error}")),
        WriteError::TooLarge(_) => ApiError::without_reason("etcdserver: request is too large"),
        WriteError::Storage(why) => ApiError::without_reason(&*why),
    }
}
