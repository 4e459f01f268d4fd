//! One random sequence: fifty requests about a few objects, so that they meet.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::case::{Step, Watch};
use crate::dice::Dice;
use crate::kinds::Kind;
use crate::pointer::{merge_at, set, strategic_at};
use crate::step::{dice_value, plain, request};

/// The object that ends every background watch: made last.
pub(crate) const SENTINEL: &str = "zz-sentinel";

const SHORT_NAMES: &[&str] = &["a", "b"];
const MANAGERS: &[&str] = &["m1", "m2"];

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str =
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/// The names of variables and what they hold before any answer fills them.
pub(crate) fn unfilled(start: &str) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::from([
        ("start".to_owned(), start.to_owned()),
        ("cont".to_owned(), "garbage".to_owned()),
    ]);
    for kind in 0..4 {
        for name in SHORT_NAMES {
            variables.insert(format!("rv{kind}{name}"), start.to_owned());
            variables.insert(
                format!("uid{kind}{name}"),
                "00000000-0000-4000-8000-000000000000".to_owned(),
            );
        }
    }
    variables
}

/// Makes a sequence about `kinds`.
pub(crate) fn sequence(dice: &mut Dice, kinds: &[&Kind], length: usize) -> Vec<Step> {
    let mut maker = Maker {
        dice,
        kinds,
        steps: Vec::new(),
        watched: vec![false; kinds.len()],
        generated: vec![false; kinds.len()],
    };
    // Something to work on: most operations on nothing are a 404.
    for kind in 0..kinds.len() {
        if maker.dice.percent(80) {
            maker.create_plain(kind, "a");
        }
    }
    while maker.steps.len() < length {
        maker.operation();
    }
    maker.end();
    maker.steps
}

struct Maker<'a> {
    dice: &'a mut Dice,
    kinds: &'a [&'a Kind],
    steps: Vec<Step>,
    watched: Vec<bool>,
    /// Of each kind one name at most is generated: which of two comes first in a list is chance.
    generated: Vec<bool>,
}

