//! One sequence on one server: what it needs beforehand, its steps, and what is cleared afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use crate::case::{Identity, Step};
use crate::generate;
use crate::kinds::Kind;
use crate::normalise::{Normal, normalise};
use crate::pace::Pace;
use crate::run::run_steps;
use crate::servers::Servers;

/// Plays steps in a namespace of the given name, which must be new, by a clock.
pub(crate) async fn play(
    servers: &Servers,
    name: &str,
    steps: &[Step],
    pace: &Pace,
) -> Result<Vec<Normal>, String> {
    let namespace = object("v1", "Namespace", name);
    let made = send(servers, "POST", "/api/v1/namespaces", Some(&namespace), 201).await?;
    let start = made["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let account = object("v1", "ServiceAccount", "default");
    send(
        servers,
        "POST",
        &format!("/api/v1/namespaces/{name}/serviceaccounts"),
        Some(&account),
        201,
    )
    .await?;
    let mut variables: BTreeMap<String, String> = generate::unfilled(&start);
    variables.insert("ns".into(), name.to_owned());
    variables.insert("seq".into(), name.to_owned());
    let answers = run_steps(steps, &mut variables, servers, |step| pace.before(step)).await;
    let mut normal = normalise(answers);
    for answer in &mut normal {
        unname(name, &mut answer.body);
        unversion(&start, &mut answer.body);
        ungenerate(&mut answer.body);
        sort_managers(&mut answer.body);
        if answer.step.contains("namespaces") {
            sort_finalizers(&mut answer.body);
        }
        unage(&mut answer.body);
        unaddress(&mut answer.body);
        sort_causes(&mut answer.body);
        for warning in &mut answer.warnings {
            *warning = warning.replace(name, "<ns>");
        }
    }
    Ok(normal)
}

/// Makes a definition and waits until its kind is served; one that is there already is kept.
pub(crate) async fn define(
    servers: &Servers,
    definition: &Value,
    kind: &Kind,
) -> Result<(), String> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (status, answer) = exchange(servers, "POST", path, Some(definition)).await?;
    if status != 201 && status != 409 {
        return Err(format!("the definition is refused: {answer}\n{definition}"));
    }
    let collection = kind.collection().replace("{ns}", "default");
    for _ in 0..600 {
        if exchange(servers, "GET", &collection, None).await?.0 == 200 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(format!("{collection} is not served"))
}

/// Removes what would run out (node ports), and what every later write would be slower for
/// (configurations of webhooks).
pub(crate) async fn clear(servers: &Servers, name: &str, steps: &[Step]) -> Result<(), String> {
    let services = format!("/api/v1/namespaces/{name}/services");
    exchange(servers, "DELETE", &services, None).await?;
    for plural in [
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    ] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        if steps.iter().any(|step| step.path.starts_with(&path)) {
            let own = format!("{path}?labelSelector=seq%3D{name}");
            exchange(servers, "DELETE", &own, None).await?;
        }
    }
    Ok(())
}

pub(crate) async fn undefine(servers: &Servers, definition: &Value) -> Result<(), String> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    exchange(servers, "DELETE", &path, None).await.map(drop)
}

fn object(api: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}})
}

async fn send(
    servers: &Servers,
    method: &str,
    path: &str,
    body: Option<&Value>,
    wanted: u16,
) -> Result<Value, String> {
    let (status, answer) = exchange(servers, method, path, body).await?;
    if status == wanted {
        Ok(answer)
    } else {
        Err(format!("{method} {path}: {status}: {answer}"))
    }
}

async fn exchange(
    servers: &Servers,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<(u16, Value), String> {
    let bytes = body
        .map(|body| body.to_string().into_bytes())
        .unwrap_or_default();
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(bytes))
        .map_err(|error| error.to_string())?;
    let response = servers
        .send(Identity::Admin, request)
        .await
        .map_err(|error| format!("{method} {path}: {error}"))?;
    let status = response.status().as_u16();
    let bytes = response
        .into_body()
        .collect()
        .await
        .map_err(|error| error.to_string())?
        .to_bytes();
    Ok((
        status,
        serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    ))
}

/// The version that a sequence starts with is no object's, but a precondition may name it.
fn unversion(start: &str, body: &mut Value) {
    if let Some(Value::String(message)) = body.get_mut("message") {
        for (before, after) in [("(", ")"), (": ", ",")] {
            let (said, plain) = (
                format!("{before}{start}{after}"),
                format!("{before}<start>{after}"),
            );
            *message = message.replace(&said, &plain);
        }
        // Nor is one that only a collection's deletion gave.
        let unseen = regex::Regex::new(r"in record \([0-9]+\)").expect("a pattern");
        *message = unseen
            .replace_all(message, "in record (<unseen>)")
            .into_owned();
    }
}

