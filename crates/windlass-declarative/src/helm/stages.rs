//! What a chart became, in the order in which it is applied.
//!
//! Each hook is a stage of its own, because the next one begins when it is done; so are the objects.
//! Hooks of one event run by weight, then by name.

use serde_json::Value;
use windlass_charts::{Error, Hook, Manifest, Rendered, documents, object_from_yaml};

/// What is done with a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is installed.
    Install,
    /// It is changed.
    Upgrade,
    /// An earlier revision is brought back.
    Rollback,
    /// It is uninstalled.
    Delete,
}

impl Operation {
    /// The event of hooks that run before the objects are touched.
    pub fn before(self) -> &'static str {
        match self {
            Self::Install => "pre-install",
            Self::Upgrade => "pre-upgrade",
            Self::Rollback => "pre-rollback",
            Self::Delete => "pre-delete",
        }
    }

    /// The event of hooks that run after that.
    pub fn after(self) -> &'static str {
        match self {
            Self::Install => "post-install",
            Self::Upgrade => "post-upgrade",
            Self::Rollback => "post-rollback",
            Self::Delete => "post-delete",
        }
    }
}

/// Objects that are applied together.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// What they are.
    pub name: StageName,
    /// The objects, in the order in which they are applied.
    pub objects: Vec<Object>,
}

/// What the objects of a stage are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageName {
    /// Definitions from `crds/`.
    Definitions,
    /// A hook.
    Hook {
        /// The event it runs for.
        event: &'static str,
        /// Its weight.
        weight: i64,
    },
    /// The objects of the release.
    Objects,
}

/// One object and the template that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The template.
    pub source: String,
    /// The object.
    pub object: Value,
}

/// The stages of an operation.
pub fn stages(rendered: &Rendered, operation: Operation) -> Result<Vec<Stage>, Error> {
    let mut stages = Vec::new();
    if operation == Operation::Install {
        let mut definitions = Vec::new();
        for file in &rendered.crds {
            let text = String::from_utf8_lossy(&file.data);
            for text in documents(&text) {
                definitions.extend(objects_of(&file.name, text)?);
            }
        }
        if !definitions.is_empty() {
            stages.push(Stage {
                name: StageName::Definitions,
                objects: definitions,
            });
        }
    }
    stages.extend(hook_stages(&rendered.hooks, operation.before())?);
    let mut objects = Vec::new();
    for manifest in &rendered.manifests {
        objects.extend(objects_of(&manifest.source, &manifest.text)?);
    }
    if !objects.is_empty() {
        stages.push(Stage {
            name: StageName::Objects,
            objects,
        });
    }
    stages.extend(hook_stages(&rendered.hooks, operation.after())?);
    Ok(stages)
}

fn hook_stages(hooks: &[Hook], event: &'static str) -> Result<Vec<Stage>, Error> {
    in_order(hooks, event)
        .into_iter()
        .map(|hook| {
            let Manifest { source, text, .. } = &hook.manifest;
            Ok(Stage {
                name: StageName::Hook {
                    event,
                    weight: hook.weight,
                },
                objects: objects_of(source, text)?,
            })
        })
        .collect()
}

/// The hooks of an event in the order in which they run.
pub fn in_order<'a>(hooks: &'a [Hook], event: &str) -> Vec<&'a Hook> {
    let is_for = |hook: &&Hook| hook.events.iter().any(|one| one == event);
    let mut hooks: Vec<&Hook> = hooks.iter().filter(is_for).collect();
    hooks.sort_by(|a, b| (a.weight, &a.name).cmp(&(b.weight, &b.name)));
    hooks
}

/// The objects of a document: one, or those of a list.
pub fn objects_of(source: &str, text: &str) -> Result<Vec<Object>, Error> {
    let object = object_from_yaml(text.as_bytes())
        .map_err(|why| Error::Manifest(format!("YAML parse error on {source}: {why}")))?;
    let make = |object: Value| Object {
        source: source.to_owned(),
        object,
    };
    Ok(match object {
        Value::Null => Vec::new(),
        Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
            match list.remove("items") {
                Some(Value::Array(items)) => items.into_iter().map(make).collect(),
                _ => Vec::new(),
            }
        }
        object => vec![make(object)],
    })
}

/// The objects of a stored manifest: the template of each stands in a comment before it.
pub fn objects_of_manifest(manifest: &str) -> Result<Vec<Object>, Error> {
    let mut found = Vec::new();
    for text in documents(manifest) {
        let source = text
            .lines()
            .find_map(|line| line.strip_prefix("# Source: "));
        found.extend(objects_of(source.unwrap_or_default(), text)?);
    }
    Ok(found)
}

/// Whether an object stays when it is no longer wanted.
pub fn is_kept(object: &Value) -> bool {
    let policy = object["metadata"]["annotations"]["helm.sh/resource-policy"].as_str();
    policy.is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

#[cfg(test)]
mod tests {
    use windlass_charts::{Chart, File, Options, Values, render};

    use super::*;

    fn hook(name: &str, event: &str, weight: i64) -> String {
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, annotations: {{helm.sh/hook: '{event}', helm.sh/hook-weight: '{weight}'}}}}\n"
        )
    }

    #[test]
    fn stages_are_definitions_hooks_by_weight_and_objects() {
        let file = |name: &str, text: &str| File {
            name: name.to_owned(),
            data: text.into(),
        };
        let hooks = [
            hook("c", "pre-install,post-upgrade", 1),
            hook("b", "pre-install", 1),
            hook("a", "pre-install", 10),
            hook("z", "post-install", -1),
        ]
        .concat();
        let chart = Chart::from_files(vec![
            file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            file("crds/x.yaml", "kind: CustomResourceDefinition\n"),
            file("templates/h.yaml", &hooks),
            file(
                "templates/o.yaml",
                "kind: Service\nmetadata: {name: s}\n---\nkind: List\nitems:\n- {kind: Secret, metadata: {name: t}}\n- {kind: Secret, metadata: {name: u}}\n",
            ),
        ])
        .unwrap();
        let rendered = render(&chart, &Values::new(), &Options::default()).unwrap();
        let shown = |operation| -> Vec<String> {
            let stages = stages(&rendered, operation).unwrap();
            let name = |one: &Object| {
                one.object["metadata"]["name"]
                    .as_str()
                    .unwrap_or("crd")
                    .to_owned()
            };
            stages
                .iter()
                .map(|stage| stage.objects.iter().map(name).collect::<Vec<_>>().join("+"))
                .collect()
        };
        assert_eq!(
            shown(Operation::Install),
            ["crd", "b", "c", "a", "s+t+u", "z"]
        );
        assert_eq!(shown(Operation::Upgrade), ["s+t+u", "c"]);
        let stored = objects_of_manifest(&rendered.manifest()).unwrap();
        assert_eq!(stored.len(), 3);
        assert_eq!(stored[0].source, "web/templates/o.yaml");
    }
}
