//! Replaces what differs from run to run by placeholders, so that two servers can be compared.
//!
//! | what | becomes |
//! | --- | --- |
//! | uids | `<uid:step>`, after the step that first showed it |
//! | resourceVersions of objects | `<rv:step>` |
//! | resourceVersions of lists and bookmarks | `<rv:step..>`: not older than that version (a server may have written other things since) |
//! | times | `<time>`, `<microtime>` |
//! | random endings of generated names | `<random:step>` |
//! | addresses and node ports that the server chose | `<ip:step>`, `<nodePort:step>` |
//! | continue tokens | `<continue>` |
//! | tokens of service accounts | `<token>` |
//! | ages in tables | `<age>` |
//! | the server's own address, the hash of a client's certificate | `<address>`, `<hash>` |
//!
//! What the names of versions hide, their order, is added as a last answer of its own.
//! Entries of managedFields are sorted by the second they were made in, then by manager: whether a
//! second passed between two steps is chance, so those of one operation are sorted by manager here.
//! The managers that an apply conflict names as causes come in no order: they are sorted.
//! Descriptions of table columns are dropped: they are Kubernetes' prose, not its behaviour.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::labels::Labels;
use crate::run::Answer;

/// The last answer of every case: the names of all versions, oldest first.
pub(crate) const ORDER: &str = "(the versions in their order)";

/// What stays of one answer.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Normal {
    pub(crate) step: String,
    pub(crate) status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

/// Normalises the answers of one case together: a uid keeps its name from step to step.
pub(crate) fn normalise(answers: Vec<Answer>) -> Vec<Normal> {
    let mut seen = Seen::new();
    for answer in &answers {
        seen.enter(&answer.step);
        seen.collect(&answer.body);
    }
    let mut normal = Vec::new();
    for mut answer in answers {
        seen.enter(&answer.step);
        seen.value("", &mut answer.body);
        normal.push(Normal {
            step: answer.step,
            status: answer.status,
            content_type: answer.content_type,
            warnings: answer.warnings.iter().map(|text| seen.text(text)).collect(),
            body: answer.body,
        });
    }
    let order: BTreeMap<&u64, &str> = seen.versions.iter().collect();
    normal.push(Normal {
        step: ORDER.into(),
        status: 0,
        content_type: None,
        warnings: Vec::new(),
        body: order.into_values().collect(),
    });
    normal
}

/// What has been seen so far, each with its name.
struct Seen {
    versions: Labels<u64>,
    uids: Labels<String>,
    addresses: Labels<String>,
    ports: Labels<u64>,
    endings: Labels<String>,
    /// Generated names: the whole name, and the name with its ending replaced.
    generated: Vec<(String, String)>,
}

impl Seen {
    fn new() -> Self {
        Self {
            versions: Labels::new("rv"),
            uids: Labels::new("uid"),
            addresses: Labels::new("ip"),
            ports: Labels::new("nodePort"),
            endings: Labels::new("random"),
            generated: Vec::new(),
        }
    }

    fn enter(&mut self, step: &str) {
        self.versions.enter(step);
        self.uids.enter(step);
        self.addresses.enter(step);
        self.ports.enter(step);
        self.endings.enter(step);
    }

    /// Versions and generated names: they must be known before the texts that mention them are read.
    fn collect(&mut self, value: &Value) {
        match value {
            Value::Object(map) if is_bookmark(map) => {}
            Value::Object(map) => {
                let version = map
                    .get("metadata")
                    .and_then(|metadata| metadata.get("resourceVersion"));
                if let Some(number) = version.and_then(number_of).filter(|_| !is_list(map)) {
                    self.versions.name(number);
                }
                let text = |key: &str| map.get(key).and_then(Value::as_str);
                // The ServiceAccount admission names its volume by a prefix of its own.
                for prefix in [text("generateName"), Some("kube-api-access-")]
                    .into_iter()
                    .flatten()
                {
                    if let Some(name) = text("name").filter(|name| name.len() == prefix.len() + 5) {
                        self.generate(name, prefix);
                    }
                }
                map.values().for_each(|value| self.collect(value));
            }
            Value::Array(list) => list.iter().for_each(|value| self.collect(value)),
            _ => {}
        }
    }

