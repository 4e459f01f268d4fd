//! Update: an object replaced as a whole.

use http::StatusCode;
use serde_json::{Value, json};

use super::Call;
use super::change::Update;
use crate::http::Answer;
use crate::object::meta;
use crate::status::{ApiError, Result, field};

/// Kinds that a PUT creates when they are not there.
const CREATED_BY_UPDATE: &[(&str, &str)] = &[
    ("", "endpoints"),
    ("", "events"),
    ("", "limitranges"),
    ("", "services"),
    ("coordination.k8s.io", "leases"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
];

impl Call<'_> {
    pub(super) async fn update(&self, subresource: &str) -> Result<Answer> {
        let (object, warnings) = self.decode()?;
        if meta(&object, "name").is_empty() {
            return Err(ApiError::bad_request("name must be provided"));
        }
        let address = (self.resource.group.as_str(), self.resource.plural.as_str());
        if subresource.is_empty()
            && CREATED_BY_UPDATE.contains(&address)
            && !self.resource.is_custom()
            && self.find().is_err()
        {
            if meta(&object, "name") != self.name() {
                return Err(ApiError::bad_request(format!(
                    "the name of the object ({}) does not match the name on the URL ({})",
                    meta(&object, "name"),
                    self.name()
                )));
            }
            let written = self.create_object(object, None).await?;
            return self
                .answer_written(written, StatusCode::CREATED, warnings)
                .await;
        }
        if self.resource.is_custom() && meta(&object, "resourceVersion").is_empty() {
            // The object must be there before its version is asked for.
            self.find()?;
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
        self.answer_written(written, StatusCode::OK, warnings).await
    }
}
