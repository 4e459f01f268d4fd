//! Which verb, on what, is done by which module.

use super::delete::{self, collection};
use super::{Call, binding, create, eviction, get, list, patch, scale, update, watch};
use crate::auth::{account, review};
use crate::http::{Answer, Verb, media_type};
use crate::node;
use crate::patch::PatchKind;
use crate::status::{ApiError, Result};

/// Does what is asked.
pub(crate) async fn run(call: &Call<'_>) -> Result<Answer> {
    let custom = call.resource.custom.as_ref();
    call.warn(custom.and_then(|custom| custom.deprecation.clone()));
    // A patch of no known kind is turned away before anybody looks at the resource.
    let patched = call.request.verb != Verb::Patch
        || PatchKind::from_media_type(media_type(call.headers), true).is_ok();
    let below = call.request.subresource.as_deref();
    let named = call.request.name.is_some();
    let routed = patched
        && match call.request.verb {
            Verb::Create => !named || below.is_some(),
            Verb::Update | Verb::Patch => named,
            _ => true,
        }
        && below.is_none_or(|name| call.resource.subresource(name).is_some());
    if routed && let Some(warning) = call.resource.strategy.request_warning() {
        call.warn([warning.to_owned()]);
    }
    if let Some(refused) = &call.refused {
        return Err(refused.clone());
    }
    if let Some(refusal) = refuse_empty_segments(call) {
        return refusal;
    }
    if let Some(name) = &call.request.subresource {
        return run_subresource(call, name).await;
    }
    if call.resource.strategy.binds_pods() {
        return match call.request.verb {
            Verb::Create if !named => binding::bind_named(call).await,
            _ => Err(ApiError::method_not_allowed()),
        };
    }
    if !call.resource.is_stored() {
        return review::run(call);
    }
    if call.resource.namespaced
        && call.request.namespace.is_none()
        && (named || call.request.verb.writes())
    {
        return Err(ApiError::method_not_allowed());
    }
    match call.request.verb {
        Verb::Get => get::run(call).await,
        Verb::List => list::run(call).await,
        Verb::Watch => watch::run(call),
        Verb::Create if named && !call.resource.is_custom() => Err(ApiError::method_not_allowed()),
        Verb::Create => create::run(call).await,
        Verb::Update if named => update::run(call, "").await,
        Verb::Patch if named => patch::run(call, "").await,
        Verb::Update | Verb::Patch if call.resource.is_custom() => {
            Err(ApiError::bad_request("name must be provided"))
        }
        Verb::Delete => delete::run(call).await,
        Verb::DeleteCollection
            if call
                .resource
                .verbs
                .iter()
                .any(|verb| verb == "deletecollection") =>
        {
            collection::run(call).await
        }
        Verb::Update | Verb::Patch | Verb::DeleteCollection => Err(ApiError::method_not_allowed()),
    }
}

/// Refuses a path with nothing between two slashes where a name or a namespace must be: an
/// object would come to be in no namespace, where nobody looks for it.
fn refuse_empty_segments(call: &Call<'_>) -> Option<Result<Answer>> {
    if call.request.name.as_deref() == Some("") {
        return Some(Err(ApiError::bad_request("name must be provided")));
    }
    if !call.resource.namespaced || call.request.namespace.as_deref() != Some("") {
        return None;
    }
    if call.resource.is_custom() {
        return Some(Ok(Answer::no_such_path()));
    }
    // A new object is refused by its metadata, and a collection is that of all namespaces.
    let named = call.request.name.is_some();
    named.then(|| Err(ApiError::bad_request("Namespace parameter required.")))
}

async fn run_subresource(call: &Call<'_>, name: &str) -> Result<Answer> {
    let Some(subresource) = call.resource.subresource(name) else {
        return Err(if call.resource.is_custom() {
            call.not_found()
        } else {
            ApiError::resource_not_found()
        });
    };
    let verb = call.request.verb.as_str();
    if !subresource.verbs.iter().any(|known| known == verb) {
        return Err(if call.resource.is_custom() {
            ApiError::not_supported(call.resource.subject(), verb)
        } else {
            ApiError::method_not_allowed()
        });
    }
    match (name, call.request.verb) {
        ("log", Verb::Get) => node::logs(call).await,
        ("exec" | "attach" | "portforward", Verb::Get | Verb::Create) => {
            node::connect(call, name).await
        }
        ("binding", Verb::Create) => binding::bind(call).await,
        ("eviction", Verb::Create) => eviction::run(call).await,
        ("token", Verb::Create) => account::create_token(call).await,
        ("scale", Verb::Get) => scale::get(call).await,
        ("scale", Verb::Update) => scale::update(call).await,
        ("scale", Verb::Patch) => scale::patch(call).await,
        (_, Verb::Get) => get::run(call).await,
        (_, Verb::Update) => update::run(call, name).await,
        (_, Verb::Patch) => patch::run(call, name).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}
