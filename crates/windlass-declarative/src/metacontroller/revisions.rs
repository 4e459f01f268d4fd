//! Revisions of a parent, kept as objects: what a rolling update goes by.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};
use windlass::{Error, Result, handle::Delete, hash_of, kind::KindInfo, name_within};

use super::{
    composite::{Composite, Rendered},
    kinds::{Revision, RevisionChildren, UpdateMethod},
    rollout::{Child, Claims, Progress, Seen, advance},
};
use crate::{Check, Input, RendererContext, Wanted, engine::key_of};

/// The kind of the revisions.
pub(super) fn kind() -> KindInfo {
    KindInfo {
        group: "metacontroller.k8s.io".to_owned(),
        version: "v1alpha1".to_owned(),
        kind: "ControllerRevision".to_owned(),
        plural: "controllerrevisions".to_owned(),
        namespaced: true,
    }
}

/// The definition of the kind.
pub(super) fn definition() -> Result<CustomResourceDefinition, serde_json::Error> {
    let KindInfo {
        group,
        version,
        kind,
        plural,
        ..
    } = kind();
    let texts = json!({"type": "array", "items": {"type": "string"}});
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": {
                "api-approved.kubernetes.io": "unapproved, request not yet submitted",
            },
        },
        "spec": {
            "group": group,
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "scope": "Namespaced",
            "versions": [{
                "name": version, "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "description": "What a parent was before, and which children still follow that.",
                    "type": "object",
                    "required": ["metadata", "parentPatch"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "parentPatch": {
                            "description": "The parent's fields.",
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": true,
                        },
                        "children": {
                            "description": "The children that follow this revision, by kind.",
                            "type": "array",
                            "items": {
                                "type": "object",
                                "required": ["apiGroup", "kind", "names"],
                                "properties": {
                                    "apiGroup": {"type": "string"},
                                    "kind": {"type": "string"},
                                    "names": texts,
                                },
                            },
                        },
                    },
                }},
            }],
        },
    }))
}

/// A revision with what it wants.
struct Known {
    name: String,
    patch: Map<String, Value>,
    rendered: Rendered,
}

/// Goes on with a rolling update by at most one child: returns what the newest revision wants, with
/// the children that still follow older ones as those want them.
///
/// Revisions are stored before a child is touched.
pub(super) async fn roll(
    composite: &Composite,
    ctx: &RendererContext,
    input: &Input,
    newest: Rendered,
) -> Result<Result<Rendered, Duration>> {
    let settings = &composite.settings;
    let parent = &*input.parent;
    let Some(namespace) = parent
        .pointer("/metadata/namespace")
        .and_then(Value::as_str)
    else {
        return Err(Error::terminal(format!(
            "{} have no namespace: their children cannot be updated one by one",
            settings.parent
        )));
    };
    let history = settings.spec.parent_resource.revision_history.as_ref();
    let paths: Vec<String> = history
        .map(|history| history.field_paths.clone())
        .filter(|paths| !paths.is_empty())
        .unwrap_or_else(|| vec!["spec".to_owned()]);
    let patch = patch_of(parent, &paths);
    let kind = kind();
    let (mut known, mut claims) = (Vec::new(), Vec::new());
    let stored = composite.owned.list(ctx, &kind).await?;
    known.push(Known {
        name: name_of(
            settings.parent.plural.as_str(),
            &settings.parent.group,
            parent,
            &patch,
        ),
        patch: patch.clone(),
        rendered: newest,
    });
    claims.push(Claims::default());
    let mut obsolete = Vec::new();
    for object in stored {
        let name = object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let revision: Revision = serde_json::from_value(object.clone())
            .map_err(|error| Error::terminal(format!("cannot decode {kind} {name}: {error}")))?;
        let children = children_of(&revision);
        if revision.parent_patch == patch {
            // The same as the parent is now, perhaps under the name that the original gave it.
            known[0].name = name;
            claims[0].children = children;
            continue;
        }
        obsolete.push((name.clone(), object));
        let older = with_patch(parent, &revision.parent_patch, &paths);
        let related = crate::Renderer::related(composite, ctx, &older).await?;
        match composite.ask(ctx, input, &older, &related).await? {
            Ok(rendered) => {
                let patch = revision.parent_patch;
                known.push(Known {
                    name,
                    patch,
                    rendered,
                });
                claims.push(Claims { children });
            }
            Err(after) => return Ok(Err(after)),
        }
    }
    let (wanted, seen) = look(composite, ctx, input, &known[0].rendered.wanted).await?;
    let progress = advance(&mut claims, &wanted, &seen);
    store(composite, ctx, namespace, &known, &claims).await?;
    for (name, object) in obsolete {
        let is_kept = known
            .iter()
            .zip(&claims)
            .any(|(one, claims)| one.name == name && !claims.children.is_empty());
        if !is_kept {
            let how = Delete::background();
            composite.owned.delete(ctx, &kind, &object, &how).await?;
        }
    }
    Ok(Ok(merged(composite, input, known, &claims, &progress)))
}

