//! Conversions there and back: nothing may be lost on the way.
//!
//! Objects are made at random from the schema of every version, converted into the hub and back, or
//! out of the hub and back, and must come back as they were. So a field that a conversion forgets
//! is found without a test case for it.

use serde_json::{Value, json};
use windlass_manifests::generate::Generator;

use super::versions::AnyVersions;
use crate::{Error, Operator, Result, client::merge::without_nulls};

/// How often a failing object is tried with one thing less.
const SHRINKS: usize = 2000;

impl Operator {
    /// Converts so many objects per version and direction there and back, made from the schemas by
    /// chance that follows from a seed, and fails with the smallest object that does not come back
    /// as it was. For a test of every operator with [`versions`](Operator::versions):
    ///
    /// ```
    /// # mod v1 {
    /// #     #[derive(kube::CustomResource, Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    /// #     #[kube(group = "example.com", version = "v1", kind = "Demo", namespaced)]
    /// #     pub struct DemoSpec { pub size: i32 }
    /// # }
    /// # mod v2 {
    /// #     #[derive(kube::CustomResource, Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    /// #     #[kube(group = "example.com", version = "v2", kind = "Demo", namespaced)]
    /// #     pub struct DemoSpec { pub replicas: i32 }
    /// # }
    /// # impl From<v1::Demo> for v2::Demo {
    /// #     fn from(old: v1::Demo) -> Self {
    /// #         Self { metadata: old.metadata, spec: v2::DemoSpec { replicas: old.spec.size } }
    /// #     }
    /// # }
    /// # impl From<v2::Demo> for v1::Demo {
    /// #     fn from(new: v2::Demo) -> Self {
    /// #         Self { metadata: new.metadata, spec: v1::DemoSpec { size: new.spec.replicas } }
    /// #     }
    /// # }
    /// # use windlass::{Operator, webhook::{Versions}};
    /// # fn operator() -> Operator {
    /// #     Operator::new("demo").versions(Versions::hub::<v2::Demo>().spoke::<v1::Demo>())
    /// # }
    /// assert_eq!(operator().check_conversions(100).unwrap(), 200);
    /// ```
    ///
    /// Answers how many objects came back. One that a conversion refuses (`TryFrom`) does not
    /// count, nor one that the schema allows and the type does not; an error if none is left.
    pub fn check_conversions(&self, objects: u32) -> Result<usize> {
        let mut returned = 0;
        for versions in self.conversions() {
            for (from, over) in versions.ways() {
                let way = Way {
                    versions,
                    from: &from,
                    over: &over,
                };
                returned += way.walk(objects)?;
            }
        }
        if returned == 0 {
            return Err(Error::terminal(format!(
                "{} has no conversion to check",
                self.name()
            )));
        }
        Ok(returned)
    }
}

/// From one version over another and back.
struct Way<'a> {
    versions: &'a AnyVersions,
    from: &'a str,
    over: &'a str,
}

/// What became of an object that went and came back.
struct Returned {
    before: Value,
    between: Value,
    after: Value,
}

impl Way<'_> {
    fn walk(&self, objects: u32) -> Result<usize> {
        let (Some(crd), Some((_, version))) =
            (self.versions.definition(), self.from.split_once('/'))
        else {
            return Ok(0);
        };
        let mut returned = 0;
        for seed in 0..u64::from(objects) {
            let made = Generator::new(seed).object(crd, version, "random");
            let Some(mut object) = made else { continue };
            object["metadata"] = metadata(seed);
            let Some(trip) = self.trip(object.clone()) else {
                continue;
            };
            if trip.is_faithful() {
                returned += 1;
                continue;
            }
            let smallest = shrunk(object, |smaller| {
                let trip = self.trip(smaller.clone());
                trip.is_some_and(|trip| !trip.is_faithful())
            });
            let trip = self.trip(smallest).unwrap_or(trip);
            return Err(Error::terminal(self.complaint(seed, &trip)));
        }
        if returned == 0 {
            return Err(Error::terminal(format!(
                "none of {objects} objects of {} could be converted to {} and back",
                self.from, self.over
            )));
        }
        Ok(returned)
    }

    /// There and back; none if the object is refused on the way.
    fn trip(&self, object: Value) -> Option<Returned> {
        let before = self.versions.plain(object).ok()?;
        let between = self.versions.convert(before.clone(), self.over).ok()?;
        let after = self.versions.convert(between.clone(), self.from).ok()?;
        Some(Returned {
            before: without_nulls(before),
            between: without_nulls(between),
            after: without_nulls(after),
        })
    }

    fn complaint(&self, seed: u64, trip: &Returned) -> String {
        format!(
            "an object of {} does not survive the way to {} and back (seed {seed}):\n  \
             it was   {}\n  became   {}\n  and then {}",
            self.from, self.over, trip.before, trip.between, trip.after
        )
    }
}

impl Returned {
    /// It came back as it was, and was the same object on the way.
    fn is_faithful(&self) -> bool {
        let same = |field: &str| self.between["metadata"][field] == self.before["metadata"][field];
        // A server takes nothing else from a converter.
        let kept = ["name", "namespace", "uid", "resourceVersion"];
        self.before == self.after && kept.into_iter().all(same)
    }
}

/// Metadata with something in every place that a conversion could forget.
fn metadata(seed: u64) -> Value {
    json!({
        "name": format!("random-{seed}"),
        "namespace": "default",
        "uid": format!("00000000-0000-4000-8000-{seed:012}"),
        "resourceVersion": (seed + 1).to_string(),
        "generation": 3,
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "labels": { "example.com/label": "kept" },
        "annotations": { "example.com/annotation": "kept" },
        "finalizers": ["example.com/finalizer"],
    })
}

/// The object with as little as possible left that still fails.
fn shrunk(mut object: Value, fails: impl Fn(&Value) -> bool) -> Value {
    let mut tries = 0;
    loop {
        let mut paths = Vec::new();
        removable(&object, "", &mut paths);
        let smaller = paths.iter().find_map(|path| {
            tries += 1;
            let smaller = without(&object, path)?;
            (tries < SHRINKS && fails(&smaller)).then_some(smaller)
        });
        match smaller {
            Some(smaller) => object = smaller,
            None => return object,
        }
    }
}

/// Paths to everything that could be left out, the largest first.
fn removable(value: &Value, at: &str, paths: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, below) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                let path = format!("{at}/{name}");
                if !["/apiVersion", "/kind", "/metadata"].contains(&path.as_str()) {
                    paths.push(path.clone());
                }
                removable(below, &path, paths);
            }
        }
        Value::Array(items) => {
            for (nth, below) in items.iter().enumerate() {
                let path = format!("{at}/{nth}");
                paths.push(path.clone());
                removable(below, &path, paths);
            }
        }
        _ => {}
    }
}

fn without(object: &Value, path: &str) -> Option<Value> {
    let (parent, name) = path.rsplit_once('/')?;
    let mut smaller = object.clone();
    match smaller.pointer_mut(parent)? {
        Value::Object(fields) => {
            let name = name.replace("~1", "/").replace("~0", "~");
            fields.remove(&name)?;
        }
        Value::Array(items) => {
            items.remove(name.parse().ok()?);
        }
        _ => return None,
    }
    Some(smaller)
}
