//! Server-side apply as a request: the configuration read, merged and stored.

use http::StatusCode;
use serde_json::{Value, json};

use super::Call;
use super::pipeline::Update;
use crate::apply::{self, Managers, Writer};
use crate::decode::{DecodeError, FieldValidation};
use crate::go;
use crate::http::{Answer, decode_yaml};
use crate::object::{meta, set_meta};
use crate::registry::resource::Resource;
use crate::status::{ApiError, Result};

impl Call<'_> {
    pub(super) async fn apply(&self, subresource: &str) -> Result<Answer> {
        // That there is one was checked with the other options.
        let manager = self.query.get("fieldManager").unwrap_or_default();
        let creates = subresource.is_empty() || self.creates_what_is_missing(subresource);
        if !creates {
            self.find()?;
        }
        let mut config = self.applied_config()?;
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
        if self.resource.is_custom()
            && let Ok(found) = self.find()
        {
            let live = self.to_requested(found.value()).await?;
            if Managers::read(&live["metadata"]["managedFields"]).is_empty() {
                self.check_live(&live)?;
            }
        }
        apply::check(&config, &self.resource.ty).map_err(|error| {
            ApiError::without_reason(format!(
                "failed to create typed patch object ({}/{}; {}/{}, Kind={}): {error}",
                meta(&config, "namespace"),
                meta(&config, "name"),
                self.resource.group,
                self.resource.version,
                self.resource.kind
            ))
        })?;
        if self.resource.is_custom() {
            crate::decode::whole_numbers(&mut config);
        }
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
            let untracked = managers.is_empty() && !meta(old, "uid").is_empty();
            let managers = if untracked {
                self.before_first_apply(&live, &writer)
            } else {
                managers
            };
            let applied =
                apply::apply(&live, &config, &self.resource.ty, managers, &writer, force)?;
            let mut object = applied.object;
            let read = if self.resource.is_custom() {
                crate::decode::normalise_applied(&mut object, &self.resource).map(drop)
            } else {
                self.normalise(&mut object).map(drop)
            };
            read.map_err(|why| self.unconvertible(&config, &why))?;
            Ok(Update {
                object,
                managers: Some(applied.managers),
            })
        };
        if self.find().is_err() {
            if !creates {
                return Err(self.not_found());
            }
            if meta(&config, "name").is_empty() {
                return Err(self.nameless());
            }
            self.authorize_create()?;
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
            let made = self.create_through(subresource, made.object, made.managers);
            match made.await {
                // Somebody else made it meanwhile: it is there to be changed.
                Err(error) if error.reason == "AlreadyExists" => {}
                made => return self.answer_written(made?, StatusCode::CREATED).await,
            }
        }
        let written = self.update_object(subresource, &merge).await?;
        self.answer_written(written, StatusCode::OK).await
    }

    /// What has not the form of its type cannot be anybody's, so nobody can begin to own it.
    fn check_live(&self, live: &Value) -> Result<()> {
        if apply::is_typed(live, &self.resource.ty) {
            return Ok(());
        }
        let Resource {
            group,
            version,
            kind,
            ty,
            ..
        } = &*self.resource;
        let (namespace, name) = (meta(live, "namespace"), meta(live, "name"));
        let why = apply::check(live, ty).err();
        let why = why.map_or_else(String::new, |why| why.to_string());
        Err(ApiError::without_reason(format!(
            "failed to create manager for existing fields: failed to convert new object ({namespace}/{name}; {group}/{version}, Kind={kind}) to smd typed: {why}"
        )))
    }

    /// A configuration that fits the schema and still is no object of its kind.
    fn unconvertible(&self, config: &Value, why: &DecodeError) -> ApiError {
        let Resource {
            group,
            version,
            kind,
            ..
        } = &*self.resource;
        let (namespace, name) = (meta(config, "namespace"), meta(config, "name"));
        let how = match why {
            DecodeError::Base64(_) => "error decoding from json: ",
            DecodeError::Value(_) => "",
        };
        ApiError::without_reason(format!(
            "failed to convert new object ({namespace}/{name}; {group}/{version}, Kind={kind}) to proper version: unable to convert unstructured object to {group}/{version}, Kind={kind}: {how}{why}"
        ))
    }

    /// An applied configuration names its type in full.
    fn check_type(&self, config: &Value) -> Result<()> {
        let text = |field: &str| config[field].as_str().unwrap_or_default();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        if kind != self.resource.kind || api_version != self.resource.api_version() {
            let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
            return Err(ApiError::bad_request(format!(
                "invalid object type: {group}/{version}, Kind={kind}"
            )));
        }
        Ok(())
    }

    /// The body as YAML, which has to be a map.
    pub(super) fn applied_config(&self) -> Result<Value> {
        let (config, repeated) = decode_yaml(&self.body)?;
        if config.is_object() {
            self.judge_repeated_key(repeated)?;
            return Ok(config);
        }
        Err(ApiError::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go::json_kind(&config)
        )))
    }

    /// A key that is said twice is told of, as far as the request wants that.
    fn judge_repeated_key(&self, repeated: Option<String>) -> Result<()> {
        match (self.field_validation, repeated) {
            (FieldValidation::Strict, Some(repeated)) => Err(ApiError::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: \
                 yaml: unmarshal errors:\n  {repeated}"
            ))),
            (FieldValidation::Warn, Some(repeated)) => {
                self.warn(vec![repeated]);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Who owns an object that nobody was recorded for: one manager that stands for all before.
    fn before_first_apply(&self, live: &Value, writer: &Writer<'_>) -> Managers {
        let writer = Writer {
            manager: "before-first-apply",
            ..*writer
        };
        apply::record_update(
            &self.untouched(),
            live,
            &self.resource.ty,
            Managers::default(),
            &writer,
            &[],
        )
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
