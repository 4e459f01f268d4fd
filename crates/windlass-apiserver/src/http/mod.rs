//! From bytes to a verb and back: path, query and headers read, the caller known, the answer encoded.

mod answer;
mod body;
mod negotiate;
mod request;
mod serve;

pub(crate) use answer::Answer;
pub use body::{Body, BodyError};
pub(crate) use negotiate::{Encoding, Shape, Wanted, decode_object, decode_yaml, media_type};
pub(crate) use request::{Query, parse, percent_decode};
pub use request::{ResourceRequest, Verb};
pub use serve::{Serving, TlsConfig};

use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};

use crate::auth::{Action, Identity, ResourceAction, selected_name};
use crate::server::{ApiServer, Outcome};
use crate::status::{ApiError, Result};
use crate::{discovery, openapi, verbs};

/// The largest body that is read.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

impl ApiServer {
    /// Answers one request. `connection` is who the connection belongs to, known from its certificate.
    pub(crate) async fn handle<B>(
        &self,
        request: Request<B>,
        connection: Option<&Arc<Identity>>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let wanted = Wanted::from_headers(request.headers());
        // Errors are told in JSON even to a client that asked for something else.
        let told_in = wanted
            .as_ref()
            .map_or(Encoding::Json, |wanted| wanted.encoding);
        self.answer(request, connection, wanted)
            .await
            .unwrap_or_else(|error| Answer::error(&error))
            .into_response(told_in)
    }

    async fn answer<B>(
        &self,
        request: Request<B>,
        connection: Option<&Arc<Identity>>,
        wanted: Result<Wanted>,
    ) -> Result<Answer>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let identity = self.authenticate(&parts.headers, connection)?;
        let path = parts.uri.path();
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let Some(asked) = parse(&parts.method, path, &query) else {
            let verb = parts.method.as_str().to_ascii_lowercase();
            let action = Action::Path { verb: &verb, path };
            let identity = self.impersonate(identity, &parts.headers, &action)?;
            self.authorize(&identity, &action)?;
            return self.answer_path(path, &parts.headers);
        };
        let selected = selected_name(&asked, &query);
        let action = Action::Resource(ResourceAction::of(&asked, selected.as_deref()));
        let identity = self.impersonate(identity, &parts.headers, &action)?;
        if let Err(refusal) = self.authorize(&identity, &action) {
            let outcome = Outcome {
                code: refusal.code,
                wrote: false,
            };
            self.after(&identity, &asked, outcome).await;
            return Err(refusal);
        }
        let known = self.registry().known();
        let Some(resource) = known.find(&asked) else {
            return if known.is_path(&asked.group, &asked.version) {
                Err(ApiError::resource_not_found())
            } else {
                Ok(Answer::no_such_path())
            };
        };
        let wanted = wanted?;
        let body = read_body(body).await?;
        if let Some(refusal) = self.before(&identity, &asked).await {
            return Err(refusal);
        }
        let call = verbs::Call::new(
            self,
            &identity,
            &asked,
            resource,
            query,
            &parts.headers,
            body,
            wanted,
        )?;
        let result = call.run().await;
        let warnings = call.take_warnings();
        let outcome = match &result {
            Ok(answer) => Outcome {
                code: answer.code,
                wrote: asked.verb.writes(),
            },
            Err(error) => Outcome {
                code: error.code,
                wrote: false,
            },
        };
        self.after(&identity, &asked, outcome).await;
        if warnings.is_empty() {
            return result;
        }
        // Warnings are told whatever comes of the request.
        let mut answer = result.unwrap_or_else(|error| Answer::error(&error));
        answer.warnings.extend(warnings);
        Ok(answer)
    }

    /// Paths that are not resources.
    fn answer_path(&self, path: &str, headers: &http::HeaderMap) -> Result<Answer> {
        let known = self.registry().known();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts.as_slice() {
            ["healthz" | "livez" | "readyz"] => Ok(Answer::text(StatusCode::OK, "ok")),
            ["version"] => Ok(Answer::value(discovery::version())),
            ["api"] => Ok(discovery::core_versions(&known, headers)),
            ["apis"] => Ok(discovery::groups(&known, headers)),
            ["api", version] => discovery::resources(&known, "", version),
            ["apis", group] => Ok(discovery::group(&known, group)),
            ["apis", group, version] => discovery::resources(&known, group, version),
            ["openapi", "v3"] => Ok(Answer::value(openapi::index(&known))),
            ["openapi", "v3", "api", version] => openapi::document(&known, "", version),
            ["openapi", "v3", "apis", group, version] => openapi::document(&known, group, version),
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
    match Limited::new(body, BODY_LIMIT).collect().await {
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
