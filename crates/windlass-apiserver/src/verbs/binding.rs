//! The binding of a pod to its node: once, and never to another.

use std::sync::atomic::AtomicBool;

use http::StatusCode;
use serde_json::{Value, json};

use super::Call;
use super::admit::Admitted;
use super::pipeline::Update;
use crate::apply::Managers;
use crate::http::warnings::Warnings;
use crate::http::{Answer, ResourceRequest};
use crate::node::Upgrade;
use crate::object::{is_terminating, meta, meta_mut};
use crate::status::{ApiError, Result, Subject};

const BINDING: &str = "io.k8s.api.core.v1.Binding";

/// What a subresource that is created answers.
pub(super) fn success() -> Answer {
    Answer::value(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}))
        .with_code(StatusCode::CREATED)
}

impl Call<'_> {
    /// The body as the kind of a subresource; `package` is where Go has it.
    pub(super) fn decode_body_of(&self, kind: &str, package: &str) -> Result<Value> {
        let body = self.decode_as(kind)?.value;
        let claimed = body["kind"].as_str().unwrap_or_default();
        if claimed.is_empty() || claimed == kind {
            return Ok(body);
        }
        let api_version = body["apiVersion"].as_str().unwrap_or_default();
        let version = api_version.rsplit('/').next().unwrap_or_default();
        Err(ApiError::bad_request(format!(
            "{claimed} in version \"{version}\" cannot be handled as a {kind}: converting ({version}.{claimed}) to ({package}.{kind}): unknown conversion"
        )))
    }

    /// Binds the pod that the path names.
    pub(super) async fn bind(&self) -> Result<Answer> {
        let mut binding = self.decode_body_of("Binding", "core")?;
        let options = self.create_options();
        let admitted = Admitted {
            subresource: "binding",
            ..Admitted::create(self, self.name(), &options)
        };
        self.place(&mut binding)?;
        self.record_body(&mut binding, BINDING, "v1", "binding");
        self.mutate(&admitted, Some(&mut binding)).await?;
        if meta(&binding, "name") != self.name() {
            return Err(ApiError::bad_request(
                "name in URL does not match name in Binding object",
            ));
        }
        check_target(&binding)?;
        self.judge(&admitted, Some(&binding)).await?;
        self.bind_by(&binding).await
    }

    /// Binds the pod that the binding names: the older way.
    pub(super) async fn bind_named(&self) -> Result<Answer> {
        let mut binding = self.decode_body_of("Binding", "core")?;
        let (options, name) = (self.create_options(), meta(&binding, "name").to_owned());
        let admitted = Admitted::create(self, &name, &options);
        self.place(&mut binding)?;
        self.record_body(&mut binding, BINDING, "v1", "");
        self.mutate(&admitted, Some(&mut binding)).await?;
        let name = meta(&binding, "name");
        if name.is_empty() {
            return Err(ApiError::bad_request("Name parameter required."));
        }
        check_target(&binding)?;
        self.judge(&admitted, Some(&binding)).await?;
        let pods = self.server.registry().find("", "v1", "pods");
        let resource = pods.ok_or_else(ApiError::resource_not_found)?;
        let request = ResourceRequest {
            resource: resource.plural.clone(),
            name: Some(name.to_owned()),
            subresource: Some("binding".to_owned()),
            ..self.request.clone()
        };
        let call = Call {
            request: &request,
            resource,
            query: self.query.clone(),
            body: self.body.clone(),
            wanted: self.wanted,
            refused: None,
            upgrade: Upgrade::default(),
            warnings: Warnings::default(),
            guarded: AtomicBool::new(false),
            ..*self
        };
        call.bind_by(&binding).await
    }

    async fn bind_by(&self, binding: &Value) -> Result<Answer> {
        let node = &binding["target"]["name"];
        let now = self.server.clock().now_seconds();
        self.update_object("binding", &|old| {
            self.check_bindable(binding, old)?;
            let mut new = old.clone();
            new["spec"]["nodeName"] = node.clone();
            for part in ["annotations", "labels"] {
                add_all(&mut new, part, &binding["metadata"][part]);
            }
            set_scheduled(&mut new, &now);
            // A binding owns nothing of the pod.
            Ok(Update {
                object: new,
                managers: Some(Managers::read(&old["metadata"]["managedFields"])),
            })
        })
        .await?;
        Ok(success())
    }

    fn check_bindable(&self, binding: &Value, pod: &Value) -> Result<()> {
        let (asked, uid) = (meta(binding, "uid"), meta(pod, "uid"));
        if !asked.is_empty() && asked != uid {
            let detail = self.uid_mismatch(asked, uid);
            return Err(ApiError::conflict(
                self.resource.subject(),
                self.name(),
                &detail,
            ));
        }
        let name = meta(pod, "name");
        let bound = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let gated = pod["spec"]["schedulingGates"]
            .as_array()
            .is_some_and(|gates| !gates.is_empty());
        let detail = if is_terminating(pod) {
            format!("pod {name} is being deleted, cannot be assigned to a host")
        } else if !bound.is_empty() {
            format!("pod {name} is already assigned to node \"{bound}\"")
        } else if gated {
            format!("pod {name} has non-empty .spec.schedulingGates")
        } else {
            return Ok(());
        };
        let subject = Subject {
            group: "",
            kind: "pods/binding",
        };
        Err(ApiError::conflict(subject, self.name(), &detail))
    }
}

/// What a binding binds to is a node, and has a name.
fn check_target(binding: &Value) -> Result<()> {
    let text = |part: &str| binding["target"][part].as_str().unwrap_or_default();
    let kind = text("kind");
    if !matches!(kind, "" | "Node") {
        return Err(ApiError::without_reason(format!(
            "target.kind: Unsupported value: \"{kind}\": supported values: \"Node\", \"<empty>\""
        )));
    }
    if text("name").is_empty() {
        return Err(ApiError::without_reason("target.name: Required value"));
    }
    Ok(())
}

/// What a binding says of the pod beside its node.
fn add_all(pod: &mut Value, part: &str, more: &Value) {
    let Some(more) = more.as_object().filter(|more| !more.is_empty()) else {
        return;
    };
    let own = meta_mut(pod).entry(part).or_insert_with(|| json!({}));
    if let Some(own) = own.as_object_mut() {
        own.extend(more.clone());
    }
}

fn set_scheduled(pod: &mut Value, now: &str) {
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    super::eviction::set_condition(pod, scheduled);
}