/// The children that are updated one by one, in the hook's order, and how they are.
async fn look(
    composite: &Composite,
    ctx: &RendererContext,
    input: &Input,
    wanted: &[Wanted],
) -> Result<(Vec<Child>, BTreeMap<Child, Seen>)> {
    let settings = &composite.settings;
    let (mut order, mut seen) = (Vec::new(), BTreeMap::new());
    for one in wanted {
        let Some(kind) = settings.kind_of(&one.object) else {
            continue;
        };
        let method = settings.method(kind);
        if !method.is_rolling() {
            continue;
        }
        let child = child_of(kind, &one.object, input);
        let there = input.children.get(kind, &key_of(&one.object));
        let state = match there {
            None => Seen::Missing,
            Some(_)
                if composite
                    .owned
                    .differs(ctx, kind, one.object.clone())
                    .await? =>
            {
                Seen::Differs
            }
            Some(there) if is_well(composite, kind, method, there) => Seen::Well,
            Some(_) => Seen::Unwell,
        };
        order.push(child.clone());
        seen.insert(child, state);
    }
    Ok((order, seen))
}

fn is_well(composite: &Composite, kind: &KindInfo, method: UpdateMethod, child: &Value) -> bool {
    if !child["metadata"]["deletionTimestamp"].is_null() {
        return false;
    }
    let number = |path: &str| child.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let observed = number("/status/observedGeneration");
    if method == UpdateMethod::RollingInPlace
        && observed > 0
        && observed < number("/metadata/generation")
    {
        return false;
    }
    let rule = composite.settings.rule(kind);
    let strategy = rule.and_then(|rule| rule.update_strategy.as_ref());
    let checks = strategy.and_then(|strategy| strategy.status_checks.as_ref());
    checks.is_none_or(|checks| {
        checks.conditions.iter().all(|one| {
            let check = Check {
                kind: one.kind.clone(),
                status: one.status.clone(),
                reason: one.reason.clone(),
            };
            check.holds(child)
        })
    })
}

/// Stores the revisions that have children, and the newest.
async fn store(
    composite: &Composite,
    ctx: &RendererContext,
    namespace: &str,
    known: &[Known],
    claims: &[Claims],
) -> Result<()> {
    let kind = kind();
    let parent = &composite.settings.parent;
    for (nth, (revision, claims)) in known.iter().zip(claims).enumerate() {
        if nth > 0 && claims.children.is_empty() {
            continue;
        }
        let mut groups: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for (group, kind, name) in &claims.children {
            groups.entry((group, kind)).or_default().push(name);
        }
        let children: Vec<RevisionChildren> = groups
            .into_iter()
            .map(|((group, kind), names)| RevisionChildren {
                api_group: group.to_owned(),
                kind: kind.to_owned(),
                names: names.into_iter().map(ToOwned::to_owned).collect(),
            })
            .collect();
        let object = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {
                "name": revision.name,
                "namespace": namespace,
                "labels": {
                    "metacontroller.k8s.io/apiGroup": parent.group,
                    "metacontroller.k8s.io/resource": parent.plural,
                },
            },
            "parentPatch": revision.patch,
            "children": children,
        });
        composite.owned.apply(ctx, &kind, object).await?;
    }
    Ok(())
}

