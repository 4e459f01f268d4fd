//! The environment of a container and the expansion of `$(VAR)`.
//!
//! `$(NAME)` in `command`, `args` and `env[].value` stands for a variable of the container that
//! was defined before it; one that is not defined stays as it is written, and `$$(NAME)` is an
//! escape for the text `$(NAME)`. Variables come from literals, `fieldRef`, ConfigMaps and
//! Secrets; those two are handed in by the caller, who is the one that may read them. Before all
//! of them come the variables of the Services that are there ([`of_services`]).

mod service;

pub use service::of_services;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ConfigMap, Container, EnvVar, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service,
    Volume,
};
use serde::{Deserialize, Serialize};

use crate::downward;
pub use crate::downward::{Capacity, DownwardError, Facts};

/// Variables in the order in which they were defined; a later one of the same name wins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    variables: Vec<(String, String)>,
}

/// Why the environment of a container cannot be made (yet): a `CreateContainerConfigError`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EnvError {
    /// The object a variable comes from does not exist.
    #[error("{kind} \"{name}\" not found")]
    NotFound {
        /// `configmap` or `secret`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// The object exists but lacks the key.
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    NoSuchKey {
        /// The key that was asked for.
        key: String,
        /// `ConfigMap` or `Secret`.
        kind: &'static str,
        /// The pod's namespace.
        namespace: String,
        /// The object's name.
        name: String,
    },
    /// The value is no text, and a variable can only hold text.
    #[error("key {key} in secret {name} is not valid UTF-8")]
    NotText {
        /// The key that was asked for.
        key: String,
        /// The Secret's name.
        name: String,
    },
    /// Something about the pod itself that it cannot be told.
    #[error(transparent)]
    Downward(#[from] DownwardError),
    /// A source of values this node does not know.
    #[error("the source of environment variable {0} is not supported")]
    UnknownSource(String),
}

/// The objects a pod's environment and volumes are made from, by name, of the pod's namespace.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The ConfigMaps that exist.
    pub config_maps: BTreeMap<String, ConfigMap>,
    /// The Secrets that exist.
    pub secrets: BTreeMap<String, Secret>,
    /// The claims that exist.
    pub claims: BTreeMap<String, PersistentVolumeClaim>,
    /// The volumes of those that are bound, by the claim's name.
    pub volumes: BTreeMap<String, PersistentVolume>,
    /// The Services that the pod gets to know as variables.
    pub services: Vec<Service>,
}

impl Environment {
    /// Adds the variables of another, which win over those of the same name.
    pub fn extend(&mut self, other: &Self) {
        for (name, value) in other.iter() {
            self.set(name, value);
        }
    }

    /// Defines a variable; a former one of the same name is replaced.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let name = name.into();
        self.variables.retain(|(former, _)| *former != name);
        self.variables.push((name, value.into()));
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .iter()
            .find(|(variable, _)| variable == name)
            .map(|(_, value)| value.as_str())
    }

    /// The variables, in the order of their definition.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// As [`Environment::expand`], but none when a variable is not defined.
    pub fn expand_all(&self, text: &str) -> Option<String> {
        let missing = std::cell::Cell::new(false);
        let expanded = expand(text, |name| {
            let value = self.get(name);
            missing.set(missing.get() || value.is_none());
            value
        });
        (!missing.get()).then_some(expanded)
    }

    /// Replaces every `$(NAME)` by the value of the variable.
    pub fn expand(&self, text: &str) -> String {
        expand(text, |name| self.get(name))
    }
}

/// Makes the environment of a container: `envFrom` first, then `env`, each seeing those before it.
pub fn resolve(
    container: &Container,
    facts: &Facts<'_>,
    sources: &Sources,
    mut environment: Environment,
) -> Result<Environment, EnvError> {
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        if let Some(reference) = &from.config_map_ref {
            let Some(map) = sources.config_maps.get(&reference.name) else {
                if reference.optional == Some(true) {
                    continue;
                }
                return Err(EnvError::NotFound {
                    kind: "configmap",
                    name: reference.name.clone(),
                });
            };
            for (key, value) in map.data.iter().flatten() {
                environment.set(format!("{prefix}{key}"), value.as_str());
            }
        }
        if let Some(reference) = &from.secret_ref {
            let Some(secret) = sources.secrets.get(&reference.name) else {
                if reference.optional == Some(true) {
                    continue;
                }
                return Err(EnvError::NotFound {
                    kind: "secret",
                    name: reference.name.clone(),
                });
            };
            for (key, value) in secret.data.iter().flatten() {
                let value = text(&value.0, key, &reference.name)?;
                environment.set(format!("{prefix}{key}"), value);
            }
        }
    }
    for variable in container.env.iter().flatten() {
        if let Some(value) = value_of(variable, container, facts, sources, &environment)? {
            environment.set(variable.name.as_str(), value);
        }
    }
    Ok(environment)
}

