//! The scale subresource: a small view of replicas, for kinds that have them.

use http::StatusCode;
use serde_json::{Value, json};

use super::admit::{self, Admitted};
use super::pipeline::{self, Update};
use super::present::Written;
use super::{Call, body, form, options};
use crate::apply::{self, Managers, PathElement, Writer};
use crate::http::{Answer, media_type};
use crate::object::{at, meta, set_at};
use crate::patch::{Patch, PatchKind};
use crate::registry::resource::Resource;
use crate::registry::types::Type;
use crate::status::{ApiError, Result};
use windlass_schema::ScalePaths;

const SCALE_VERSION: &str = "autoscaling/v1";
const SCALE_TYPE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// A scale to be written.
struct NewScale {
    scale: Value,
    /// Ownership of the object, when it was decided already (by an apply).
    managers: Option<Managers>,
}

impl From<Value> for NewScale {
    fn from(scale: Value) -> Self {
        Self {
            scale,
            managers: None,
        }
    }
}

fn paths(resource: &Resource) -> ScalePaths {
    resource
        .custom
        .as_ref()
        .and_then(|custom| custom.objects.scale.clone())
        .unwrap_or_else(|| ScalePaths {
            spec_replicas: ".spec.replicas".into(),
            status_replicas: ".status.replicas".into(),
            label_selector: None,
        })
}

/// Which pods are counted, in words.
fn selected(resource: &Resource, object: &Value) -> String {
    resource.strategy.selector_text(&object["spec"]["selector"])
}

fn scale_of(resource: &Resource, object: &Value) -> Value {
    let paths = paths(resource);
    let number = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or_default();
    let mut status = json!({"replicas": number(&paths.status_replicas)});
    let selector = match &paths.label_selector {
        Some(path) => at(object, path).and_then(Value::as_str).map(str::to_owned),
        None => Some(selected(resource, object)).filter(|text| !text.is_empty()),
    };
    if let Some(selector) = selector {
        status["selector"] = selector.into();
    }
    let metadata = &object["metadata"];
    let replicas = number(&paths.spec_replicas);
    let spec = if replicas == 0 {
        json!({})
    } else {
        json!({"replicas": replicas})
    };
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": spec,
        "status": status,
    })
}

pub(super) async fn get(call: &Call<'_>) -> Result<Answer> {
    let object = form::to_requested(call.server, &call.resource, call.find()?.value()).await?;
    Ok(Answer::value(scale_of(&call.resource, &object)))
}

pub(super) async fn update(call: &Call<'_>) -> Result<Answer> {
    let scale = body::decode_as(call, "Scale")?.value;
    write(call, &|_| Ok(scale.clone().into())).await
}

pub(super) async fn patch(call: &Call<'_>) -> Result<Answer> {
    let built_in = !call.resource.is_custom();
    let kind = PatchKind::from_media_type(media_type(call.headers), built_in)?;
    if kind == PatchKind::Apply {
        return apply_config(call).await;
    }
    let patch = Patch::parse(kind, &call.body)?;
    let ty = Type::Named(SCALE_TYPE.into());
    write(call, &|old| {
        Ok(patch.on(&scale_of(&call.resource, old), &ty)?.into())
    })
    .await
}

/// Server-side apply of a scale: who owns the object's replicas owns the scale's.
async fn apply_config(call: &Call<'_>) -> Result<Answer> {
    let config = body::applied_config(call)?;
    let manager = call.query.get("fieldManager").unwrap_or_default();
    let now = call.server.clock().now_seconds();
    let writer = Writer {
        manager,
        api_version: SCALE_VERSION,
        subresource: "scale",
        now: Some(&now),
    };
    let ty = Type::Named(SCALE_TYPE.into());
    let replicas = replicas_path(&call.resource);
    write(call, &|old| {
        let managers = Managers::read(&old["metadata"]["managedFields"]);
        let applied = apply::apply(
            &scale_of(&call.resource, old),
            &config,
            &ty,
            managers.of_scale(&replicas, SCALE_VERSION),
            &writer,
            call.query.flag("force"),
        )?;
        let version = call.resource.api_version();
        Ok(NewScale {
            scale: applied.object,
            managers: Some(managers.take_scale(&applied.managers, &replicas, &version)),
        })
    })
    .await
}

