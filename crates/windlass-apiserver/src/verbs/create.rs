//! Create, and the binding of a pod to its node.

use http::StatusCode;
use serde_json::{Value, json};

use super::Call;
use super::admit::Admitted;
use super::change::Update;
use crate::apply::Managers;
use crate::http::Answer;
use crate::object::meta;
use crate::resource::Resource;
use crate::status::{ApiError, Result, Subject};

impl Call<'_> {
    pub(super) async fn create(&self) -> Result<Answer> {
        let (object, mut warnings) = self.decode()?;
        warnings.extend(deprecation(&self.resource));
        let written = self.create_object(object, None).await?;
        self.answer_written(written, StatusCode::CREATED, warnings)
            .await
    }

    /// Gives a pod its node: once, and never another.
    pub(super) async fn bind(&self) -> Result<Answer> {
        let mut binding = self.decode_as("Binding")?.value;
        let options = self.create_options();
        let admitted = Admitted {
            subresource: "binding",
            ..Admitted::create(self, self.name(), &options)
        };
        self.place(&mut binding)?;
        self.record_body(&mut binding, "io.k8s.api.core.v1.Binding", "v1", "binding");
        self.admit_body(&admitted, &mut binding).await?;
        let node = binding["target"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if node.is_empty() {
            return Err(ApiError::bad_request(
                "a binding needs target.name, the node's name",
            ));
        }
        let now = self.server.clock().now_seconds();
        self.update_object("binding", &|old| {
            let bound = old["spec"]["nodeName"].as_str().unwrap_or_default();
            if !bound.is_empty() {
                let detail = format!(
                    "pod {} is already assigned to node \"{bound}\"",
                    meta(old, "name")
                );
                let subject = Subject {
                    group: "",
                    kind: "pods/binding",
                };
                return Err(ApiError::conflict(subject, self.name(), &detail));
            }
            let mut new = old.clone();
            new["spec"]["nodeName"] = node.clone().into();
            set_scheduled(&mut new, &now);
            // A binding owns nothing of the pod.
            Ok(Update {
                object: new,
                managers: Some(Managers::read(&old["metadata"]["managedFields"])),
            })
        })
        .await?;
        Ok(Answer::value(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}))
            .with_code(StatusCode::CREATED))
    }
}

/// What a client of a kind that is on its way out is told.
fn deprecation(resource: &Resource) -> Option<String> {
    resource.is("", "endpoints").then(|| {
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()
    })
}

fn set_scheduled(pod: &mut Value, now: &str) {
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    let conditions = &mut pod["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(conditions) => {
            conditions.retain(|condition| condition["type"] != "PodScheduled");
            conditions.push(scheduled);
        }
        None => *conditions = json!([scheduled]),
    }
}
