//! Who owns which fields: `metadata.managedFields`, read, changed and written back.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use super::path::PathElement;

/// How many managers of plain updates an object remembers; older ones are merged into one.
const MAX_UPDATE_MANAGERS: usize = 10;
/// The manager that stands for the merged ones.
const ANCIENT: &str = "ancient-changes";

/// Who makes a write, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    pub(crate) api_version: &'a str,
    pub(crate) subresource: &'a str,
    /// In the form of `metav1.Time`; a write through `scale` leaves none.
    pub(crate) now: Option<&'a str>,
}

/// One entry's identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    name: String,
    operation: &'static str,
    /// Empty for one that applies: it is the same at every version.
    api_version: String,
    subresource: String,
}

impl Manager {
    fn new(writer: &Writer<'_>, operation: &'static str) -> Self {
        Self::named(
            writer.manager,
            operation,
            writer.api_version,
            writer.subresource,
        )
    }

    fn named(name: &str, operation: &'static str, api_version: &str, subresource: &str) -> Self {
        let api_version = if operation == "Apply" {
            ""
        } else {
            api_version
        };
        Self {
            name: name.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    pub(crate) fn applying(writer: &Writer<'_>) -> Self {
        Self::new(writer, "Apply")
    }

    pub(crate) fn updating(writer: &Writer<'_>) -> Self {
        Self::new(writer, "Update")
    }

    /// As conflict messages name it.
    pub(crate) fn shown(&self) -> String {
        let mut shown = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            shown = format!("{shown} with subresource {:?}", self.subresource);
        }
        if self.operation == "Update" {
            shown = format!("{shown} using {}", self.api_version);
        }
        shown
    }
}

#[derive(Clone, Debug)]
struct Owned {
    fields: FieldSet,
    time: Option<String>,
    api_version: String,
}

/// All entries of one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Managers(BTreeMap<Manager, Owned>);

impl Managers {
    /// Reads `metadata.managedFields`. Entries that cannot be read are dropped: they own nothing.
    pub(crate) fn read(managed_fields: &Value) -> Self {
        let mut managers = BTreeMap::new();
        for entry in managed_fields.as_array().into_iter().flatten() {
            let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
            let operation = match entry["operation"].as_str() {
                Some("Apply") => "Apply",
                Some("Update") => "Update",
                _ => continue,
            };
            let Some(fields) = FieldSet::from_fields_v1(&entry["fieldsV1"]) else {
                continue;
            };
            let api_version = text("apiVersion");
            let manager = Manager::named(
                &text("manager"),
                operation,
                &api_version,
                &text("subresource"),
            );
            managers.insert(
                manager,
                Owned {
                    fields,
                    time: entry["time"].as_str().map(str::to_owned),
                    api_version,
                },
            );
        }
        Self(managers)
    }

