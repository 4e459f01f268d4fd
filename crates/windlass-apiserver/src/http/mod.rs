//! From bytes to a verb and back: path, query and headers read, the caller known, the answer encoded.

mod answer;
mod aside;
mod body;
mod certificate;
mod health;
mod metrics;
mod negotiate;
mod overload;
mod request;
mod serve;
mod stall;
mod unread;
pub(crate) mod warnings;
mod watch_socket;

pub(crate) use answer::Answer;
pub(crate) use aside::Aside;
pub use body::{Body, BodyError};
pub(crate) use metrics::Counts;
pub(crate) use negotiate::{
    Encoding, Expected, Shape, Wanted, decode_object, decode_yaml, media_type,
};
pub(crate) use overload::Room;
pub(crate) use request::{Query, parse, percent_decode};
pub use request::{ResourceRequest, Verb};
pub use serve::{Serving, TlsConfig};

use std::fmt::Display;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};

use metrics::Counted;

use crate::auth::{Action, Identity, Presented, ResourceAction, move_token, selected_name};
use crate::hooks::{ConnectionReset, Outcome, Reply, Verdict};
use crate::node::{self, Passed, Upgrade};
use crate::patch::PatchKind;
use crate::registry::resource::Resource;
use crate::server::{ApiServer, refused_by_hook};
use crate::status::{ApiError, Result};
use crate::store::{Key, recording};
use crate::{discovery, openapi, verbs};

/// The largest body that is read.
const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// What an object takes, more or less.
const USUAL_SIZE: usize = 1024;
/// How long a client may take to send it.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