    fn generate(&mut self, name: &str, prefix: &str) {
        if name.starts_with(prefix) && !self.generated.iter().any(|(known, _)| known == name) {
            let replaced = format!("{prefix}{}", self.endings.name(name.to_owned()));
            self.generated.push((name.to_owned(), replaced));
        }
    }

    fn value(&mut self, key: &str, value: &mut Value) {
        match value {
            Value::Object(map) => self.object(map),
            Value::Array(list) => list.iter_mut().for_each(|value| self.value(key, value)),
            Value::String(text) => *text = self.string(key, text),
            Value::Number(number) if matches!(key, "nodePort" | "healthCheckNodePort") => {
                *value = self.ports.name(number.as_u64().unwrap_or_default()).into();
            }
            _ => {}
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>) {
        if let Some(Value::Array(entries)) = map.get_mut("managedFields") {
            let text =
                |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
            entries.sort_by_cached_key(|entry| {
                (
                    text(entry, "operation"),
                    entry.get("time").is_some(),
                    text(entry, "manager"),
                )
            });
        }
        if map.get("kind").is_some_and(|kind| kind == "Table") {
            plain_table(map);
        }
        if map.get("reason").is_some_and(|reason| reason == "Conflict") {
            let causes = map
                .get_mut("details")
                .and_then(|details| details.get_mut("causes"));
            if let Some(Value::Array(causes)) = causes {
                causes.sort_by_key(|cause| cause["message"].to_string());
            }
        }
        if is_list(map) {
            self.loosen(map.get_mut("metadata"));
        }
        if is_bookmark(map) {
            self.loosen(
                map.get_mut("object")
                    .and_then(|object| object.get_mut("metadata")),
            );
        }
        // Field names of managedFields hold values too (`k:{"uid":"…"}`, `v:"10.96.0.1"`).
        let holds_values = |key: &&String| key.starts_with("k:") || key.starts_with("v:");
        for key in map.keys().filter(holds_values).cloned().collect::<Vec<_>>() {
            if let Some(value) = map.remove(&key) {
                map.insert(self.text(&key), value);
            }
        }
        for (key, value) in map.iter_mut() {
            self.value(key, value);
        }
    }

    fn string(&mut self, key: &str, text: &str) -> String {
        match key {
            "resourceVersion" => match text.parse() {
                Ok(number) if number > 0 => self.version(number),
                _ => text.to_owned(),
            },
            "continue" if !text.is_empty() => "<continue>".into(),
            "token" if text.split('.').count() == 3 => "<token>".into(),
            "serverAddress" => "<address>".into(),
            "authentication.kubernetes.io/credential-id" => {
                format!("{}=<hash>", text.split('=').next().unwrap_or_default())
            }
            "clusterIP" | "clusterIPs" if text.parse::<std::net::IpAddr>().is_ok() => {
                self.addresses.name(text.to_owned())
            }
            "message"
                if text
                    .to_lowercase()
                    .replace(' ', "")
                    .contains("resourceversion") =>
            {
                let text = self.text(text);
                self.versions_in(&text)
            }
            _ => self.text(text),
        }
    }

    /// Uids, times and generated names, wherever in a text they stand.
    fn text(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            if let Some(uid) = rest.get(..36).filter(|found| is_uid(found)) {
                out.push_str(&self.uids.name(uid.to_owned()));
                rest = &rest[36..];
            } else if rest.get(..27).is_some_and(is_time) {
                out.push_str("<microtime>");
                rest = &rest[27..];
            } else if rest.get(..20).is_some_and(is_time) {
                out.push_str("<time>");
                rest = &rest[20..];
            } else {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        for (name, replaced) in &self.generated {
            out = out.replace(name, replaced);
        }
        out
    }

    /// The version of an object, or of something between two objects.
    fn version(&self, version: u64) -> String {
        self.versions
            .find(&version)
            .map_or_else(|| self.not_older(version), str::to_owned)
    }

    fn not_older(&self, version: u64) -> String {
        let older = self.versions.iter().filter(|(known, _)| **known <= version);
        let name = older
            .max_by_key(|(known, _)| **known)
            .map_or("<rv:>", |(_, name)| name);
        format!("{}..>", name.trim_end_matches('>'))
    }

    /// The version of a list or bookmark is the store's, which may have moved on.
    fn loosen(&self, metadata: Option<&mut Value>) {
        if let Some(version) = metadata.and_then(|metadata| metadata.get_mut("resourceVersion"))
            && let Some(number) = number_of(version)
        {
            *version = self.not_older(number).into();
        }
    }

    /// The versions a message names; a number no object has is one that the request made up.
    fn versions_in(&self, text: &str) -> String {
        let mut out = String::new();
        for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let digits = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            match digits.parse::<u64>() {
                // A digit within a word (`meta.k8s.io`) is no version.
                Ok(_) if out.ends_with(|c: char| c.is_ascii_alphabetic()) => out.push_str(digits),
                // What the server says of its own present version.
                Ok(number) if out.ends_with("current: ") => out.push_str(&self.not_older(number)),
                Ok(number) if self.versions.find(&number).is_some() => {
                    out.push_str(&self.version(number));
                }
                _ => out.push_str(digits),
            }
            out.push_str(&word[digits.len()..]);
        }
        out
    }
}

fn is_bookmark(map: &Map<String, Value>) -> bool {
    map.get("type").is_some_and(|kind| kind == "BOOKMARK")
}

fn is_list(map: &Map<String, Value>) -> bool {
    let kind = map.get("kind").and_then(Value::as_str);
    kind.is_some_and(|kind| kind == "Table" || kind.ends_with("List"))
}

fn number_of(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok().filter(|number| *number > 0)
}

fn is_uid(text: &str) -> bool {
    text.bytes().enumerate().all(|(place, byte)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    })
}

