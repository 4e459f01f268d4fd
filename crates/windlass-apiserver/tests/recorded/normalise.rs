//! Replaces what differs from run to run by placeholders, so that two servers can be compared.
//!
//! | what | becomes |
//! | --- | --- |
//! | uids | `<uid:1>`, numbered by first appearance |
//! | resourceVersions of objects | `<rv:1>`, numbered by size: their order stays visible |
//! | resourceVersions of lists and bookmarks | `<rv:1..>`: not older than the object version 1 (a server may have written other things since) |
//! | times | `<time>`, `<microtime>` |
//! | random endings of generated names | `<random:1>`, numbered by first appearance |
//! | addresses and node ports that the server chose | `<ip:1>`, `<nodePort:1>` |
//! | continue tokens | `<continue>` |
//! | ages in tables | `<age>` |
//! | the server's own address, the hash of a client's certificate | `<address>`, `<hash>` |
//!
//! The managers that an apply conflict names as causes come in no order: they are sorted.
//! Descriptions of table columns are dropped: they are Kubernetes' prose, not its behaviour.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::run::Answer;

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

/// Normalises the answers of one case together: a uid keeps its number from step to step.
pub(crate) fn normalise(answers: Vec<Answer>) -> Vec<Normal> {
    let mut names = Names::default();
    for answer in &answers {
        names.collect_versions(&answer.body);
        names.collect_generated(&answer.body);
    }
    answers
        .into_iter()
        .map(|answer| {
            let mut body = answer.body;
            names.value("", &mut body);
            Normal {
                step: answer.step,
                status: answer.status,
                content_type: answer.content_type,
                warnings: answer
                    .warnings
                    .iter()
                    .map(|text| names.text(text))
                    .collect(),
                body,
            }
        })
        .collect()
}

/// What has been seen so far, each with its placeholder's number.
#[derive(Default)]
struct Names {
    versions: BTreeSet<u64>,
    uids: Vec<String>,
    addresses: Vec<String>,
    ports: Vec<u64>,
    /// Generated names: the whole name, and what was asked for.
    generated: Vec<(String, String)>,
}

impl Names {
    fn collect_versions(&mut self, value: &Value) {
        match value {
            Value::Object(map) if is_bookmark(map) => {}
            Value::Object(map) => {
                let version = map
                    .get("metadata")
                    .and_then(|metadata| metadata.get("resourceVersion"));
                if let Some(number) = version.and_then(number_of).filter(|_| !is_list(map)) {
                    self.versions.insert(number);
                }
                map.values().for_each(|value| self.collect_versions(value));
            }
            Value::Array(list) => list.iter().for_each(|value| self.collect_versions(value)),
            _ => {}
        }
    }

