//! The status of a custom resource: conditions and the deployed release.

use serde_json::{Map, Value, json};
use windlass_charts::{documents, object_from_yaml, to_yaml};

/// Conditions that are not part of what is said of a release.
const FRAMEWORK: [&str; 3] = ["Available", "Progressing", "Degraded"];

/// A condition's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// The operator has seen the custom resource.
    Initialized,
    /// Its release is deployed.
    Deployed,
    /// The last attempt to install, upgrade or uninstall it failed.
    ReleaseFailed,
    /// The release cannot be reconciled.
    Irreconcilable,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::Initialized => "Initialized",
            Self::Deployed => "Deployed",
            Self::ReleaseFailed => "ReleaseFailed",
            Self::Irreconcilable => "Irreconcilable",
        }
    }
}

/// Why a condition is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reason {
    InstallSuccessful,
    UpgradeSuccessful,
    UninstallSuccessful,
    InstallError,
    UpgradeError,
    ReconcileError,
    UninstallError,
}

/// The status of a custom resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    conditions: Vec<Value>,
    /// What others keep in it, and the release.
    rest: Map<String, Value>,
}

impl Status {
    /// The status of an object.
    pub fn of(parent: &Value) -> Self {
        let mut rest = match &parent["status"] {
            Value::Object(map) => map.clone(),
            _ => Map::new(),
        };
        let mut conditions = match rest.remove("conditions") {
            Some(Value::Array(conditions)) => conditions,
            _ => Vec::new(),
        };
        // These are the framework's.
        conditions.retain(|one| !FRAMEWORK.iter().any(|name| one["type"] == **name));
        Self { conditions, rest }
    }

    /// Sets a condition. Its time changes with its status.
    pub fn set(&mut self, of: Type, is: bool, reason: Option<Reason>, message: &str, now: &str) {
        let status = if is { "True" } else { "False" };
        let old = (self.conditions.iter_mut()).find(|one| one["type"] == of.name());
        let time = match &old {
            Some(old) if old["status"] == status => old["lastTransitionTime"].clone(),
            _ => json!(now),
        };
        let mut condition = json!({
            "type": of.name(),
            "status": status,
            "lastTransitionTime": time,
        });
        if let Some(reason) = reason {
            condition["reason"] = json!(format!("{reason:?}"));
        }
        if !message.is_empty() {
            condition["message"] = json!(message);
        }
        match old {
            Some(old) => *old = condition,
            None => self.conditions.push(condition),
        }
    }

    /// Takes a condition away.
    pub fn remove(&mut self, of: Type) {
        self.conditions.retain(|one| one["type"] != of.name());
    }

    /// Whether a condition is true.
    pub fn is(&self, of: Type) -> bool {
        let is = |one: &Value| one["type"] == of.name() && one["status"] == "True";
        self.conditions.iter().any(is)
    }

    /// Sets the release that is deployed, or that none is. What Secrets hold is not shown.
    pub fn set_release(&mut self, release: Option<(&str, &str)>) {
        match release {
            Some((name, manifest)) => {
                let manifest = without_secrets(manifest);
                let release = json!({"name": name, "manifest": manifest});
                self.rest.insert("deployedRelease".to_owned(), release);
            }
            None => {
                self.rest.remove("deployedRelease");
            }
        }
    }

    /// The status as the object has it.
    pub fn into_value(mut self) -> Value {
        let conditions = Value::Array(self.conditions);
        self.rest.insert("conditions".to_owned(), conditions);
        Value::Object(self.rest)
    }
}

/// A manifest in which no Secret says what it holds: more people may read a status than Secrets.
fn without_secrets(manifest: &str) -> String {
    let mut shown = String::new();
    let mut is_hidden = false;
    for document in documents(manifest) {
        shown.push_str("---\n");
        let mut object = object_from_yaml(document.as_bytes()).unwrap_or_default();
        if hide(&mut object) {
            is_hidden = true;
            let sources = document
                .lines()
                .filter(|line| line.starts_with("# Source: "));
            for line in sources {
                shown.push_str(line);
                shown.push('\n');
            }
            shown.push_str(&to_yaml(&object));
        } else {
            shown.push_str(document.trim());
        }
        shown.push('\n');
    }
    if is_hidden {
        shown
    } else {
        manifest.to_owned()
    }
}

/// Hides what the Secrets in an object hold. Whether there are any.
fn hide(object: &mut Value) -> bool {
    let mut found = false;
    if let Some(Value::Array(items)) = object.get_mut("items") {
        for item in items {
            found |= hide(item);
        }
    }
    if object["apiVersion"] == "v1" && object["kind"] == "Secret" {
        for field in ["data", "stringData"] {
            if let Some(Value::Object(data)) = object.get_mut(field) {
                for value in data.values_mut() {
                    *value = json!("(hidden)");
                    found = true;
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_condition_changes_with_its_status_only() {
        let mut status = Status::of(&json!({}));
        status.set(Type::Initialized, true, None, "", "1");
        status.set(
            Type::Deployed,
            true,
            Some(Reason::InstallSuccessful),
            "hello",
            "1",
        );
        status.set(
            Type::Deployed,
            true,
            Some(Reason::UpgradeSuccessful),
            "",
            "2",
        );
        status.set(
            Type::ReleaseFailed,
            true,
            Some(Reason::UpgradeError),
            "no",
            "2",
        );
        assert!(status.is(Type::ReleaseFailed));
        status.remove(Type::ReleaseFailed);
        status.set_release(Some(("web", "---\n")));
        assert_eq!(
            status.clone().into_value(),
            json!({
                "conditions": [
                    {"type": "Initialized", "status": "True", "lastTransitionTime": "1"},
                    {"type": "Deployed", "status": "True", "reason": "UpgradeSuccessful", "lastTransitionTime": "1"},
                ],
                "deployedRelease": {"name": "web", "manifest": "---\n"},
            })
        );
        status.set(
            Type::Deployed,
            false,
            Some(Reason::UninstallSuccessful),
            "",
            "3",
        );
        status.set_release(None);
        let value = status.into_value();
        assert_eq!(value["conditions"][1]["lastTransitionTime"], "3");
        assert!(value.get("deployedRelease").is_none());
    }

    #[test]
    fn data_of_secrets_is_hidden_and_all_else_is_as_it_is() {
        let map = "---\n# Source: web/templates/map.yaml\nkind: ConfigMap\napiVersion: v1\ndata: {a: b}\n";
        assert_eq!(without_secrets(map), map);
        let secret =
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {key: hunter2}\n";
        let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  data: {key: aHVudGVyMg==}\n";
        let shown = without_secrets(&format!("{map}---\n# Source: s\n{secret}---\n{list}"));
        assert!(shown.starts_with(map), "{shown}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("aHVudGVyMg"),
            "{shown}"
        );
        assert!(
            shown.contains("---\n# Source: s\napiVersion: v1\nkind: Secret\n"),
            "{shown}"
        );
        assert!(shown.contains("key: (hidden)"), "{shown}");
    }
}
