//! `LimitRange`s: what containers get that ask for nothing, and what nobody may ask for.

use serde_json::{Map, Value, json};

use super::{refused, shown_name};
use crate::kinds::core::pod::resources as pods;
use crate::object::meta_mut;
use crate::quantity::Quantity;
use crate::registry::resource::Resource;
use crate::status::Result;
use crate::store::{Store, TableName};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The limits of all ranges of a namespace, by range.
fn ranges(store: &Store, namespace: &str) -> Vec<Vec<Value>> {
    let table = TableName::new("", "limitranges");
    let Ok(found) = store.list(&table, Some(namespace), None, None) else {
        return Vec::new();
    };
    let limits = |range: Value| {
        range["spec"]["limits"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    found
        .objects
        .iter()
        .map(|range| limits(range.value()))
        .collect()
}

/// Fills in what the containers of a new pod leave open.
pub(super) fn admit(store: &Store, namespace: &str, pod: &mut Value) {
    for limits in ranges(store, namespace) {
        let (mut requests, mut most) = (Map::new(), Map::new());
        for limit in limits.iter().filter(|limit| limit["type"] == "Container") {
            for (list, into) in [("defaultRequest", &mut requests), ("default", &mut most)] {
                for (name, value) in limit[list].as_object().into_iter().flatten() {
                    into.insert(name.clone(), value.clone());
                }
            }
        }
        let mut told = Vec::new();
        for (list, kind) in [
            ("containers", "container"),
            ("initContainers", "init container"),
        ] {
            let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                let name = container["name"].as_str().unwrap_or_default().to_owned();
                let limited = fill(container, "limits", &most);
                let asked = fill(container, "requests", &requests);
                for (names, what) in [(asked, "request"), (limited, "limit")] {
                    if !names.is_empty() {
                        told.push(format!("{} {what} for {kind} {name}", names.join(", ")));
                    }
                }
            }
        }
        if !told.is_empty() {
            let annotations = meta_mut(pod)
                .entry("annotations")
                .or_insert_with(|| json!({}));
            let text = format!("LimitRanger plugin set: {}", told.join("; "));
            annotations[ANNOTATION] = text.into();
        }
    }
}

/// Adds what a container lacks; the names of that come back.
fn fill(container: &mut Value, part: &str, defaults: &Map<String, Value>) -> Vec<String> {
    let mut filled = Vec::new();
    for (name, value) in defaults {
        if container["resources"][part].get(name).is_none() {
            if !container["resources"].is_object() {
                container["resources"] = json!({});
            }
            if !container["resources"][part].is_object() {
                container["resources"][part] = json!({});
            }
            container["resources"][part][name] = value.clone();
            filled.push(name.clone());
        }
    }
    filled
}

/// Refuses a pod or a claim that is out of bounds.
pub(super) fn check(
    store: &Store,
    resource: &Resource,
    namespace: &str,
    object: &Value,
) -> Result<()> {
    for limits in ranges(store, namespace) {
        let mut wrong: Vec<String> = Vec::new();
        for limit in &limits {
            if resource.strategy.is_pod() {
                check_pod(limit, &object["spec"], &mut wrong);
            } else if limit["type"] == "PersistentVolumeClaim" {
                let asked = amounts(&object["spec"]["resources"]["requests"]);
                let none = |_: &str| None;
                each(
                    limit,
                    "min",
                    |name, bound| {
                        minimum(
                            "PersistentVolumeClaim",
                            name,
                            bound,
                            asked(name),
                            none(name),
                        )
                    },
                    &mut wrong,
                );
                each(
                    limit,
                    "max",
                    |name, bound| maximum_request(name, bound, asked(name)),
                    &mut wrong,
                );
            }
        }
        if !wrong.is_empty() {
            let mut told: Vec<String> = Vec::new();
            for why in wrong {
                if !told.contains(&why) {
                    told.push(why);
                }
            }
            let why = match told.as_slice() {
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            };
            return Err(refused(resource, shown_name(object), &why));
        }
    }
    Ok(())
}

fn amounts(map: &Value) -> impl Fn(&str) -> Option<Quantity> + '_ {
    move |name| Quantity::parse(map[name].as_str()?)
}