/// The names of the ConfigMaps and of the Secrets a pod's environment and volumes are made from.
pub fn references(pod: &Pod) -> (Vec<String>, Vec<String>) {
    let (mut config_maps, mut secrets) = (Vec::new(), Vec::new());
    let Some(spec) = &pod.spec else {
        return (config_maps, secrets);
    };
    for container in spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers)
    {
        for from in container.env_from.iter().flatten() {
            config_maps.extend(
                from.config_map_ref
                    .iter()
                    .map(|reference| reference.name.clone()),
            );
            secrets.extend(
                from.secret_ref
                    .iter()
                    .map(|reference| reference.name.clone()),
            );
        }
        for source in container
            .env
            .iter()
            .flatten()
            .filter_map(|v| v.value_from.as_ref())
        {
            config_maps.extend(source.config_map_key_ref.iter().map(|key| key.name.clone()));
            secrets.extend(source.secret_key_ref.iter().map(|key| key.name.clone()));
        }
    }
    for volume in spec.volumes.iter().flatten() {
        config_maps.extend(volume.config_map.iter().map(|source| source.name.clone()));
        secrets.extend(volume.secret.iter().filter_map(|s| s.secret_name.clone()));
        let projected = volume
            .projected
            .iter()
            .flat_map(|p| p.sources.iter().flatten());
        for source in projected {
            config_maps.extend(source.config_map.iter().map(|source| source.name.clone()));
            secrets.extend(source.secret.iter().map(|source| source.name.clone()));
        }
    }
    for names in [&mut config_maps, &mut secrets] {
        names.sort();
        names.dedup();
    }
    (config_maps, secrets)
}

/// The names of the claims a pod's volumes are made from.
pub fn claims(pod: &Pod) -> Vec<String> {
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| claim_of(pod, volume)).collect()
}

/// The claim a volume is made from: one that is named, or one of the pod's own.
pub(crate) fn claim_of(pod: &Pod, volume: &Volume) -> Option<String> {
    if let Some(source) = &volume.persistent_volume_claim {
        return Some(source.claim_name.clone());
    }
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    volume
        .ephemeral
        .as_ref()
        .map(|_| format!("{name}-{}", volume.name))
}

/// The value of one variable; none when its source is optional and missing.
fn value_of(
    variable: &EnvVar,
    container: &Container,
    facts: &Facts<'_>,
    sources: &Sources,
    before: &Environment,
) -> Result<Option<String>, EnvError> {
    let Some(source) = &variable.value_from else {
        return Ok(Some(
            before.expand(variable.value.as_deref().unwrap_or_default()),
        ));
    };
    let namespace = || facts.pod.metadata.namespace.clone().unwrap_or_default();
    if let Some(field) = &source.field_ref {
        return Ok(Some(downward::field(&field.field_path, facts)?));
    }
    if let Some(selector) = &source.resource_field_ref {
        return Ok(Some(downward::resource(selector, Some(container), facts)?));
    }
    if let Some(reference) = &source.config_map_key_ref {
        let optional = reference.optional == Some(true);
        let Some(map) = sources.config_maps.get(&reference.name) else {
            return missing(optional, || EnvError::NotFound {
                kind: "configmap",
                name: reference.name.clone(),
            });
        };
        let value = map.data.as_ref().and_then(|data| data.get(&reference.key));
        return match value {
            Some(value) => Ok(Some(value.clone())),
            None => missing(optional, || EnvError::NoSuchKey {
                key: reference.key.clone(),
                kind: "ConfigMap",
                namespace: namespace(),
                name: reference.name.clone(),
            }),
        };
    }
    if let Some(reference) = &source.secret_key_ref {
        let optional = reference.optional == Some(true);
        let Some(secret) = sources.secrets.get(&reference.name) else {
            return missing(optional, || EnvError::NotFound {
                kind: "secret",
                name: reference.name.clone(),
            });
        };
        let value = secret
            .data
            .as_ref()
            .and_then(|data| data.get(&reference.key));
        return match value {
            Some(value) => text(&value.0, &reference.key, &reference.name).map(Some),
            None => missing(optional, || EnvError::NoSuchKey {
                key: reference.key.clone(),
                kind: "Secret",
                namespace: namespace(),
                name: reference.name.clone(),
            }),
        };
    }
    Err(EnvError::UnknownSource(variable.name.clone()))
}

fn missing(optional: bool, error: impl FnOnce() -> EnvError) -> Result<Option<String>, EnvError> {
    if optional { Ok(None) } else { Err(error()) }
}

fn text(bytes: &[u8], key: &str, name: &str) -> Result<String, EnvError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| EnvError::NotText {
        key: key.to_owned(),
        name: name.to_owned(),
    })
}

/// Replaces `$(NAME)`; `$$` is one dollar sign, and what is not defined stays.
fn expand<'a>(text: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        rest = &rest[dollar..];
        if let Some(after) = rest.strip_prefix("$$") {
            out.push('$');
            rest = after;
        } else if let Some(end) = rest.starts_with("$(").then(|| rest.find(')')).flatten() {
            match value(&rest[2..end]) {
                Some(value) => out.push_str(value),
                None => out.push_str(&rest[..=end]),
            }
            rest = &rest[end + 1..];
        } else {
            out.push('$');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests;
