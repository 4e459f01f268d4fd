//! The status of a custom resource: conditions and the deployed release.

use serde_json::{Map, Value, json};

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

    /// Sets the release that is deployed, or that none is.
    pub fn set_release(&mut self, release: Option<(&str, &str)>) {
        match release {
            Some((name, manifest)) => {
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
}
