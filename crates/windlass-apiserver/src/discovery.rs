//! Discovery: which groups, versions and resources there are, in the legacy and the aggregated form.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use http::HeaderMap;
use http::header::ACCEPT;
use serde_json::{Value, json};

use crate::http::Answer;
use crate::registry::facts;
use crate::registry::resource::Resource;
use crate::registry::{Group, Known, Registry};
use crate::status::{ApiError, Result};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/version`.
pub(crate) fn version() -> Value {
    let version = &facts::get().version;
    let mut parts = version.trim_start_matches('v').split('.');
    json!({
        "major": parts.next().unwrap_or_default(),
        "minor": parts.next().unwrap_or_default(),
        "gitVersion": format!("{version}+windlass"),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// `/`: what can be asked for.
pub(crate) fn paths(known: &Known) -> Value {
    let mut paths: Vec<String> = [
        "/.well-known/openid-configuration",
        "/api",
        "/api/v1",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    for group in known.groups() {
        paths.push(format!("/apis/{}", group.name));
        for version in &group.versions {
            paths.push(format!("/apis/{}/{version}", group.name));
        }
    }
    paths.sort();
    json!({"paths": paths})
}

/// Whether the client prefers everything in one answer.
fn wants_aggregated(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .unwrap_or_default();
    accept.split(',').any(|clause| {
        clause.contains("as=APIGroupDiscoveryList")
            && clause.contains("v=v2;") | clause.ends_with("v=v2")
            && !clause.contains("v2beta1")
    })
}

/// `/api`.
pub(crate) fn core_versions(known: &Known, headers: &HeaderMap) -> Answer {
    if wants_aggregated(headers) {
        return aggregated([aggregated_group(known, "", &["v1".to_owned()])]);
    }
    Answer::value(json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    }))
}

/// `/apis`.
pub(crate) fn groups(known: &Known, headers: &HeaderMap) -> Answer {
    let groups = known.groups();
    if wants_aggregated(headers) {
        let groups = groups.iter();
        return aggregated(
            groups.map(|group| aggregated_group(known, &group.name, &group.versions)),
        );
    }
    let groups: Vec<Value> = groups
        .iter()
        .map(|group| api_group(&group.name, &group.versions))
        .collect();
    Answer::value(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

/// `/apis/<group>`.
pub(crate) fn group(known: &Known, name: &str) -> Answer {
    let Some(group) = known.groups().into_iter().find(|group| group.name == name) else {
        return Answer::no_such_path();
    };
    let mut group = api_group(&group.name, &group.versions);
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Answer::value(group)
}

fn api_group(name: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

/// `/api/v1` and `/apis/<group>/<version>`.
pub(crate) fn resources(known: &Known, group: &str, version: &str) -> Result<Answer> {
    let Some(resources) = known.of_version(group, version) else {
        return if Known::is_path(group) {
            Err(ApiError::resource_not_found())
        } else {
            Ok(Answer::no_such_path())
        };
    };
    let mut rows = Vec::new();
    for resource in &resources {
        let mut row = json!({
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": resource.verbs,
        });
        if !resource.short_names.is_empty() {
            row["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            row["categories"] = json!(resource.categories);
        }
        // A Binding is a request, and is kept nowhere.
        if resource.is_stored() && !resource.strategy.binds_pods() {
            row["storageVersionHash"] = resource.storage_version_hash().into();
        }
        rows.push(row);
        for sub in &resource.subresources {
            let mut row = json!({
                "name": format!("{}/{}", resource.plural, sub.name),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": sub.verbs,
            });
            if let Some((group, version, kind)) = &sub.body {
                row["kind"] = kind.as_str().into();
                if (group.as_str(), version.as_str())
                    != (resource.group.as_str(), resource.version.as_str())
                {
                    row["group"] = group.as_str().into();
                    row["version"] = version.as_str().into();
                }
            }
            rows.push(row);
        }
    }
    let mut list = json!({"kind": "APIResourceList", "resources": rows});
    if group.is_empty() {
        list["groupVersion"] = version.into();
    } else {
        list["apiVersion"] = "v1".into();
        list["groupVersion"] = format!("{group}/{version}").into();
    }
    Ok(Answer::value(list))
}

/// What is told of the built-in groups, by their names: worked out once per process, because
/// controllers ask for it often, and a test starts many of them.
static BUILT_IN: LazyLock<BTreeMap<String, Bytes>> = LazyLock::new(|| {
    let known = Registry::built_in().known();
    let mut groups = known.groups();
    groups.push(Group {
        name: String::new(),
        versions: vec!["v1".to_owned()],
    });
    let encoded = |group: Group| {
        let json = group_value(&known, &group.name, &group.versions).to_string();
        (group.name, json.into())
    };
    groups.into_iter().map(encoded).collect()
});

/// The aggregated form of these groups, each of which is encoded already.
fn aggregated(groups: impl IntoIterator<Item = Bytes>) -> Answer {
    let head = br#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":["#;
    let mut list = head.to_vec();
    for (index, group) in groups.into_iter().enumerate() {
        if index > 0 {
            list.push(b',');
        }
        list.extend_from_slice(&group);
    }
    list.extend_from_slice(b"]}");
    Answer::bytes(AGGREGATED, list.into())
}

fn aggregated_group(known: &Known, name: &str, versions: &[String]) -> Bytes {
    match BUILT_IN.get(name) {
        Some(built_in) if !known.has_custom(name) => built_in.clone(),
        _ => group_value(known, name, versions).to_string().into(),
    }
}

fn group_value(known: &Known, name: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            let resources = known.of_version(name, version).unwrap_or_default();
            let resources: Vec<Value> = resources
                .into_iter()
                .map(|resource| aggregated_resource(resource))
                .collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let metadata = if name.is_empty() {
        json!({})
    } else {
        json!({"name": name})
    };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    // Built-in resources leave out what their place in the list tells.
    let own_kind = || {
        if resource.is_custom() {
            kind(&resource.group, &resource.version, &resource.kind)
        } else {
            kind("", "", &resource.kind)
        }
    };
    let mut row = json!({
        "resource": resource.plural,
        "responseKind": own_kind(),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        row["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        row["categories"] = json!(resource.categories);
    }
    if !resource.subresources.is_empty() {
        let subresources: Vec<Value> = resource
            .subresources
            .iter()
            .map(|sub| {
                let body = match &sub.body {
                    Some((group, version, name)) => kind(group, version, name),
                    None => own_kind(),
                };
                json!({"subresource": sub.name, "responseKind": body, "verbs": sub.verbs})
            })
            .collect();
        row["subresources"] = json!(subresources);
    }
    row
}
