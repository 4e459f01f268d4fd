//! What a user does while an operator is explored: objects that are there from the beginning, and
//! steps, after each of which everything settles.
//!
//! ```yaml
//! setup: [crds/]
//! steps:
//! - apply: cluster.yaml
//! - patch: {apiVersion: demo.example.com/v1, kind: Web, name: one, patch: {spec: {replicas: 5}}}
//! - delete: {apiVersion: demo.example.com/v1, kind: Web, name: one}
//! pods: ready
//! ignore: [lastSeen]
//! always:
//!   two pods at least: "pods.size() == 0 || pods.filter(p, !has(p.metadata.deletionTimestamp)).size() >= 2"
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Why a scenario cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("cannot parse {}: {why}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// What becomes of pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pods {
    /// They run and are ready at once.
    #[default]
    Ready,
    /// They run, and never get ready.
    Never,
    /// No container of theirs can be started.
    Fail,
}

/// A scenario, with the files that it names read.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// Objects that are there before the operator starts.
    pub setup: Vec<Value>,
    /// What the user does.
    pub steps: Vec<Step>,
    /// What becomes of pods.
    pub pods: Pods,
    /// Names of fields that are not compared.
    pub ignore: Vec<String>,
    /// What must hold after every change: CEL, by a name for it.
    pub always: BTreeMap<String, String>,
    /// What must hold once a step has settled.
    pub finally: BTreeMap<String, String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Objects are applied.
    Apply(Vec<Value>),
    /// An object is patched, by JSON merge patch.
    Patch(Named, Value),
    /// An object is deleted.
    Delete(Named),
    /// An object becomes as a CEL expression says.
    Wait(Named, String),
    /// Time passes.
    Advance(Duration),
    /// The operator is stopped, or started.
    Operator(Power),
}

/// An object by its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Named {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace; `default` if it has one.
    pub namespace: Option<String>,
}

/// Whether the operator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Power {
    /// It is started.
    Up,
    /// It is killed.
    Down,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.to_lowercase(), self.name)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(objects) => {
                let names = objects.iter().map(|object| {
                    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    format!("{kind} {name}")
                });
                write!(f, "apply {}", names.collect::<Vec<_>>().join(", "))
            }
            Self::Patch(named, patch) => write!(f, "patch {named} with {patch}"),
            Self::Delete(named) => write!(f, "delete {named}"),
            Self::Wait(named, expression) => write!(f, "wait for {named}: {expression}"),
            Self::Advance(time) => write!(f, "advance {time:?}"),
            Self::Operator(Power::Up) => f.write_str("operator up"),
            Self::Operator(Power::Down) => f.write_str("operator down"),
        }
    }
}

/// A scenario as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    setup: Vec<PathBuf>,
    #[serde(default)]
    steps: Vec<WrittenStep>,
    #[serde(default)]
    pods: Pods,
    #[serde(default)]
    ignore: Vec<String>,
    #[serde(default)]
    always: BTreeMap<String, String>,
    #[serde(default)]
    finally: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenStep {
    Apply(Value),
    Patch(WrittenPatch),
    Delete(Named),
    Wait(WrittenWait),
    Advance(String),
    Operator(Power),
}

#[derive(Deserialize)]
struct WrittenPatch {
    #[serde(flatten)]
    named: Named,
    patch: Value,
}

#[derive(Deserialize)]
struct WrittenWait {
    #[serde(flatten)]
    named: Named,
    #[serde(rename = "for")]
    expression: String,
}

impl Scenario {
    /// Reads a scenario and the files that it names, by paths relative to it.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let parse = |why: String| ScenarioError::Parse {
            path: path.to_owned(),
            why,
        };
        let value = documents(path)?.into_iter().next().unwrap_or(json!({}));
        let written: Written =
            serde_json::from_value(value).map_err(|error| parse(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut scenario = Self {
            pods: written.pods,
            ignore: written.ignore,
            always: written.always,
            finally: written.finally,
            ..Self::default()
        };
        for file in written.setup {
            scenario.setup.extend(objects(&folder.join(file))?);
        }
        for step in written.steps {
            scenario.steps.push(match step {
                WrittenStep::Apply(Value::String(file)) => {
                    Step::Apply(objects(&folder.join(file))?)
                }
                WrittenStep::Apply(Value::Array(objects)) => Step::Apply(objects),
                WrittenStep::Apply(object) => Step::Apply(vec![object]),
                WrittenStep::Patch(written) => Step::Patch(written.named, written.patch),
                WrittenStep::Delete(named) => Step::Delete(named),
                WrittenStep::Wait(wait) => Step::Wait(wait.named, wait.expression),
                WrittenStep::Advance(text) => Step::Advance(duration(&text).ok_or_else(|| {
                    parse(format!("advance: {text:?} is no time such as 5s or 2m"))
                })?),
                WrittenStep::Operator(power) => Step::Operator(power),
            });
        }
        Ok(scenario)
    }

    /// What is done with definitions and one sample when there is no scenario: the sample is applied,
    /// deleted, and applied again under the same name.
    pub fn of_sample(crds: &Path, sample: &Path) -> Result<Self, ScenarioError> {
        let sample = objects(sample)?;
        let deletes = sample.iter().rev().filter_map(named).map(Step::Delete);
        let mut steps = vec![Step::Apply(sample.clone())];
        steps.extend(deletes);
        steps.push(Step::Apply(sample.clone()));
        Ok(Self {
            setup: objects(crds)?,
            steps,
            ..Self::default()
        })
    }
}