    /// The `metadata.managedFields` to store: applies first, then by time and name.
    pub(crate) fn write(&self) -> Value {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by(|(a, a_owned), (b, b_owned)| {
            (
                a.operation,
                &a_owned.time,
                &a.name,
                &a_owned.api_version,
                &a.subresource,
            )
                .cmp(&(
                    b.operation,
                    &b_owned.time,
                    &b.name,
                    &b_owned.api_version,
                    &b.subresource,
                ))
        });
        let entries = entries.into_iter().map(|(manager, owned)| {
            // Put together by hand: `json!` would copy the fields once more.
            let mut entry = Map::new();
            let mut set = |name: &str, value: Value| entry.insert(name.into(), value);
            set("apiVersion", owned.api_version.as_str().into());
            set("fieldsType", "FieldsV1".into());
            set("fieldsV1", owned.fields.to_fields_v1());
            set("manager", manager.name.as_str().into());
            set("operation", manager.operation.into());
            if !manager.subresource.is_empty() {
                set("subresource", manager.subresource.as_str().into());
            }
            if let Some(time) = &owned.time {
                set("time", time.as_str().into());
            }
            Value::Object(entry)
        });
        Value::Array(entries.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes `managedFields` has at least.
    pub(crate) fn least_bytes(&self) -> usize {
        self.sets().map(FieldSet::least_bytes).sum()
    }

    pub(crate) fn sets(&self) -> impl Iterator<Item = &FieldSet> {
        self.0.values().map(|owned| &owned.fields)
    }

    /// Sets what `manager` owns; gives back what it owned before.
    pub(crate) fn replace(
        &mut self,
        manager: &Manager,
        fields: FieldSet,
        api_version: &str,
    ) -> Option<FieldSet> {
        let time = self.0.get(manager).and_then(|owned| owned.time.clone());
        let owned = Owned {
            fields,
            time,
            api_version: api_version.to_owned(),
        };
        self.0
            .insert(manager.clone(), owned)
            .map(|owned| owned.fields)
    }

    pub(crate) fn set_time(&mut self, manager: &Manager, now: &str) {
        if let Some(owned) = self.0.get_mut(manager) {
            owned.time = Some(now.to_owned());
        }
    }

    /// Adds to what `manager` owns.
    pub(crate) fn give(&mut self, manager: Manager, fields: FieldSet, now: Option<&str>) {
        let api_version = manager.api_version.clone();
        let owned = self.0.entry(manager).or_insert_with(|| Owned {
            fields: FieldSet::default(),
            time: None,
            api_version,
        });
        owned.fields = std::mem::take(&mut owned.fields).union(fields);
        owned.time = now.map(str::to_owned);
    }

    /// What others own of `written`, in the order in which Kubernetes tells it: of one name, those
    /// who wrote through a subresource come first.
    pub(crate) fn conflicts(&self, me: &Manager, written: &FieldSet) -> Vec<(Manager, FieldSet)> {
        let mut conflicts: Vec<(Manager, FieldSet)> = self
            .0
            .iter()
            .filter(|(manager, _)| *manager != me)
            .map(|(manager, owned)| (manager.clone(), owned.fields.intersection(written)))
            .filter(|(_, shared)| !shared.is_empty())
            .collect();
        conflicts.sort_by(|(a, _), (b, _)| {
            let key = |manager: &Manager| {
                let Manager {
                    name,
                    operation,
                    api_version,
                    subresource,
                } = manager.clone();
                (
                    name,
                    operation,
                    api_version,
                    subresource.is_empty(),
                    subresource,
                )
            };
            key(a).cmp(&key(b))
        });
        conflicts
    }

    pub(crate) fn take_from_others(
        &mut self,
        me: &Manager,
        written: &FieldSet,
        removed: &FieldSet,
    ) {
        self.take(written, removed, |manager| manager != me);
    }

    pub(crate) fn take_from_all(&mut self, written: &FieldSet, removed: &FieldSet) {
        self.take(written, removed, |_| true);
    }

    fn take(&mut self, written: &FieldSet, removed: &FieldSet, of: impl Fn(&Manager) -> bool) {
        for (manager, owned) in &mut self.0 {
            let mut fields = std::mem::take(&mut owned.fields);
            if of(manager) {
                fields = fields.minus(written);
            }
            owned.fields = fields.minus(removed);
        }
        self.0.retain(|_, owned| !owned.fields.is_empty());
    }

    /// Merges the oldest plain updaters when there are too many.
    pub(crate) fn cap_updates(&mut self) {
        let mut updaters: Vec<_> = self
            .0
            .iter()
            .filter(|(manager, _)| manager.operation == "Update")
            .map(|(m, o)| (o.time.clone(), m.clone()))
            .collect();
        if updaters.len() <= MAX_UPDATE_MANAGERS {
            return;
        }
        updaters.sort();
        let surplus = updaters.len() - MAX_UPDATE_MANAGERS + 1;
        for (_, manager) in updaters.into_iter().take(surplus) {
            if let Some(owned) = self.0.remove(&manager) {
                let version = &owned.api_version;
                let bucket = Manager::named(ANCIENT, "Update", version, &manager.subresource);
                let merged = self.0.entry(bucket).or_insert_with(|| Owned {
                    fields: FieldSet::default(),
                    time: None,
                    api_version: version.clone(),
                });
                merged.fields = std::mem::take(&mut merged.fields).union(owned.fields);
                merged.time = merged.time.take().max(owned.time);
            }
        }
    }
}

impl Managers {
    /// Ownership of a scale: whoever owns the `replicas` of the object owns those of its scale, as
    /// one who wrote that.
    pub(crate) fn of_scale(&self, replicas: &[PathElement], scale_version: &str) -> Self {
        let mut fields = FieldSet::default();
        fields.insert(&in_scale());
        let owners = self
            .0
            .iter()
            .filter(|(_, owned)| owned.fields.has(replicas));
        let of_scale = |(manager, owned): (&Manager, &Owned)| {
            let owned = Owned {
                fields: fields.clone(),
                time: owned.time.clone(),
                api_version: scale_version.to_owned(),
            };
            let Manager {
                name, subresource, ..
            } = manager;
            let manager = Manager::named(name, manager.operation, scale_version, subresource);
            (manager, owned)
        };
        Self(owners.map(of_scale).collect())
    }

    /// Takes over who owns the replicas of the scale: others lose those of the object. Who did not
    /// apply is another one than it was, as the scale is of another version.
    pub(crate) fn take_scale(
        mut self,
        scaled: &Self,
        replicas: &[PathElement],
        api_version: &str,
    ) -> Self {
        let mut kept = Vec::new();
        for (manager, owned) in &mut self.0 {
            if !owned.fields.has(replicas) {
                continue;
            }
            if scaled.0.contains_key(manager) {
                kept.push(manager.clone());
            } else {
                owned.fields.remove(replicas);
            }
        }
        self.0.retain(|_, owned| !owned.fields.is_empty());
        let scaled = scaled.0.iter();
        for (manager, _) in scaled
            .filter(|(manager, owned)| owned.fields.has(&in_scale()) && !kept.contains(manager))
        {
            let mut fields = FieldSet::default();
            fields.insert(replicas);
            // A write through the scale leaves no time.
            let owned = Owned {
                fields,
                time: None,
                api_version: api_version.to_owned(),
            };
            self.0.insert(manager.clone(), owned);
        }
        self
    }
}

/// Where a scale has its replicas.
fn in_scale() -> Vec<PathElement> {
    super::fields_path(&["spec", "replicas"])
}

/// Whether two objects are the same but for the times in their managedFields. Entries stand in the
/// order of their times: a manager that another time would move past another is a change.
pub(crate) fn equal_but_for_times(a: &Value, b: &Value) -> bool {
    equal_with(a, b, "metadata", |a, b| {
        equal_with(a, b, "managedFields", |a, b| match (a, b) {
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_without(a, b, "time"))
            }
            _ => a == b,
        })
    })
}

/// Whether two values are equal, where those of one member are compared in another way.
fn equal_with(a: &Value, b: &Value, member: &str, other: impl Fn(&Value, &Value) -> bool) -> bool {
    let (Value::Object(a), Value::Object(b)) = (a, b) else {
        return a == b;
    };
    a.len() == b.len()
        && a.iter().all(|(key, a)| {
            b.get(key)
                .is_some_and(|b| if key == member { other(a, b) } else { a == b })
        })
}

/// Whether two values are equal but for one member.
fn equal_without(a: &Value, b: &Value, member: &str) -> bool {
    let (Value::Object(a), Value::Object(b)) = (a, b) else {
        return a == b;
    };
    let rest = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(member));
    rest(a) == rest(b)
        && a.iter()
            .filter(|(key, _)| *key != member)
            .all(|(key, a)| b.get(key) == Some(a))
}