fn each(
    limit: &Value,
    list: &str,
    check: impl Fn(&str, Quantity) -> Option<String>,
    wrong: &mut Vec<String>,
) {
    for (name, bound) in limit[list].as_object().into_iter().flatten() {
        if let Some(bound) = bound.as_str().and_then(Quantity::parse) {
            wrong.extend(check(name, bound));
        }
    }
}

fn check_pod(limit: &Value, spec: &Value, wrong: &mut Vec<String>) {
    match limit["type"].as_str() {
        Some("Container") => {
            for list in ["containers", "initContainers"] {
                for container in spec[list].as_array().into_iter().flatten() {
                    let (asked, most) = (
                        amounts(&container["resources"]["requests"]),
                        amounts(&container["resources"]["limits"]),
                    );
                    bounds(limit, "Container", &asked, &most, wrong);
                }
            }
        }
        Some("Pod") => {
            let own = |part: &str, name: &str| {
                let given = spec["resources"][part][name].as_str();
                given
                    .filter(|_| matches!(name, "cpu" | "memory"))
                    .and_then(Quantity::parse)
            };
            let asked = |name: &str| own("requests", name).or_else(|| pods::requests(spec, name));
            let most = |name: &str| own("limits", name).or_else(|| pods::limits(spec, name));
            bounds(limit, "Pod", &asked, &most, wrong);
        }
        _ => {}
    }
}

fn bounds(
    limit: &Value,
    kind: &str,
    asked: &dyn Fn(&str) -> Option<Quantity>,
    most: &dyn Fn(&str) -> Option<Quantity>,
    wrong: &mut Vec<String>,
) {
    each(
        limit,
        "min",
        |name, bound| minimum(kind, name, bound, asked(name), most(name)),
        wrong,
    );
    each(
        limit,
        "max",
        |name, bound| maximum(kind, name, bound, asked(name), most(name)),
        wrong,
    );
    each(
        limit,
        "maxLimitRequestRatio",
        |name, bound| ratio(kind, name, bound, asked(name), most(name)),
        wrong,
    );
}

fn minimum(
    kind: &str,
    name: &str,
    bound: Quantity,
    asked: Option<Quantity>,
    most: Option<Quantity>,
) -> Option<String> {
    let begin = format!("minimum {name} usage per {kind} is {bound}");
    match (asked, most) {
        (None, _) => Some(format!("{begin}.  No request is specified")),
        (Some(asked), _) if asked.milli() < bound.milli() => {
            Some(format!("{begin}, but request is {asked}"))
        }
        (_, Some(most)) if most.milli() < bound.milli() => {
            Some(format!("{begin}, but limit is {most}"))
        }
        _ => None,
    }
}

fn maximum(
    kind: &str,
    name: &str,
    bound: Quantity,
    asked: Option<Quantity>,
    most: Option<Quantity>,
) -> Option<String> {
    let begin = format!("maximum {name} usage per {kind} is {bound}");
    match (most, asked) {
        (None, _) => Some(format!("{begin}.  No limit is specified")),
        (Some(most), _) if most.milli() > bound.milli() => {
            Some(format!("{begin}, but limit is {most}"))
        }
        (_, Some(asked)) if asked.milli() > bound.milli() => {
            Some(format!("{begin}, but request is {asked}"))
        }
        _ => None,
    }
}

fn maximum_request(name: &str, bound: Quantity, asked: Option<Quantity>) -> Option<String> {
    let begin = format!("maximum {name} usage per PersistentVolumeClaim is {bound}");
    match asked {
        None => Some(format!("{begin}.  No request is specified")),
        Some(asked) if asked.milli() > bound.milli() => {
            Some(format!("{begin}, but request is {asked}"))
        }
        Some(_) => None,
    }
}

fn ratio(
    kind: &str,
    name: &str,
    bound: Quantity,
    asked: Option<Quantity>,
    most: Option<Quantity>,
) -> Option<String> {
    let begin = format!("{name} max limit to request ratio per {kind} is {bound}");
    let Some(asked) = asked.filter(|asked| !asked.is_zero()) else {
        return Some(format!(
            "{begin}, but no request is specified or request is 0"
        ));
    };
    let Some(most) = most.filter(|most| !most.is_zero()) else {
        return Some(format!("{begin}, but no limit is specified or limit is 0"));
    };
    let found = most.ratio_to(&asked);
    (found > bound.as_f64()).then(|| format!("{begin}, but provided ratio is {found:.6}"))
}
