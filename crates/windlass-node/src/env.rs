//! The environment of a container and the expansion of `$(VAR)`.
//!
//! `$(NAME)` in `command`, `args` and `env[].value` stands for a variable of the container that
//! was defined before it; one that is not defined stays as it is written, and `$$(NAME)` is an
//! escape for the text `$(NAME)`. Variables come from literals, `fieldRef`, ConfigMaps and
//! Secrets; those two are handed in by the caller, who is the one that may read them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVar, Pod, Secret};

/// Variables in the order in which they were defined; a later one of the same name wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// A `fieldRef` this node cannot resolve.
    #[error("fieldRef {0} is not supported")]
    UnknownField(String),
    /// A source of values this node does not know.
    #[error("the source of environment variable {0} is not supported")]
    UnknownSource(String),
}

/// The objects a pod's environment is made from, by name, of the pod's namespace.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The ConfigMaps that exist.
    pub config_maps: BTreeMap<String, ConfigMap>,
    /// The Secrets that exist.
    pub secrets: BTreeMap<String, Secret>,
}

/// What a pod knows about itself once it is on a node: the values of `fieldRef`.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The pod as the API server has it.
    pub pod: &'a Pod,
    /// Its address, which its status may not show yet.
    pub pod_ip: &'a str,
    /// The address of the node.
    pub host_ip: &'a str,
}

impl Environment {
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
        if let Some(value) = value_of(variable, facts, sources, &environment)? {
            environment.set(variable.name.as_str(), value);
        }
    }
    Ok(environment)
}

/// The names of the ConfigMaps and of the Secrets a pod's environment is made from.
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
    for names in [&mut config_maps, &mut secrets] {
        names.sort();
        names.dedup();
    }
    (config_maps, secrets)
}

/// The value of one variable; none when its source is optional and missing.
fn value_of(
    variable: &EnvVar,
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
        return field_value(&field.field_path, facts).map(Some);
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

/// The value of a downward API field, as it can be used for a variable.
fn field_value(path: &str, facts: &Facts<'_>) -> Result<String, EnvError> {
    let metadata = &facts.pod.metadata;
    let spec = facts.pod.spec.as_ref();
    let value = match path {
        "metadata.name" => metadata.name.clone(),
        "metadata.namespace" => metadata.namespace.clone(),
        "metadata.uid" => metadata.uid.clone(),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
        "status.podIP" | "status.podIPs" => Some(facts.pod_ip.to_owned()),
        "status.hostIP" | "status.hostIPs" => Some(facts.host_ip.to_owned()),
        other => {
            let labels = subscript(other, "metadata.labels").map(|key| (&metadata.labels, key));
            let annotations =
                subscript(other, "metadata.annotations").map(|key| (&metadata.annotations, key));
            let Some((map, key)) = labels.or(annotations) else {
                return Err(EnvError::UnknownField(path.to_owned()));
            };
            map.as_ref().and_then(|map| map.get(key)).cloned()
        }
    };
    Ok(value.unwrap_or_default())
}

/// The key of `field['key']`.
fn subscript<'a>(path: &'a str, field: &str) -> Option<&'a str> {
    path.strip_prefix(field)?
        .strip_prefix("['")?
        .strip_suffix("']")
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
