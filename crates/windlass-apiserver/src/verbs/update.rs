//! Update: an object replaced as a whole.

use http::StatusCode;
use serde_json::{Value, json};

use super::Call;
use super::change::Update;
use super::write::Written;
use crate::http::Answer;
use crate::object::{meta, set_meta};
use crate::status::{ApiError, Result, field};

/// Kinds that a PUT creates when they are not there.
const CREATED_BY_UPDATE: &[(&str, &str)] = &[
    ("", "endpoints"),
    ("", "events"),
    ("", "limitranges"),
    ("", "services"),
    ("coordination.k8s.io", "leases"),
    ("node.k8s.io", "runtimeclasses"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
];

/// Built-in kinds of which a PUT must name the version it means, as custom resources do.
const NEEDS_VERSION: &[(&str, &str)] = &[
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings",
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
    ),
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("coordination.k8s.io", "leases"),
    ("node.k8s.io", "runtimeclasses"),
    ("policy", "poddisruptionbudgets"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "csistoragecapacities"),
    ("storage.k8s.io", "volumeattachments"),
];

impl Call<'_> {
    /// Whether an update makes what is not there. That of the status of a kind that has one does,
    /// too: nobody thought of forbidding it.
    pub(super) fn creates_what_is_missing(&self, subresource: &str) -> bool {
        let address = (self.resource.group.as_str(), self.resource.plural.as_str());
        matches!(subresource, "" | "status")
            && CREATED_BY_UPDATE.contains(&address)
            && !self.resource.is_custom()
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
        self.place(&mut object)?;
        let address = (self.resource.group.as_str(), self.resource.plural.as_str());
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
        let needs_version = self.resource.is_custom() || NEEDS_VERSION.contains(&address);
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