/// The object by its name.
pub(crate) fn named(object: &Value) -> Option<Named> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(Named {
        api_version: text(&object["apiVersion"])?,
        kind: text(&object["kind"])?,
        name: text(&object["metadata"]["name"])?,
        namespace: text(&object["metadata"]["namespace"]),
    })
}

/// The objects in a file, or in the YAML and JSON files of a folder.
pub fn objects(path: &Path) -> Result<Vec<Value>, ScenarioError> {
    let read = |source| ScenarioError::Read {
        path: path.to_owned(),
        source,
    };
    let mut found = Vec::new();
    if path.is_dir() {
        let mut files: Vec<PathBuf> = std::fs::read_dir(path)
            .map_err(read)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        files.sort();
        let is_object = |file: &PathBuf| {
            let end = file.extension().and_then(|end| end.to_str());
            matches!(end, Some("yaml" | "yml" | "json"))
        };
        for file in files.iter().filter(|file| is_object(file)) {
            found.extend(objects(file)?);
        }
        return Ok(found);
    }
    for document in documents(path)? {
        match document {
            Value::Object(list) if list.contains_key("items") => {
                found.extend(list["items"].as_array().into_iter().flatten().cloned());
            }
            object @ Value::Object(_) if object["kind"].is_string() => found.push(object),
            // Nothing, or a kustomization or the like.
            Value::Null | Value::Object(_) => {}
            other => {
                return Err(ScenarioError::Parse {
                    path: path.to_owned(),
                    why: format!("{other} is no object"),
                });
            }
        }
    }
    Ok(found)
}

fn documents(path: &Path) -> Result<Vec<Value>, ScenarioError> {
    let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Read {
        path: path.to_owned(),
        source,
    })?;
    serde_saphyr::from_multiple(&text).map_err(|error| ScenarioError::Parse {
        path: path.to_owned(),
        why: error.to_string(),
    })
}

/// `90s`, `2m`, `500ms`, `1h`.
pub fn duration(text: &str) -> Option<Duration> {
    let at = text.find(|one: char| !one.is_ascii_digit())?;
    let number: u64 = text[..at].parse().ok()?;
    match &text[at..] {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number * 60)),
        "h" => Some(Duration::from_secs(number * 3600)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_with_every_step_is_read_with_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "one.yaml",
            "kind: A\napiVersion: v1\nmetadata: {name: a}\n---\nkind: B\n",
        );
        write(
            "scenario.yaml",
            "setup: [one.yaml]
steps:
- apply: one.yaml
- patch: {apiVersion: v1, kind: A, name: a, patch: {spec: {n: 2}}}
- wait: {apiVersion: v1, kind: A, name: a, for: self.status.ready}
- operator: down
- advance: 90s
- delete: {apiVersion: v1, kind: A, name: a, namespace: x}
pods: never
ignore: [lastSeen]
always: {one: 'true'}
",
        );
        let scenario = Scenario::read(&folder.path().join("scenario.yaml")).unwrap();
        assert_eq!((scenario.setup.len(), scenario.pods), (2, Pods::Never));
        let steps: Vec<String> = scenario.steps.iter().map(ToString::to_string).collect();
        assert_eq!(
            steps,
            [
                "apply a a, b ",
                "patch a a with {\"spec\":{\"n\":2}}",
                "wait for a a: self.status.ready",
                "operator down",
                "advance 90s",
                "delete a a"
            ]
        );
    }

    #[test]
    fn scenario_with_a_misspelt_field_is_refused_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scenario.yaml");
        std::fs::write(&path, "stops: []\n").unwrap();
        let error = Scenario::read(&path).unwrap_err().to_string();
        assert!(
            error.contains("scenario.yaml") && error.contains("stops"),
            "{error}"
        );
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("90s"), Some(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("5"), None);
    }
}