    fn collect_generated(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                let text = |key: &str| map.get(key).and_then(Value::as_str);
                if let (Some(prefix), Some(name)) = (text("generateName"), text("name"))
                    && name.len() == prefix.len() + 5
                    && name.starts_with(prefix)
                {
                    self.generate(name, prefix);
                }
                // The ServiceAccount admission names its volume so.
                let volume = "kube-api-access-";
                if let Some(name) = text("name").filter(|name| name.starts_with(volume)) {
                    self.generate(name, volume);
                }
                map.values().for_each(|value| self.collect_generated(value));
            }
            Value::Array(list) => list.iter().for_each(|value| self.collect_generated(value)),
            _ => {}
        }
    }

    fn generate(&mut self, name: &str, prefix: &str) {
        if !self.generated.iter().any(|(known, _)| known == name) {
            self.generated.push((name.to_owned(), prefix.to_owned()));
        }
    }

    fn value(&mut self, key: &str, value: &mut Value) {
        match value {
            Value::Object(map) => self.object(map),
            Value::Array(list) => list.iter_mut().for_each(|value| self.value(key, value)),
            Value::String(text) => *text = self.string(key, text),
            Value::Number(number) if matches!(key, "nodePort" | "healthCheckNodePort") => {
                let port = number.as_u64().unwrap_or_default();
                *value = format!("<nodePort:{}>", index(&mut self.ports, port)).into();
            }
            _ => {}
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>) {
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
        let keys: Vec<String> = map
            .keys()
            .filter(|key| key.starts_with("k:") || key.starts_with("v:"))
            .cloned()
            .collect();
        for key in keys {
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
                Ok(number) if number > 0 => self.exact(number),
                _ => text.to_owned(),
            },
            "continue" if !text.is_empty() => "<continue>".into(),
            "serverAddress" => "<address>".into(),
            "authentication.kubernetes.io/credential-id" => {
                text.split('=').next().unwrap_or_default().to_owned() + "=<hash>"
            }
            "clusterIP" | "clusterIPs" if text.parse::<std::net::IpAddr>().is_ok() => {
                format!("<ip:{}>", index(&mut self.addresses, text.to_owned()))
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
                let number = index(&mut self.uids, uid.to_owned());
                let placeholder = format!("<uid:{number}>");
                out.push_str(&placeholder);
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
        for (number, (name, prefix)) in self.generated.iter().enumerate() {
            out = out.replace(name, &format!("{prefix}<random:{}>", number + 1));
        }
        out
    }

    /// The version of an object, by its place among all of the case.
    fn exact(&self, version: u64) -> String {
        if self.versions.contains(&version) {
            format!("<rv:{}>", self.versions.range(..=version).count())
        } else {
            self.not_older(version)
        }
    }

    /// The version of a list or bookmark is the store's, which may have moved on.
    fn loosen(&self, metadata: Option<&mut Value>) {
        let version = metadata.and_then(|metadata| metadata.get_mut("resourceVersion"));
        if let Some(version) = version
            && let Some(number) = number_of(version)
        {
            *version = self.not_older(number).into();
        }
    }

    fn not_older(&self, version: u64) -> String {
        format!("<rv:{}..>", self.versions.range(..=version).count())
    }

    /// The versions a message names; a number no object has is one that the request made up.
    fn versions_in(&self, text: &str) -> String {
        let mut out = String::new();
        for part in text.split_inclusive(|c: char| !c.is_ascii_digit()) {
            let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
            match digits.parse::<u64>() {
                // A digit within a word (`meta.k8s.io`) is no version.
                Ok(_) if out.ends_with(|c: char| c.is_ascii_alphabetic()) => out.push_str(digits),
                // What the server says of its own present version.
                Ok(number) if out.ends_with("current: ") => out.push_str(&self.not_older(number)),
                Ok(number) if self.versions.contains(&number) => out.push_str(&self.exact(number)),
                Ok(number) if out.ends_with('(') => out.push_str(&self.not_older(number)),
                _ => out.push_str(digits),
            }
            out.push_str(&part[digits.len()..]);
        }
        out
    }
}

fn is_bookmark(map: &Map<String, Value>) -> bool {
    map.get("type").is_some_and(|kind| kind == "BOOKMARK")
}

fn is_list(map: &Map<String, Value>) -> bool {
    map.get("kind")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind == "Table" || kind.ends_with("List"))
}

/// A placeholder's number: that of the equal value seen before, or the next.
fn index<T: PartialEq>(seen: &mut Vec<T>, value: T) -> usize {
    if let Some(at) = seen.iter().position(|known| *known == value) {
        return at + 1;
    }
    seen.push(value);
    seen.len()
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
    let list = serde_json::json!({"kind": "PodList", "metadata": {"resourceVersion": "93"}, "items": [object("92")]});
    let message = serde_json::json!({"message": "resourceVersion 92 of web-x7k2p is not 17"});
    let answers = [object("92"), object("91"), list, message].map(|body| Answer {
        step: "get".into(),
        status: 200,
        content_type: None,
        warnings: Vec::new(),
        body,
    });
    let normal = normalise(answers.into());
    assert_eq!(
        normal[0].body["metadata"],
        serde_json::json!({
            "name": "web-<random:1>", "generateName": "web-", "resourceVersion": "<rv:2>",
            "uid": "<uid:1>", "creationTimestamp": "<time>",
        })
    );
    assert_eq!(normal[1].body["metadata"]["resourceVersion"], "<rv:1>");
    assert_eq!(normal[2].body["metadata"]["resourceVersion"], "<rv:2..>");
    assert_eq!(
        normal[3].body["message"],
        "resourceVersion <rv:2> of web-<random:1> is not 17"
    );
}
