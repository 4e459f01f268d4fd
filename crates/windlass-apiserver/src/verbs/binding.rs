//! The binding of a pod to its node: once, and never to another.

use std::sync::atomic::AtomicBool;

use http::StatusCode;
use serde_json::{Value, json};

use super::admit::{self, Admitted};
use super::pipeline::{self, Update, place};
use super::{Call, body, options, ownership};
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

/// Binds the pod that the path names.
pub(super) async fn bind(call: &Call<'_>) -> Result<Answer> {
    let mut binding = body::decode_posted(call, "Binding", "core")?;
    let options = options::shown(&call.query, "CreateOptions");
    let admitted = Admitted {
        subresource: "binding",
        ..Admitted::create(call, call.name(), &options)
    };
    place::put(call, &mut binding)?;
    ownership::record_body(call, &mut binding, BINDING, "v1", "binding");
    admit::mutate(call, &admitted, Some(&mut binding)).await?;
    if meta(&binding, "name") != call.name() {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    check_target(&binding)?;
    admit::judge(call, &admitted, Some(&binding)).await?;
    bind_by(call, &binding).await
}

/// Binds the pod that the binding names: the older way.
pub(super) async fn bind_named(call: &Call<'_>) -> Result<Answer> {
    let mut binding = body::decode_posted(call, "Binding", "core")?;
    let (options, name) = (
        options::shown(&call.query, "CreateOptions"),
        meta(&binding, "name").to_owned(),
    );
    let admitted = Admitted::create(call, &name, &options);
    place::put(call, &mut binding)?;
    ownership::record_body(call, &mut binding, BINDING, "v1", "");
    admit::mutate(call, &admitted, Some(&mut binding)).await?;
    let name = meta(&binding, "name");
    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    check_target(&binding)?;
    admit::judge(call, &admitted, Some(&binding)).await?;
    let pods = call.server.registry().find("", "v1", "pods");
    let resource = pods.ok_or_else(ApiError::resource_not_found)?;
    let request = ResourceRequest {
        resource: resource.plural.clone(),
        name: Some(name.to_owned()),
        subresource: Some("binding".to_owned()),
        ..call.request.clone()
    };
    let call = Call {
        request: &request,
        resource,
        query: call.query.clone(),
        body: call.body.clone(),
        wanted: call.wanted,
        refused: None,
        upgrade: Upgrade::default(),
        warnings: Warnings::default(),
        guarded: AtomicBool::new(false),
        ..*call
    };
    bind_by(&call, &binding).await
}

async fn bind_by(call: &Call<'_>, binding: &Value) -> Result<Answer> {
    let node = &binding["target"]["name"];
    let now = call.server.clock().now_seconds();
    pipeline::update(call, "binding", &|old| {
        check_bindable(call, binding, old)?;
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

fn check_bindable(call: &Call<'_>, binding: &Value, pod: &Value) -> Result<()> {
    let (asked, uid) = (meta(binding, "uid"), meta(pod, "uid"));
    if !asked.is_empty() && asked != uid {
        let detail = place::uid_mismatch(call, asked, uid);
        return Err(ApiError::conflict(
            call.resource.subject(),
            call.name(),
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
    Err(ApiError::conflict(subject, call.name(), &detail))
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