impl ApiServer {
    /// Answers one request, from a client who presented itself like this.
    pub(crate) async fn handle<B>(
        &self,
        request: Request<B>,
        presented: &Presented,
        mut aside: Aside,
    ) -> Result<Response<Body>, ConnectionReset>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let wanted = Wanted::from_headers(request.headers());
        // Errors are told in JSON even to a client that asked for something else.
        let told_in = wanted
            .as_ref()
            .map_or(Encoding::Json, |wanted| wanted.encoding);
        let only_head = request.method() == Method::HEAD;
        let mut counted = None;
        let mut reply = Reply::Send;
        let answer = self
            .answer(
                request,
                presented,
                wanted,
                &mut counted,
                &mut aside,
                &mut reply,
            )
            .await;
        if reply == Reply::Lose {
            return Err(ConnectionReset);
        }
        let answer = answer.unwrap_or_else(|error| Answer::error(&error));
        let mut response = aside.now(|| answer.into_response(told_in));
        if let Some(counted) = counted {
            counted.answered(response.status());
            response.body_mut().count(&counted);
        }
        if only_head {
            return Ok(response.map(|_| Body::pieces([])));
        }
        Ok(response)
    }

    async fn answer<B>(
        &self,
        mut request: Request<B>,
        presented: &Presented,
        wanted: Option<Wanted>,
        counted: &mut Option<Counted>,
        aside: &mut Aside,
        reply: &mut Reply,
    ) -> Result<Answer>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if self.store().was_taken_back() {
            crate::server::restore::run(self);
        }
        let upgrade = Upgrade::of(&mut request);
        let (mut parts, body) = request.into_parts();
        let becomes_socket = watch_socket::is_asked_for(&parts.headers);
        if becomes_socket {
            move_token(&mut parts.headers)?;
        }
        let able = std::mem::replace(aside, Aside::never());
        let identity = self.authenticate(&parts.headers, presented)?;
        let Some(path) = percent_decode(parts.uri.path(), false) else {
            return Ok(Answer::text(StatusCode::BAD_REQUEST, "400 Bad Request"));
        };
        let path = path.as_str();
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let Some(asked) = parse(&parts.method, path, &query) else {
            let verb = parts.method.as_str().to_ascii_lowercase();
            let action = Action::Path { verb: &verb, path };
            let identity = self.impersonate(identity, &parts.headers, &action)?;
            self.authorize(&identity, &action)?;
            return if parts.method == Method::GET || !self.is_served(path) {
                let describes_all = path.starts_with("/openapi/");
                *aside = able.for_bytes(if describes_all { usize::MAX } else { 0 });
                aside.now(|| self.answer_path(path, &parts.headers, &query))
            } else {
                Err(ApiError::method_not_allowed())
            };
        };
        let known = self.registry().known();
        let found = known.find(&asked);
        *counted = found.as_deref().map(|resource| {
            let applies = PatchKind::is_apply(media_type(&parts.headers));
            Counts::begin(&asked, resource, !query.all("dryRun").is_empty(), applies)
        });
        let selected = selected_name(&asked, &query);
        let mut action = ResourceAction::of(&asked, selected.as_deref());
        if parts.method == Method::OPTIONS {
            // As in Kubernetes no verb is that of this method: who may do anything may do it.
            action.verb = "";
        }
        let action = Action::Resource(action);
        let identity = self.impersonate(identity, &parts.headers, &action)?;
        if let Err(refusal) = self.authorize(&identity, &action) {
            let outcome = Outcome::refused(refusal.code);
            *reply = self.after(&identity, &asked, outcome).await;
            return Err(refusal);
        }
        let Some(resource) = found else {
            return if crate::registry::Known::is_path(&asked.group) {
                Err(ApiError::resource_not_found())
            } else {
                Ok(Answer::no_such_path())
            };
        };
        let wanted = wanted.ok_or_else(|| {
            let watchable = matches!(asked.verb, Verb::List | Verb::Watch);
            Wanted::none_acceptable(&parts.headers, watchable)
        })?;
        if let Some(why) = asked.name.as_deref().and_then(crate::names::not_in_a_path) {
            let name = asked.name.as_deref().unwrap_or_default();
            let message = format!("Name parameter invalid: {name:?}: {why}");
            return Err(ApiError::bad_request(message));
        }
        if asked.subresource.as_deref() == Some(node::PROXY)
            && let Some(proxied) = resource.strategy.proxied()
        {
            let passed = Passed {
                proxied,
                parts: &parts,
                body: body.map_err(Into::into).boxed_unsync(),
                upgrade: &upgrade,
            };
            return self.pass_on(&identity, &asked, passed, reply).await;
        }
        // Nobody waits for a body that trickles: there is room for the request once it is here.
        let place = self.place_for_body(&identity);
        let Ok(place) = place else {
            return Ok(Answer::too_many_requests());
        };
        let body = read_body(body).await?;
        let Ok(_large) = self.room_for_large(&identity, body.len()).await else {
            return Ok(Answer::too_many_requests());
        };
        drop(place);
        let (Ok(_room), Ok(lasting)) = (
            self.make_room(&identity, &asked),
            self.place_to_last(&identity, &asked),
        ) else {
            return Ok(Answer::too_many_requests());
        };
        match self.before(&identity, &asked).await {
            Verdict::Pass => {}
            Verdict::Fail(code, message) => return Err(refused_by_hook(code, message)),
            Verdict::Reset => {
                *reply = Reply::Lose;
                return Err(ApiError::internal("the connection is reset"));
            }
        }
        *aside = able.for_bytes(body.len() + self.size_of_stored(&asked, &resource));
        let call = verbs::Call::new(
            self,
            &identity,
            &asked,
            resource,
            query,
            &parts.headers,
            body,
            wanted,
            upgrade,
        );
        let (result, changes) = {
            let run = pin!(self.carry_out(&call, *aside));
            if self.hooks().is_some() {
                let (result, recorded) = recording(run).await;
                (result, recorded.into_iter().map(Into::into).collect())
            } else {
                (run.await, Vec::new())
            }
        };
        let code = match &result {
            Ok(answer) => answer.code,
            Err(error) => error.code,
        };
        let outcome = Outcome {
            code,
            wrote: result.is_ok() && asked.verb.writes() && code.is_success(),
            changes,
            guarded: call.is_guarded(),
            applied: PatchKind::is_apply(media_type(&parts.headers)),
        };
        *reply = self.after(&identity, &asked, outcome).await;
        // A refused client is warned too.
        let mut answer = result.unwrap_or_else(|error| Answer::error(&error));
        let socket = (becomes_socket && asked.verb == Verb::Watch)
            .then(|| call.upgrade.take())
            .flatten();
        answer.warnings.extend(call.into_warnings());
        let answer = answer.lasting(lasting);
        Ok(match socket {
            Some(connection) => {
                answer.with_stream(|body| watch_socket::carry(body, connection, &parts.headers))
            }
            None => answer,
        })
    }

    /// Has something in the cluster answer. Its body is not read here: it may be of any length.
    async fn pass_on(
        &self,
        who: &Identity,
        asked: &ResourceRequest,
        passed: Passed<'_>,
        reply: &mut Reply,
    ) -> Result<Answer> {
        let Ok(lasting) = self.place_to_last(who, asked) else {
            return Ok(Answer::too_many_requests());
        };
        match self.before(who, asked).await {
            Verdict::Pass => {}
            Verdict::Fail(code, message) => return Err(refused_by_hook(code, message)),
            Verdict::Reset => {
                *reply = Reply::Lose;
                return Err(ApiError::internal("the connection is reset"));
            }
        }
        let passed = node::proxy(self, asked, passed).await;
        let code = passed
            .as_ref()
            .map_or_else(|error| error.code, |answer| answer.code);
        *reply = self.after(who, asked, Outcome::refused(code)).await;
        passed.map(|answer| answer.lasting(lasting))
    }

    /// Does what is asked; a write is answered once it is durable.
    async fn carry_out(&self, call: &verbs::Call<'_>, aside: Aside) -> Result<Answer> {
        let run = pin!(verbs::run(call));
        if call.request.verb.writes() {
            let written = self.store().durably(aside.run(run)).await;
            written.unwrap_or_else(|lost| Err(ApiError::without_reason(&*lost.0)))
        } else {
            aside.run(run).await
        }
    }

    /// About how many bytes are stored of what a request is about.
    fn size_of_stored(&self, asked: &ResourceRequest, resource: &Resource) -> usize {
        let store = self.store();
        match (&asked.name, asked.verb) {
            (Some(name), _) => {
                let namespace = asked.namespace.as_deref().unwrap_or_default();
                let found = store.get(&resource.table, &Key::new(namespace, name));
                found.map_or(0, |found| found.json.len())
            }
            (None, Verb::List | Verb::DeleteCollection) => {
                store.count(&resource.table).saturating_mul(USUAL_SIZE)
            }
            (None, _) => 0,
        }
    }

    /// Whether a path is one that can be read and nothing else: discovery, or a resource that was
    /// asked for in a way nobody knows.
    fn is_served(&self, path: &str) -> bool {
        let known = self.registry().known();
        if let Some(asked) = parse(&Method::GET, path, &Query::default()) {
            return known.find(&asked).is_some();
        }
        let parts = request::segments(path);
        match parts.as_slice() {
            ["version" | "api" | "apis"] => true,
            ["api", version] => known.of_version("", version).is_some(),
            ["apis", group, version] => known.of_version(group, version).is_some(),
            _ => false,
        }
    }

    /// Paths that are not resources.
    fn answer_path(&self, path: &str, headers: &http::HeaderMap, query: &Query) -> Result<Answer> {
        let known = self.registry().known();
        let parts = request::segments(path);
        match parts.as_slice() {
            [whole @ ("healthz" | "livez" | "readyz"), check @ ..] if !path.ends_with('/') => {
                Ok(health::answer(self, whole, check, query))
            }
            [".well-known", "openid-configuration"] => {
                Ok(Answer::value(self.accounts().configuration(&self.host())))
            }
            ["openid", "v1", "jwks"] => {
                let keys = self.accounts().public_keys().to_string();
                Ok(Answer::bytes("application/jwk-set+json", keys.into()))
            }
            ["version"] => Ok(Answer::value(discovery::version())),
            ["metrics"] => Ok(Answer::bytes(
                metrics::MEDIA_TYPE,
                self.metrics_text().into(),
            )),
            ["api"] => Ok(discovery::core_versions(&known, headers)),
            ["apis"] => Ok(discovery::groups(&known, headers)),
            ["api", version] => discovery::resources(&known, "", version),
            ["apis", group] => Ok(discovery::group(&known, group)),
            ["apis", group, version] => discovery::resources(&known, group, version),
            ["openapi", "v2"] => Ok(self.openapi().answer(&known, headers)),
            ["openapi", "v3"] => Ok(Answer::value(openapi::index(&known))),
            ["openapi", "v3", "api", version] => self.openapi().of_version(&known, "", version),
            ["openapi", "v3", "apis", group, version] => {
                self.openapi().of_version(&known, group, version)
            }
            [""] => Ok(Answer::value(discovery::paths(&known))),
            _ => Ok(Answer::no_such_path()),
        }
    }
}

async fn read_body<B>(body: B) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let read = Limited::new(body, BODY_LIMIT).collect();
    let Ok(read) = tokio::time::timeout(BODY_TIMEOUT, read).await else {
        return Err(ApiError::timeout(
            "request did not complete within the allotted timeout",
        ));
    };
    match read {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {BODY_LIMIT}"),
        )),
        Err(error) => Err(broken_body(&error)),
    }
}

fn broken_body(error: &dyn Display) -> ApiError {
    ApiError::bad_request(format!(
        "the body of the request could not be read: {error}"
    ))
}