/// Where the object keeps what its scale calls the replicas.
fn replicas_path(resource: &Resource) -> Vec<PathElement> {
    let path = paths(resource).spec_replicas;
    let parts: Vec<&str> = path.split('.').filter(|part| !part.is_empty()).collect();
    apply::fields_path(&parts)
}

/// Who owns what after a plain write of a scale. It is recorded for the scale, as far as anybody
/// owned its replicas before, and taken over from there.
fn owners_after(call: &Call<'_>, old: &Value, scale: &Value) -> Managers {
    let managers = Managers::read(&old["metadata"]["managedFields"]);
    let replicas = replicas_path(&call.resource);
    let of_scale = managers.of_scale(&replicas, SCALE_VERSION);
    if of_scale.is_empty() {
        return managers;
    }
    // A scale to nothing is not on the wire, so nobody owns it.
    let mut scale = scale.clone();
    if let Some(spec) = scale["spec"].as_object_mut() {
        spec.retain(|field, value| field != "replicas" || value.as_i64() != Some(0));
    }
    let (manager, now) = (call.field_manager(), call.server.clock().now_seconds());
    let writer = Writer {
        manager: &manager,
        api_version: SCALE_VERSION,
        subresource: "scale",
        now: Some(&now),
    };
    let (live, ty) = (
        scale_of(&call.resource, old),
        Type::Named(SCALE_TYPE.into()),
    );
    let recorded = apply::record_update(&live, &scale, &ty, of_scale, &writer, &[]);
    managers.take_scale(&recorded, &replicas, &call.resource.api_version())
}

async fn write(
    call: &Call<'_>,
    make: &(dyn Fn(&Value) -> Result<NewScale> + Sync),
) -> Result<Answer> {
    let old = form::to_requested(call.server, &call.resource, call.find()?.value()).await?;
    let (asked, old_scale) = (make(&old)?.scale, scale_of(&call.resource, &old));
    let mut admitted_scale = asked.clone();
    let options = options::shown(&call.query, "UpdateOptions");
    let admitted = Admitted::update(call, "scale", &old_scale, &options);
    admit::mutate(call, &admitted, Some(&mut admitted_scale)).await?;
    // What is validated is the scale of the object as it is going to be.
    let mut scaled = old.clone();
    let replicas = admitted_scale["spec"]["replicas"].as_i64();
    let path = paths(&call.resource).spec_replicas;
    set_at(&mut scaled, &path, replicas.unwrap_or_default().into());
    admit::judge(call, &admitted, Some(&scale_of(&call.resource, &scaled))).await?;
    let changed = admitted_scale != asked;
    let change = |old: &Value| -> Result<Update> {
        let NewScale {
            mut scale,
            managers,
        } = make(old)?;
        if changed {
            scale.clone_from(&admitted_scale);
        }
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
        if replicas < 0 {
            let cause = crate::status::field::invalid(
                "spec.replicas",
                &replicas.into(),
                "must be greater than or equal to 0",
            );
            let subject = crate::status::Subject {
                group: "autoscaling",
                kind: "Scale",
            };
            return Err(ApiError::invalid(subject, call.name(), &[cause]));
        }
        let mut object = old.clone();
        let version = meta(&scale, "resourceVersion");
        if !version.is_empty() {
            object["metadata"]["resourceVersion"] = version.into();
        }
        set_at(&mut object, &path, replicas.into());
        let managers = managers.unwrap_or_else(|| owners_after(call, old, &scale));
        Ok(Update {
            object,
            managers: Some(managers),
        })
    };
    let written = pipeline::update(call, "scale", &change).await?;
    let object = match written {
        Written::Stored(stored) => {
            form::to_requested(call.server, &call.resource, stored.value()).await?
        }
        Written::Value(object) => object,
    };
    Ok(Answer::value(scale_of(&call.resource, &object)).with_code(StatusCode::OK))
}