impl Maker<'_> {
    fn operation(&mut self) {
        let kind = self.dice.below(self.kinds.len());
        let short = *self.dice.one(SHORT_NAMES);
        match self
            .dice
            .weighted(&[22, 6, 8, 12, 7, 7, 7, 16, 7, 3, 10, 2, 3, 3, 1])
        {
            0 => self.create(kind, short),
            1 => self.get(kind, short),
            2 => self.list(kind),
            3 => self.update(kind, short),
            4 => self.merge_patch(kind, short),
            5 => self.json_patch(kind, short),
            6 => self.strategic_patch(kind, short),
            7 => self.apply(kind, short),
            8 => self.status(kind, short),
            9 => self.scale(kind, short),
            10 => self.delete(kind, short),
            11 => self.delete_collection(kind),
            12 => self.watch(kind),
            13 => self.bad(kind, short),
            _ => self.past_watch(kind),
        }
    }

    /// What ends the watches that are open.
    fn end(&mut self) {
        for index in 0..self.kinds.len() {
            if self.watched[index] {
                let kind = self.kinds[index];
                let mut body = plain(kind, SENTINEL);
                body["metadata"]["labels"] = json!({"app": "a", "seq": "{seq}"});
                let mut step = request(
                    format!("{} end of watches", kind.plural),
                    "POST",
                    kind.collection(),
                );
                step.body = Some(body);
                self.steps.push(step);
            }
        }
    }

    fn push(&mut self, kind: usize, what: &str, mut step: Step, short: Option<&str>) {
        let number = self.steps.len() + 1;
        step.name = match short {
            Some(short) => format!("{number:02} {what} {} {short}", self.kinds[kind].plural),
            None => format!("{number:02} {what} {}", self.kinds[kind].plural),
        };
        if let Some(short) = short {
            step.capture.insert(
                format!("rv{kind}{short}"),
                "/metadata/resourceVersion".into(),
            );
            step.capture
                .insert(format!("uid{kind}{short}"), "/metadata/uid".into());
        }
        self.steps.push(step);
    }

    fn item(&self, kind: usize, short: &str) -> String {
        let kind = self.kinds[kind];
        format!("{}/{}", kind.collection(), kind.name(short))
    }

    /// Query parameters of a write.
    fn write_query(&mut self, step: &mut Step) {
        if self.dice.percent(8) {
            step.query.insert("dryRun".into(), "All".into());
        }
        if self.dice.percent(30) {
            step.query
                .insert("fieldManager".into(), (*self.dice.one(MANAGERS)).into());
        }
        if self.dice.percent(20) {
            step.query.insert(
                "fieldValidation".into(),
                (*self.dice.one(&["Strict", "Warn", "Ignore"])).into(),
            );
        }
    }

    /// An object with a few things changed.
    fn object(&mut self, kind: usize, short: &str) -> Value {
        let mut object = plain(self.kinds[kind], short);
        for _ in 0..self.dice.weighted(&[35, 40, 25]) {
            if let Some((place, value)) = self.tweak(kind) {
                set(&mut object, &place, value);
            }
        }
        if self.dice.percent(35) {
            let (place, value) = self.metadata(kind);
            set(&mut object, &place, value);
        }
        if self.dice.percent(3) {
            set(&mut object, "/unknownField", json!({"a": 1}));
        }
        object
    }

    fn tweak(&mut self, kind: usize) -> Option<(String, Value)> {
        let tweaks: Vec<_> = self.kinds[kind].tweaks.iter().collect();
        if tweaks.is_empty() {
            return None;
        }
        let (place, values) = *self.dice.one(&tweaks);
        Some((place.clone(), self.dice.one(values).clone()))
    }

    /// Something in the metadata.
    fn metadata(&mut self, kind: usize) -> (String, Value) {
        let other = self.dice.below(self.kinds.len());
        let name = *self.dice.one(SHORT_NAMES);
        let owner = |controller: bool| {
            json!([{"apiVersion": self.kinds[other].api, "kind": self.kinds[other].kind, "name": self.kinds[other].name(name),
                    "uid": format!("{{uid{other}{name}}}"), "controller": controller}])
        };
        let _ = kind;
        match self.dice.below(13) {
            0 | 1 => (
                "/metadata/labels".into(),
                json!({"app": "b", "seq": "{seq}"}),
            ),
            2 => ("/metadata/labels/tier".into(), json!("x")),
            3 => ("/metadata/labels/bad".into(), json!("not a label!")),
            4 => (
                "/metadata/annotations".into(),
                json!({"example.com/note": "words"}),
            ),
            5 | 6 => ("/metadata/finalizers".into(), json!(["example.com/f"])),
            7 => ("/metadata/finalizers".into(), json!(["notqualified"])),
            8 => ("/metadata/ownerReferences".into(), owner(true)),
            9 => ("/metadata/ownerReferences".into(), owner(false)),
            10 => ("/metadata/generation".into(), json!(7)),
            11 => ("/metadata/namespace".into(), json!("elsewhere")),
            _ => ("/metadata/finalizers".into(), Value::Null),
        }
    }

    fn create_plain(&mut self, kind: usize, short: &str) {
        let mut step = request(String::new(), "POST", self.kinds[kind].collection());
        step.body = Some(plain(self.kinds[kind], short));
        self.push(kind, "create", step, Some(short));
    }

    fn create(&mut self, kind: usize, short: &str) {
        let mut step = request(String::new(), "POST", self.kinds[kind].collection());
        let mut body = self.object(kind, short);
        let mut named = Some(short);
        match self.dice.below(40) {
            0 => body["metadata"]["name"] = self.kinds[kind].name("Bad_Name").into(),
            1 if !std::mem::replace(&mut self.generated[kind], true) => {
                body["metadata"]["generateName"] =
                    format!("{}-", self.kinds[kind].name("gen")).into();
                body["metadata"]["name"] = Value::Null;
                named = None;
            }
            2 => body["metadata"]["resourceVersion"] = "{start}".into(),
            3 => {
                body["metadata"] = Value::Null;
                // A LimitRange without a name is called by its uid: where it stands in a list
                // would be chance.
                if self.kinds[kind].plural == "limitranges" {
                    step.query.insert("dryRun".into(), "All".into());
                }
            }
            _ => {}
        }
        step.body = Some(body);
        self.write_query(&mut step);
        self.push(kind, "create", step, named);
    }

    fn get(&mut self, kind: usize, short: &str) {
        let mut step = request(String::new(), "GET", self.item(kind, short));
        match self.dice.below(6) {
            0 => drop(step.headers.insert("accept".into(), TABLE.into())),
            1 => drop(step.headers.insert("accept".into(), METADATA.into())),
            _ => {}
        }
        self.push(kind, "get", step, Some(short));
    }

    fn selectors(&mut self, kind: usize, step: &mut Step) {
        if self.kinds[kind].cluster {
            let selector =
                *self
                    .dice
                    .one(&["seq={seq}", "seq={seq},app=a", "seq in ({seq}),app!=a"]);
            step.query.insert("labelSelector".into(), selector.into());
        } else if self.dice.percent(40) {
            let selector = *self.dice.one(&[
                "app=a",
                "app in (a,b)",
                "!tier",
                "app!=a",
                "app notin (b),tier",
                "bad==,=",
            ]);
            step.query.insert("labelSelector".into(), selector.into());
        }
        if self.dice.percent(20) {
            let selector = *self.dice.one(&[
                "metadata.name=a",
                "metadata.name!=a",
                "metadata.namespace={ns}",
                "status.phase=Pending",
                "spec.nodeName=",
                "spec.unknown=x",
                "type=Opaque",
                "nonsense",
            ]);
            step.query.insert("fieldSelector".into(), selector.into());
        }
    }

    fn list(&mut self, kind: usize) {
        let mut step = request(String::new(), "GET", self.kinds[kind].collection());
        self.selectors(kind, &mut step);
        match self.dice.below(10) {
            // How many there are of other sequences' is another matter on each server.
            0..=2 if self.kinds[kind].cluster => {}
            0..=2 => {
                step.query.insert("limit".into(), 1.into());
                step.capture
                    .insert("cont".into(), "/metadata/continue".into());
            }
            3 => {
                // Only the collection that gave the token may use it, else the answer names its key.
                step.query.insert("limit".into(), 1.into());
                step.query.insert("continue".into(), "garbage".into());
            }
            4 => {
                let name = *self.dice.one(SHORT_NAMES);
                step.query.insert(
                    "resourceVersion".into(),
                    format!("{{rv{kind}{name}}}").into(),
                );
                step.query
                    .insert("resourceVersionMatch".into(), "Exact".into());
            }
            5 => drop(step.query.insert(
                "resourceVersionMatch".into(),
                (*self.dice.one(&["Exact", "NotOlderThan", "Weird"])).into(),
            )),
            _ => {}
        }
        match self.dice.below(8) {
            0 => drop(step.headers.insert("accept".into(), TABLE.into())),
            1 => drop(step.headers.insert("accept".into(), METADATA_LIST.into())),
            _ => {}
        }
        self.push(kind, "list", step, None);
    }

    fn version(&mut self, kind: usize, short: &str, object: &mut Value) {
        match self.dice.below(10) {
            0..=4 => object["metadata"]["resourceVersion"] = format!("{{rv{kind}{short}}}").into(),
            5 => object["metadata"]["resourceVersion"] = "{start}".into(),
            6 => object["metadata"]["uid"] = format!("{{uid{kind}{short}}}").into(),
            _ => {}
        }
    }

    fn update(&mut self, kind: usize, short: &str) {
        let mut step = request(String::new(), "PUT", self.item(kind, short));
        let mut body = self.object(kind, short);
        self.version(kind, short, &mut body);
        step.body = Some(body);
        self.write_query(&mut step);
        self.push(kind, "update", step, Some(short));
    }

    /// A change as a tree, for the merging patches.
    fn change(&mut self, kind: usize, strategic: bool) -> Value {
        let mut patch = json!({});
        for _ in 0..=self.dice.below(2) {
            let (place, value) = if self.dice.percent(30) {
                self.metadata(kind)
            } else {
                match self.tweak(kind) {
                    Some(tweak) => tweak,
                    None => self.metadata(kind),
                }
            };
            if strategic {
                strategic_at(&mut patch, &self.kinds[kind].base, &place, value);
            } else {
                merge_at(&mut patch, &place, value);
            }
        }
        patch
    }

    fn patch(&mut self, kind: usize, short: &str, what: &str, content_type: &str, body: Value) {
        let mut step = request(String::new(), "PATCH", self.item(kind, short));
        step.content_type = Some(content_type.into());
        step.body = Some(body);
        self.write_query(&mut step);
        self.push(kind, what, step, Some(short));
    }

    fn merge_patch(&mut self, kind: usize, short: &str) {
        let mut body = self.change(kind, false);
        if self.dice.percent(10) {
            merge_at(
                &mut body,
                "/metadata/resourceVersion",
                format!("{{rv{kind}{short}}}").into(),
            );
        }
        self.patch(kind, short, "merge", MERGE, body);
    }

    fn strategic_patch(&mut self, kind: usize, short: &str) {
        let mut body = self.change(kind, true);
        if self.dice.percent(8) {
            body["metadata"] = json!({"labels": {"$patch": "replace", "seq": "{seq}", "app": "a"}});
        }
        if self.dice.percent(4) {
            body["metadata"] = json!({"$deleteFromPrimitiveList/finalizers": ["example.com/f"]});
        }
        self.patch(kind, short, "strategic", STRATEGIC, body);
    }

    fn json_patch(&mut self, kind: usize, short: &str) {
        let mut operations = Vec::new();
        for _ in 0..=self.dice.below(2) {
            let (place, value) = if self.dice.percent(30) {
                self.metadata(kind)
            } else {
                match self.tweak(kind) {
                    Some(tweak) => tweak,
                    None => self.metadata(kind),
                }
            };
            operations.push(match self.dice.below(12) {
                0..=4 => json!({"op": "add", "path": place, "value": value}),
                5 | 6 => json!({"op": "replace", "path": place, "value": value}),
                7 | 8 => json!({"op": "remove", "path": place}),
                9 => json!({"op": "test", "path": "/metadata/name", "value": self.kinds[kind].name(short)}),
                10 => json!({"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"}),
                _ => json!({"op": *self.dice.one(&["weird", "move"]), "path": place, "from": "/metadata/labels/app"}),
            });
        }
        self.patch(kind, short, "json-patch", JSON_PATCH, operations.into());
    }

    fn apply(&mut self, kind: usize, short: &str) {
        let mut body = self.object(kind, short);
        if self.dice.percent(35)
            && let Value::Object(map) = &mut body
        {
            // Only a part: what this manager cares for.
            map.retain(|key, _| matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
            if let Some((place, value)) = self.tweak(kind) {
                strategic_at(&mut body, &self.kinds[kind].base, &place, value);
            }
        }
        // kube-apiserver keeps a null in the metadata of a custom resource, where nobody sees it
        // until the next write stores the object anew: see `docs/fidelity.md`.
        if self.kinds[kind].kind == "Thing"
            && let Some(Value::Object(metadata)) = body.get_mut("metadata")
        {
            metadata.retain(|_, value| !value.is_null());
        }
        let mut step = request(String::new(), "PATCH", self.item(kind, short));
        step.content_type = Some(APPLY.into());
        step.body = Some(body);
        step.query
            .insert("fieldManager".into(), (*self.dice.one(MANAGERS)).into());
        if self.dice.percent(35) {
            step.query.insert("force".into(), "true".into());
        }
        if self.dice.percent(6) {
            step.query.insert("dryRun".into(), "All".into());
        }
        self.push(kind, "apply", step, Some(short));
    }

    fn status(&mut self, kind: usize, short: &str) {
        let tweaks: Vec<_> = self.kinds[kind].status_tweaks.iter().collect();
        if tweaks.is_empty() {
            return self.get(kind, short);
        }
        let (place, values) = *self.dice.one(&tweaks);
        let (place, value) = (place.clone(), self.dice.one(values).clone());
        let path = format!("{}/status", self.item(kind, short));
        let (method, content_type, body) = match self.dice.below(4) {
            0 => {
                let mut body = plain(self.kinds[kind], short);
                set(&mut body, &place, value);
                self.version(kind, short, &mut body);
                ("PUT", None, body)
            }
            1 => {
                let mut body = json!({"apiVersion": self.kinds[kind].api, "kind": self.kinds[kind].kind, "metadata": {"name": self.kinds[kind].name(short)}});
                set(&mut body, &place, value);
                ("PATCH", Some(APPLY), body)
            }
            2 => (
                "PATCH",
                Some(JSON_PATCH),
                json!([{"op": "add", "path": place, "value": value}]),
            ),
            _ => {
                let mut body = json!({});
                merge_at(&mut body, &place, value);
                ("PATCH", Some(MERGE), body)
            }
        };
        let mut step = request(String::new(), method, path);
        step.content_type = content_type.map(Into::into);
        step.body = Some(body);
        if content_type == Some(APPLY) {
            step.query
                .insert("fieldManager".into(), (*self.dice.one(MANAGERS)).into());
        }
        self.push(kind, "status", step, Some(short));
    }

    fn scale(&mut self, kind: usize, short: &str) {
        if !self.kinds[kind].scale {
            return self.get(kind, short);
        }
        let path = format!("{}/scale", self.item(kind, short));
        let replicas = dice_value(self.dice, &[json!(0), json!(2), json!(-1)]);
        let mut step = match self.dice.below(3) {
            0 => request(String::new(), "GET", path),
            1 => {
                let mut step = request(String::new(), "PATCH", path);
                step.content_type = Some(MERGE.into());
                step.body = Some(json!({"spec": {"replicas": replicas}}));
                step
            }
            _ => {
                let mut step = request(String::new(), "PUT", path);
                step.body = Some(json!({
                    "apiVersion": "autoscaling/v1", "kind": "Scale",
                    "metadata": {"name": self.kinds[kind].name(short), "namespace": "{ns}"}, "spec": {"replicas": replicas},
                }));
                step
            }
        };
        step.name.clear();
        self.push(kind, "scale", step, Some(short));
    }

    fn delete_options(&mut self, kind: usize, short: &str) -> Option<Value> {
        if self.dice.percent(40) {
            return None;
        }
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        match self.dice.below(8) {
            0 => options["propagationPolicy"] = "Background".into(),
            1 => options["propagationPolicy"] = "Foreground".into(),
            2 => options["propagationPolicy"] = "Orphan".into(),
            3 => options["preconditions"] = json!({"uid": format!("{{uid{kind}{short}}}")}),
            4 => {
                options["preconditions"] =
                    json!({"resourceVersion": format!("{{rv{kind}{short}}}")});
            }
            5 => {
                options["gracePeriodSeconds"] =
                    dice_value(self.dice, &[json!(0), json!(5), json!(-1)]);
            }
            6 => options["propagationPolicy"] = "Weird".into(),
            _ => options["dryRun"] = json!(["All"]),
        }
        Some(options)
    }

    fn delete(&mut self, kind: usize, short: &str) {
        let mut step = request(String::new(), "DELETE", self.item(kind, short));
        step.body = self.delete_options(kind, short);
        self.push(kind, "delete", step, None);
        if let Some(step) = self.steps.last_mut() {
            step.name.push(' ');
            step.name.push_str(short);
        }
    }

    fn delete_collection(&mut self, kind: usize) {
        let mut step = request(String::new(), "DELETE", self.kinds[kind].collection());
        self.selectors(kind, &mut step);
        self.push(kind, "delete-collection", step, None);
    }

    /// A watch that goes on while the sequence does.
    fn watch(&mut self, kind: usize) {
        let mut step = request(String::new(), "GET", self.kinds[kind].collection());
        step.query.insert("watch".into(), "true".into());
        step.query
            .insert("resourceVersion".into(), "{start}".into());
        let selector = if self.kinds[kind].cluster {
            Some(*self.dice.one(&["seq={seq}", "seq={seq},app=a"]))
        } else {
            *self.dice.one(&[None, Some("app=a"), Some("app in (a,c)")])
        };
        if let Some(selector) = selector {
            step.query.insert("labelSelector".into(), selector.into());
        }
        if self.dice.percent(15) {
            step.headers.insert("accept".into(), TABLE.into());
        }
        step.watch = Some(Watch {
            events: None,
            until: Some(self.kinds[kind].name(SENTINEL)),
            background: true,
        });
        self.watched[kind] = true;
        self.push(kind, "watch", step, None);
    }

    /// A watch of what has happened, with what a background watch cannot have: any selector.
    fn past_watch(&mut self, kind: usize) {
        let mut step = request(String::new(), "GET", self.kinds[kind].collection());
        self.selectors(kind, &mut step);
        step.query.insert("watch".into(), "true".into());
        step.query.insert("timeoutSeconds".into(), 1.into());
        step.query
            .insert("resourceVersion".into(), "{start}".into());
        step.watch = Some(Watch::default());
        self.push(kind, "past-watch", step, None);
    }

    fn bad(&mut self, kind: usize, short: &str) {
        let collection = self.kinds[kind].collection();
        let item = self.item(kind, short);
        let body = plain(self.kinds[kind], short);
        let mut step = match self.dice.below(9) {
            0 => request(String::new(), "POST", item),
            1 => request(String::new(), "PUT", collection),
            2 => request(String::new(), "GET", format!("{collection}-missing")),
            3 => request(String::new(), "GET", format!("{item}/nothing")),
            4 => {
                let mut step = request(String::new(), "POST", collection);
                step.raw_body = Some(
                    (*self.dice.one(&[
                        "{",
                        "[]",
                        "{\"kind\": 1}",
                        "null",
                        "{\"metadata\": []}",
                        "nonsense: [",
                    ]))
                    .into(),
                );
                step
            }
            5 => {
                let mut step = request(String::new(), "POST", collection);
                let mut body = body;
                body["kind"] = "Other".into();
                step.body = Some(body);
                step
            }
            6 => {
                let mut step = request(String::new(), "PUT", item);
                let mut body = body;
                body["metadata"]["name"] = "different".into();
                step.body = Some(body);
                step
            }
            7 => {
                let mut step = request(String::new(), "PATCH", item);
                step.content_type = Some(
                    (*self.dice.one(&[
                        "application/json",
                        "text/plain",
                        JSON_PATCH,
                        MERGE,
                        STRATEGIC,
                        APPLY,
                    ]))
                    .into(),
                );
                step.raw_body =
                    Some((*self.dice.one(&["{", "[]", "5", "null", "\"text\""])).into());
                step
            }
            _ => {
                let mut step = request(String::new(), "POST", collection);
                step.content_type =
                    Some((*self.dice.one(&["text/plain", "application/xml"])).into());
                step.body = Some(body);
                step
            }
        };
        if step.method == "POST" && step.body.is_none() && step.raw_body.is_none() {
            step.body = Some(plain(self.kinds[kind], short));
        }
        self.push(kind, "bad", step, None);
    }
}