fn is_time(text: &str) -> bool {
    text.ends_with('Z') && text.as_bytes()[10] == b'T' && text.parse::<jiff::Timestamp>().is_ok()
}

/// Columns without their prose, and no ages.
fn plain_table(table: &mut Map<String, Value>) {
    let mut ages = Vec::new();
    if let Some(Value::Array(columns)) = table.get_mut("columnDefinitions") {
        for (at, column) in columns.iter_mut().enumerate() {
            if column["name"] == "Age" {
                ages.push(at);
            }
            if let Value::Object(column) = column {
                column.remove("description");
            }
        }
    }
    if let Some(Value::Array(rows)) = table.get_mut("rows") {
        for row in rows {
            for at in &ages {
                if let Some(cell) = row["cells"].get_mut(*at) {
                    *cell = "<age>".into();
                }
            }
        }
    }
}

#[test]
fn what_differs_from_run_to_run_becomes_a_placeholder() {
    let object = |version: &str| {
        serde_json::json!({"kind": "Pod", "metadata": {
            "name": "web-x7k2p", "generateName": "web-", "resourceVersion": version,
            "uid": "0f0f0f0f-1111-4222-8333-444444444444", "creationTimestamp": "2026-01-02T03:04:05Z",
        }})
    };
    let list = serde_json::json!({"kind": "PodList", "metadata": {"resourceVersion": "93"}, "items": [object("8")]});
    let message =
        serde_json::json!({"message": "resourceVersion 8 of web-x7k2p in k8s.io is not 17"});
    let bodies = [
        ("new", object("8")),
        ("old", object("7")),
        ("list", list),
        ("wrong", message),
    ];
    let answers = bodies.map(|(step, body)| Answer {
        step: step.into(),
        status: 200,
        content_type: None,
        warnings: Vec::new(),
        body,
    });
    let normal = normalise(answers.into());
    assert_eq!(
        normal[0].body["metadata"],
        serde_json::json!({
            "name": "web-<random:new>", "generateName": "web-", "resourceVersion": "<rv:new>",
            "uid": "<uid:new>", "creationTimestamp": "<time>",
        })
    );
    assert_eq!(normal[1].body["metadata"]["resourceVersion"], "<rv:old>");
    assert_eq!(normal[2].body["metadata"]["resourceVersion"], "<rv:new..>");
    assert_eq!(
        normal[3].body["message"],
        "resourceVersion <rv:new> of web-<random:new> in k8s.io is not 17"
    );
    assert_eq!(normal[4].body, serde_json::json!(["<rv:old>", "<rv:new>"]));
}
