//! Update: an object replaced as a whole.

use http::StatusCode;
use serde_json::{Value, json};

use super::Call;
use super::pipeline::Update;
use super::write::Written;
use crate::http::Answer;
use crate::object::{meta, set_meta};
use crate::status::{ApiError, Result, field};

impl Call<'_> {
    /// Whether an update makes what is not there. That of the status of a kind that has one does,
    /// too: nobody thought of forbidding it.
    pub(super) fn creates_what_is_missing(&self, subresource: &str) -> bool {
        matches!(subresource, "" | "status") && self.resource.strategy.is_created_by_update()
    }

    /// The name of the object is that of the path.
    fn check_name(&self, object: &serde_json::Value) -> Result<()> {
        let name = meta(object, "name");
        if name == self.name() {
            return Ok(());
        }
        Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            self.name()
        )))
    }

    pub(super) async fn update(&self, subresource: &str) -> Result<Answer> {
        let mut object = self.decode()?;
        if meta(&object, "name").is_empty() {
            return Err(self.nameless());
        }
        self.check_name(&object)?;
        let named = |field: &str| !matches!(meta(&object, field), "" | "0");
        self.note_guard(named("resourceVersion") || named("uid"));
        self.place(&mut object)?;
        if self.creates_what_is_missing(subresource) && self.find().is_err() {
            self.authorize_create()?;
            let uid = meta(&object, "uid");
            if !uid.is_empty() {
                let why = self.uid_mismatch(uid, "");
                return Err(ApiError::conflict(
                    self.resource.subject(),
                    self.name(),
                    &why,
                ));
            }
            // The version of what is not there means nothing.
            let version = object["metadata"]["resourceVersion"].take();
            set_meta(&mut object, "resourceVersion", None);
            let mut written = self.create_through(subresource, object, None).await?;
            if let Written::Value(object) = &mut written
                && version.is_string()
            {
                set_meta(object, "resourceVersion", Some(version));
            }
            return self.answer_written(written, StatusCode::CREATED).await;
        }
        let needs_version = self.resource.strategy.needs_version();
        if needs_version && matches!(meta(&object, "resourceVersion"), "" | "0") {
            // The object must be there, and be the one meant, before its version is asked for.
            let found = self.find()?;
            self.check_uid(&object, &found.uid)?;
            let cause = field::invalid(
                "metadata.resourceVersion",
                &json!(0),
                "must be specified for an update",
            );
            return Err(ApiError::invalid(
                self.resource.subject(),
                self.name(),
                &[cause],
            ));
        }
        let make = |_: &Value| -> Result<Update> {
            Ok(Update {
                object: object.clone(),
                managers: None,
            })
        };
        let written = self.update_object(subresource, &make).await?;
        self.answer_written(written, StatusCode::OK).await
    }
}
