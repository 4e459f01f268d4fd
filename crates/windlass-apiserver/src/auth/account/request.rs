//! `serviceaccounts/token`: a token made on request.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use super::bound::Bound;
use super::{Claims, Reference, claims, user_name};
use crate::apply::{self, Managers, Writer};
use crate::defaults;
use crate::http::Answer;
use crate::object::{meta, set_meta};
use crate::registry::types::Type;
use crate::status::{ApiError, Result, Subject, field};
use crate::store::Stored;
use crate::verbs::{Call, admit, body, place};

/// Tokens live no shorter and no longer than this, in seconds, and an hour when nothing is asked.
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;
const USUAL: i64 = 3600;

const REQUEST: Subject<'_> = Subject {
    group: "authentication.k8s.io",
    kind: "TokenRequest",
};

/// Gives the account that the path names a token.
pub(crate) async fn create(call: &Call<'_>) -> Result<Answer> {
    let server = call.server;
    let mut request = body::decode_as(call, "TokenRequest")?.value;
    fill(&mut request);
    place::put(call, &mut request)?;
    record(call, &mut request);
    admit::mutate_posted(call, "token", &mut request).await?;
    let namespace = call.namespace();
    for (part, wanted) in [("name", call.name()), ("namespace", namespace)] {
        let given = meta(&request, part);
        if !given.is_empty() && given != wanted {
            let cause = field::invalid(
                format!("metadata.{part}"),
                &given.into(),
                &format!("must match the service account {part} if specified"),
            );
            return Err(ApiError::invalid(REQUEST, call.name(), &[cause]));
        }
    }
    let account = call.find()?;
    let given = meta(&request, "uid");
    if !given.is_empty() && given != &*account.uid {
        let why = format!(
            "the UID in the token request ({given}) does not match the UID of the service account ({})",
            account.uid
        );
        return Err(ApiError::conflict(REQUEST, call.name(), &why));
    }
    let seconds = match &request["spec"]["expirationSeconds"] {
        Value::Null => USUAL,
        given => given.as_i64().ok_or_else(|| {
            ApiError::bad_request("spec.expirationSeconds must be a whole number")
        })?,
    };
    let wrong = if seconds < SHORTEST {
        "may not specify a duration less than 10 minutes"
    } else if seconds > LONGEST {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        ""
    };
    if !wrong.is_empty() {
        let cause = field::invalid("spec.expirationSeconds", &seconds.into(), wrong);
        return Err(ApiError::invalid(REQUEST, "", &[cause]));
    }
    let audiences: Vec<String> = match request["spec"]["audiences"].as_array() {
        Some(given) if !given.is_empty() => given
            .iter()
            .filter_map(|audience| audience.as_str().map(str::to_owned))
            .collect(),
        _ => vec![server.accounts().issuer().to_owned()],
    };
    for (part, value) in [
        ("name", call.name()),
        ("namespace", namespace),
        ("uid", &account.uid),
        ("creationTimestamp", &server.clock().now_seconds()),
    ] {
        set_meta(&mut request, part, Some(value.into()));
    }
    request["spec"]["audiences"] = json!(audiences);
    admit::judge_posted(call, "token", &request).await?;
    let mut kubernetes = claims::Kubernetes {
        namespace: namespace.to_owned(),
        serviceaccount: reference(&account),
        ..claims::Kubernetes::default()
    };
    if request["spec"]["boundObjectRef"].is_object() {
        bind(call, &request["spec"]["boundObjectRef"], &mut kubernetes)?;
    }
    let now = server.clock().now().as_second();
    let claims = Claims {
        aud: audiences.clone(),
        exp: now.saturating_add(seconds),
        iat: now,
        iss: server.accounts().issuer().to_owned(),
        jti: server.random().uid(),
        kubernetes,
        nbf: now,
        sub: user_name(namespace, call.name()),
    };
    let token = server.accounts().key.as_ref();
    let token = token
        .and_then(|key| claims.sign(key))
        .ok_or_else(|| ApiError::internal("failed to generate token: there is no key"))?;
    let lives = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    request["status"] = json!({
        "token": token,
        "expirationTimestamp": server.clock().after_seconds(lives),
    });
    Ok(Answer::value(request).with_code(StatusCode::CREATED))
}

/// Fills in what is not said.
fn fill(request: &mut Value) {
    request["kind"] = "TokenRequest".into();
    request["apiVersion"] = "authentication.k8s.io/v1".into();
    if !request["spec"].is_object() {
        request["spec"] = json!({});
    }
    if request["spec"]["expirationSeconds"].is_null() {
        request["spec"]["expirationSeconds"] = USUAL.into();
    }
    for part in ["audiences", "boundObjectRef"] {
        if request["spec"].get(part).is_none() {
            request["spec"][part] = Value::Null;
        }
    }
    request["status"] = json!({"token": "", "expirationTimestamp": null});
}

/// Notes who asked, as for any other object.
fn record(call: &Call<'_>, request: &mut Value) {
    let (manager, now) = (call.field_manager(), call.server.clock().now_seconds());
    let writer = Writer {
        manager: &manager,
        api_version: "authentication.k8s.io/v1",
        subresource: "token",
        now: Some(&now),
    };
    let ty = Type::Named("io.k8s.api.authentication.v1.TokenRequest".into());
    let untouched = defaults::zero(&ty);
    let managers =
        apply::record_update(&untouched, request, &ty, Managers::default(), &writer, &[]);
    set_meta(request, "managedFields", Some(managers.write()));
}

fn reference(object: &Stored) -> Reference {
    Reference {
        name: object.key.name().to_owned(),
        uid: object.uid.to_string(),
    }
}

/// Ties a token to the life of an object.
fn bind(call: &Call<'_>, to: &Value, kubernetes: &mut claims::Kubernetes) -> Result<()> {
    let text = |field: &str| to[field].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let Some(sort) = Bound::named(text("apiVersion"), kind) else {
        let version = text("apiVersion");
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        return Err(ApiError::bad_request(format!(
            "cannot bind token to object of type {group}/{version}, Kind={kind}"
        )));
    };
    let find = |sort: Bound, name: &str| sort.find(call.server, call.namespace(), name);
    let group = "";
    let found = find(sort, name).ok_or_else(|| {
        let kind = sort.plural();
        ApiError::not_found(Subject { group, kind }, name)
    })?;
    if sort == Bound::Pod {
        let pod = found.value();
        if pod["spec"]["serviceAccountName"] != call.name() {
            return Err(ApiError::bad_request(format!(
                "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                call.name()
            )));
        }
        if let Some(node) = pod["spec"]["nodeName"]
            .as_str()
            .filter(|node| !node.is_empty())
        {
            let unknown = Reference {
                name: node.to_owned(),
                ..Reference::default()
            };
            kubernetes.node =
                Some(find(Bound::Node, node).map_or(unknown, |node| reference(&node)));
        }
    }
    let uid = text("uid");
    if !uid.is_empty() && uid != &*found.uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(Subject { group, kind }, name, &why));
    }
    let bound = Some(reference(&found));
    match sort {
        Bound::Pod => kubernetes.pod = bound,
        Bound::Secret => kubernetes.secret = bound,
        Bound::Node | Bound::Account => kubernetes.node = bound,
    }
    Ok(())
}