/// What is wrong with a custom resource is told in the order of Go's maps, which is none.
fn sort_causes(body: &mut Value) {
    let by_schema = |cause: &Value| {
        let message = cause["message"].as_str().unwrap_or_default();
        message.contains(" in body ") || message.contains("Unsupported value")
    };
    let of_custom = body["details"]["group"]
        .as_str()
        .is_some_and(|group| group.ends_with(".example.com"));
    if !of_custom {
        return;
    }
    let Some(causes) = body
        .pointer_mut("/details/causes")
        .and_then(Value::as_array_mut)
    else {
        return;
    };
    if causes.len() > 1 && causes.iter().any(by_schema) {
        causes.sort_by_cached_key(Value::to_string);
        body["message"] = "(the causes)".into();
    }
}

/// The addresses and ports that services were given, in the cells of tables.
fn unaddress(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("10.96.") => *text = "<ip>".into(),
        Value::String(text) if text.contains(":3") => {
            let chosen = regex::Regex::new(":3[0-9]{4}/(TCP|UDP|SCTP)").expect("a pattern");
            *text = chosen.replace_all(text, ":<nodePort>/$1").into_owned();
        }
        Value::Array(list) => list.iter_mut().for_each(unaddress),
        Value::Object(map) => map
            .iter_mut()
            .filter(|(key, _)| matches!(key.as_str(), "rows" | "cells" | "events" | "object"))
            .for_each(|(_, value)| unaddress(value)),
        _ => {}
    }
}

/// Tables after the first of a watch do not say which of their cells are ages. Nor do they say
/// their columns again, but when two watch the same, which the real server then may.
fn unage(body: &mut Value) {
    let age = regex::Regex::new("^([0-9]+[smhd])+$").expect("a pattern");
    let events = body.get_mut("events").and_then(Value::as_array_mut);
    for (place, event) in events.into_iter().flatten().enumerate() {
        if place > 0
            && let Some(columns) = event.pointer_mut("/object/columnDefinitions")
        {
            *columns = Value::Null;
        }
        let rows = event
            .pointer_mut("/object/rows")
            .and_then(Value::as_array_mut);
        for row in rows.into_iter().flatten() {
            for cell in row["cells"].as_array_mut().into_iter().flatten() {
                if cell.as_str().is_some_and(|text| age.is_match(text)) {
                    *cell = "<age>".into();
                }
            }
        }
    }
}

/// Managers come in the order of their times, which are not the same on a slow server.
fn sort_managers(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::Array(entries)) = map.get_mut("managedFields") {
                entries.sort_by_cached_key(Value::to_string);
            }
            map.values_mut().for_each(sort_managers);
        }
        Value::Array(list) => list.iter_mut().for_each(sort_managers),
        _ => {}
    }
}

/// The finalizers of a namespace that is deleted come out of one of Go's maps.
fn sort_finalizers(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::Array(finalizers)) = map.get_mut("finalizers") {
                finalizers.sort_by_cached_key(Value::to_string);
            }
            map.values_mut().for_each(sort_finalizers);
        }
        Value::Array(list) => list.iter_mut().for_each(sort_finalizers),
        _ => {}
    }
}

/// A refused object shows the name that was generated for it, and nothing else does.
fn ungenerate(body: &mut Value) {
    let generated = regex::Regex::new("gen-[a-z0-9]{5}").expect("a pattern");
    for text in [
        body.pointer("/message").cloned(),
        body.pointer("/details/name").cloned(),
    ]
    .into_iter()
    .flatten()
    {
        let Some(text) = text.as_str() else { continue };
        let plain = generated.replace_all(text, "gen-<random>").into_owned();
        for place in ["/message", "/details/name"] {
            if let Some(found) = body.pointer_mut(place).filter(|found| **found == text) {
                *found = plain.as_str().into();
            }
        }
    }
}

/// A shrunk sequence runs in namespaces of other names, and must say the same.
fn unname(name: &str, value: &mut Value) {
    match value {
        Value::String(text) if text.contains(name) => *text = text.replace(name, "<ns>"),
        Value::Array(list) => list.iter_mut().for_each(|value| unname(name, value)),
        Value::Object(map) => {
            for key in map
                .keys()
                .filter(|key| key.contains(name))
                .cloned()
                .collect::<Vec<_>>()
            {
                if let Some(value) = map.remove(&key) {
                    map.insert(key.replace(name, "<ns>"), value);
                }
            }
            map.values_mut().for_each(|value| unname(name, value));
        }
        _ => {}
    }
}
