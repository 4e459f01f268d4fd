//! Server-side apply as a request: the configuration read, merged and stored.

use http::StatusCode;
use serde_json::{Value, json};

use super::Call;
use super::change::Update;
use crate::apply::{self, Managers, Writer};
use crate::decode;
use crate::http::{Answer, decode_yaml};
use crate::object::{meta, set_meta};
use crate::status::{ApiError, Result, field};

impl Call<'_> {
    pub(super) async fn apply(&self, subresource: &str) -> Result<Answer> {
        let Some(manager) = self.query.get("fieldManager") else {
            let cause = field::required("fieldManager", "is required for apply patch");
            return Err(super::invalid_options("PatchOptions", &[cause]));
        };
        let mut config = decode_yaml(&self.body)?;
        self.check_type(&config)?;
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
            ApiError::without_reason(format!(
                "failed to create typed patch object ({}/{}; {}/{}, Kind={}): {error}",
                meta(&config, "namespace"),
                meta(&config, "name"),
                self.resource.group,
                self.resource.version,
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
        let merge = |old: &Value| -> Result<Update> {
            let managers = Managers::read(&old["metadata"]["managedFields"]);
            let mut live = old.clone();
            set_meta(&mut live, "managedFields", None);
            let applied =
                apply::apply(&live, &config, &self.resource.ty, managers, &writer, force)?;
            let mut object = applied.object;
            self.normalise(&mut object)
                .map_err(|why| decode::unreadable(&self.resource, &why))?;
            Ok(Update {
                object,
                managers: Some(applied.managers),
            })
        };
        if self.find().is_err() {
            if !subresource.is_empty() {
                return Err(self.not_found());
            }
            let uid = meta(&config, "uid");
            if !uid.is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                );
                return Err(ApiError::conflict(
                    self.resource.subject(),
                    self.name(),
                    &why,
                ));
            }
            let mut made = merge(&json!({}))?;
            set_meta(&mut made.object, "name", Some(self.name().into()));
            // A version is asked for in an update; what is made has none yet.
            set_meta(&mut made.object, "resourceVersion", None);
            match self.create_object(made.object, made.managers).await {
                // Somebody else made it meanwhile: it is there to be changed.
                Err(error) if error.reason == "AlreadyExists" => {}
                made => {
                    return self
                        .answer_written(made?, StatusCode::CREATED, Vec::new())
                        .await;
                }
            }
        }
        let written = self.update_object(subresource, &merge).await?;
        self.answer_written(written, StatusCode::OK, Vec::new())
            .await
    }

    /// An applied configuration names its type in full.
    fn check_type(&self, config: &Value) -> Result<()> {
        let text = |field: &str| config[field].as_str().unwrap_or_default();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        if kind.is_empty() || api_version.is_empty() {
            let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
            return Err(ApiError::bad_request(format!(
                "invalid object type: {group}/{version}, Kind={kind}"
            )));
        }
        if kind == self.resource.kind && api_version != self.resource.api_version() {
            return Err(ApiError::bad_request(format!(
                "Incorrect version specified in apply patch. Specified patch version: {api_version}, expected: {}",
                self.resource.api_version()
            )));
        }
        decode::check_kind(config, &self.resource)
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
