//! Update, patch and apply.

use http::StatusCode;
use serde_json::{Value, json};

use super::Call;
use super::change::Update;
use super::write::Written;
use crate::apply::{self, Managers, Writer};
use crate::decode;
use crate::http::{Answer, decode_yaml, media_type};
use crate::object::{meta, set_meta};
use crate::patch::{Patch, PatchKind};
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
    pub(super) fn update(&self, subresource: &str) -> Result<Answer> {
        let mut object = self.decode()?;
        decode::check_kind(&object, &self.resource)?;
        let mut warnings = Vec::new();
        self.normalise(&mut object, &mut warnings)?;
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
            let written = self.create_object(object, None)?;
            return self.answer_written(written, StatusCode::CREATED, warnings);
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
                self.resource.kind_subject(),
                self.name(),
                &[cause],
            ));
        }
        let written = self.update_object(subresource, &|_| {
            Ok(Update {
                object: object.clone(),
                managers: None,
            })
        })?;
        self.answer_written(written, StatusCode::OK, warnings)
    }

    pub(super) fn patch(&self, subresource: &str) -> Result<Answer> {
        let kind =
            PatchKind::from_media_type(media_type(self.headers), !self.resource.is_custom())?;
        if kind == PatchKind::Apply {
            return self.apply(subresource);
        }
        let patch = Patch::parse(kind, &self.body)?;
        let warnings = std::cell::RefCell::new(Vec::new());
        let written = self.update_object(subresource, &|old| {
            let mut object = patch.on(old, &self.resource.ty)?;
            warnings.borrow_mut().clear();
            self.normalise(&mut object, &mut warnings.borrow_mut())?;
            Ok(Update {
                object,
                managers: None,
            })
        })?;
        self.answer_written(written, StatusCode::OK, warnings.into_inner())
    }

    fn apply(&self, subresource: &str) -> Result<Answer> {
        let Some(manager) = self.query.get("fieldManager") else {
            let cause = field::required("fieldManager", "is required for apply patch");
            let subject = crate::status::Subject {
                group: "meta.k8s.io",
                kind: "PatchOptions",
            };
            return Err(ApiError::invalid(subject, "", &[cause]));
        };
        let mut config = decode_yaml(&self.body)?;
        decode::check_kind(&config, &self.resource)?;
        if config["metadata"]
            .get("managedFields")
            .is_some_and(|fields| !fields.is_null())
        {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        if !meta(&config, "name").is_empty() && meta(&config, "name") != self.name() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                meta(&config, "name"),
                self.name()
            )));
        }
        apply::check(&config, &self.resource.ty, "").map_err(|error| {
            ApiError::internal(format!(
                "failed to create typed patch object ({}/{}; {}, Kind={}): {error}",
                self.request.namespace.as_deref().unwrap_or_default(),
                self.name(),
                self.resource.api_version(),
                self.resource.kind
            ))
        })?;
        keep_only_own_part(&mut config, subresource, self.resource.has_status());
        let (now, api_version) = (
            self.server.clock().now_seconds(),
            self.resource.api_version(),
        );
        let writer = Writer {
            manager,
            api_version: &api_version,
            subresource,
            now: Some(&now),
        };
        let force = self.query.flag("force");
        let warnings = std::cell::RefCell::new(Vec::new());
        let merge = |old: &Value| -> Result<Update> {
            let managers = Managers::read(&old["metadata"]["managedFields"]);
            let mut live = old.clone();
            set_meta(&mut live, "managedFields", None);
            let applied =
                apply::apply(&live, &config, &self.resource.ty, managers, &writer, force)?;
            let mut object = applied.object;
            warnings.borrow_mut().clear();
            self.normalise(&mut object, &mut warnings.borrow_mut())?;
            Ok(Update {
                object,
                managers: Some(applied.managers),
            })
        };
        if self.find().is_err() {
            if !subresource.is_empty() {
                return Err(self.not_found());
            }
            let mut made = merge(&json!({}))?;
            set_meta(&mut made.object, "name", Some(self.name().into()));
            let written = self.create_object(made.object, made.managers)?;
            return self.answer_written(written, StatusCode::CREATED, warnings.into_inner());
        }
        let written: Written = self.update_object(subresource, &merge)?;
        self.answer_written(written, StatusCode::OK, warnings.into_inner())
    }
}

/// An apply to the main resource claims no status, one to a subresource nothing else.
fn keep_only_own_part(config: &mut Value, subresource: &str, has_status: bool) {
    let Some(map) = config.as_object_mut() else {
        return;
    };
    match subresource {
        "" if has_status => {
            map.remove("status");
        }
        "" => {}
        part => map.retain(|key, _| {
            key == part || matches!(key.as_str(), "apiVersion" | "kind" | "metadata")
        }),
    }
    if !subresource.is_empty()
        && let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.retain(|key, _| {
            matches!(
                key.as_str(),
                "name" | "namespace" | "uid" | "resourceVersion"
            )
        });
    }
}