/// What the newest revision wants, with the children of older ones as those want them.
fn merged(
    composite: &Composite,
    input: &Input,
    known: Vec<Known>,
    claims: &[Claims],
    progress: &Progress,
) -> Rendered {
    let mut known = known.into_iter();
    let Some(Known {
        name,
        rendered: mut newest,
        ..
    }) = known.next()
    else {
        return Rendered {
            answered: super::answer::Answered::default(),
            wanted: Vec::new(),
        };
    };
    for (revision, claims) in known.zip(&claims[1..]) {
        let Rendered { answered, wanted } = revision.rendered;
        newest.answered.finalized &= answered.finalized || claims.children.is_empty();
        let timers = newest.answered.again.into_iter().chain(answered.again);
        newest.answered.again = timers.min();
        for old in wanted {
            let Some(kind) = composite.settings.kind_of(&old.object) else {
                continue;
            };
            let child = child_of(kind, &old.object, input);
            if !claims.children.contains(&child) {
                continue;
            }
            let same = |one: &&mut Wanted| {
                let kind = composite.settings.kind_of(&one.object);
                kind.is_some_and(|kind| child_of(kind, &one.object, input) == child)
            };
            if let Some(place) = newest.wanted.iter_mut().find(same) {
                *place = old;
            }
        }
    }
    let (status, reason, message) = match progress {
        Progress::Done => (
            "True",
            "OnLatestRevision",
            format!("latest ControllerRevision: {name}"),
        ),
        Progress::Updating((_, kind, name)) => (
            "False",
            "RolloutProgressing",
            format!("updating {kind} {name}"),
        ),
        Progress::Waiting((_, kind, name), seen) => {
            let why = match seen {
                Seen::Missing => format!("missing child {kind} {name}"),
                Seen::Differs => format!("child {kind} {name} is not updated yet"),
                Seen::Unwell | Seen::Well => format!("child {kind} {name} failed status check"),
            };
            ("False", "RolloutWaiting", why)
        }
    };
    let updated = json!({
        "type": "Updated", "status": status, "reason": reason, "message": message,
    });
    let answered = newest.answered.status.get_or_insert_with(|| json!({}));
    match answered["conditions"].as_array_mut() {
        Some(conditions) => {
            conditions.retain(|one| one["type"] != "Updated");
            conditions.push(updated);
        }
        None => answered["conditions"] = json!([updated]),
    }
    newest
}

fn child_of(kind: &KindInfo, object: &Value, input: &Input) -> Child {
    let key = key_of(object);
    let own = input
        .parent
        .pointer("/metadata/namespace")
        .and_then(Value::as_str);
    let name = if own.is_some() {
        key.name().to_owned()
    } else {
        key.to_string()
    };
    (kind.group.clone(), kind.kind.clone(), name)
}

fn children_of(revision: &Revision) -> BTreeSet<Child> {
    let of = |one: &RevisionChildren| {
        let (group, kind) = (one.api_group.clone(), one.kind.clone());
        let named = move |name: &String| (group.clone(), kind.clone(), name.clone());
        one.names.iter().map(named).collect::<Vec<Child>>()
    };
    revision.children.iter().flat_map(of).collect()
}

fn name_of(plural: &str, group: &str, parent: &Value, patch: &Map<String, Value>) -> String {
    let group = if group.is_empty() { "core" } else { group };
    let hash = hash_of(&json!([parent["metadata"]["uid"], patch]));
    name_within(253, [format!("{plural}.{group}").as_str(), hash.as_str()])
}

/// The fields at these paths.
fn patch_of(parent: &Value, paths: &[String]) -> Map<String, Value> {
    let mut patch = json!({});
    for path in paths {
        let pointer = format!("/{}", path.replace('.', "/"));
        if let Some(value) = parent.pointer(&pointer) {
            set(&mut patch, path, value.clone());
        }
    }
    match patch {
        Value::Object(patch) => patch,
        _ => Map::new(),
    }
}

/// The parent with the fields at these paths as they were.
fn with_patch(parent: &Value, patch: &Map<String, Value>, paths: &[String]) -> Value {
    let patch = Value::Object(patch.clone());
    let mut older = parent.clone();
    for path in paths {
        let pointer = format!("/{}", path.replace('.', "/"));
        if let Some(value) = patch.pointer(&pointer) {
            set(&mut older, path, value.clone());
        }
    }
    older
}

fn set(of: &mut Value, path: &str, value: Value) {
    let mut at = of;
    for step in path.split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[step];
    }
    *at = value;
}
