//! An answer before it is encoded.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WARNING};
use http::{Response, StatusCode};
use serde_json::Value;

use super::overload::Place;
use super::{Body, Encoding};
use crate::status::ApiError;
use crate::steps::steps;

/// What is answered.
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) content: Content,
    /// Sentences for `Warning` headers.
    pub(crate) warnings: Vec<String>,
    /// The place of an endless body among those of its user.
    place: Option<Place>,
}

/// The body of an answer.
pub(crate) enum Content {
    /// A tree, to be encoded.
    Value(Value),
    /// An object as it is stored, which is JSON.
    Stored(Bytes),
    /// JSON that is encoded already, in pieces.
    Json(Vec<Bytes>),
    /// What has a media type of its own.
    Bytes(&'static str, Bytes),
    Text(&'static str),
    /// Nothing but these headers: the connection becomes something else, or there is nothing to say.
    None(Vec<(HeaderName, HeaderValue)>),
    /// What something else has answered.
    PassedOn(Box<Response<Body>>),
    /// An endless body.
    Stream {
        content_type: &'static str,
        body: Body,
    },
}

impl Answer {
    fn new(code: StatusCode, content: Content) -> Self {
        Self {
            code,
            content,
            warnings: Vec::new(),
            place: None,
        }
    }

    /// Holds a place for as long as the answer lasts, if it is one that does.
    pub(super) fn lasting(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    pub(crate) fn value(value: Value) -> Self {
        Self::new(StatusCode::OK, Content::Value(value))
    }

    pub(crate) fn json(pieces: Vec<Bytes>) -> Self {
        Self::new(StatusCode::OK, Content::Json(pieces))
    }

    pub(crate) fn stored(json: Bytes) -> Self {
        Self::new(StatusCode::OK, Content::Stored(json))
    }

    pub(crate) fn bytes(media_type: &'static str, bytes: Bytes) -> Self {
        Self::new(StatusCode::OK, Content::Bytes(media_type, bytes))
    }

    pub(crate) fn text(code: StatusCode, text: &'static str) -> Self {
        Self::new(code, Content::Text(text))
    }

    /// Nothing is there, not even a resource that could be missing.
    pub(crate) fn no_such_path() -> Self {
        Self::text(StatusCode::NOT_FOUND, "404 page not found\n")
    }

    /// There is no room for another request.
    pub(crate) fn too_many_requests() -> Self {
        Self::text(
            StatusCode::TOO_MANY_REQUESTS,
            "Too many requests, please try again later.\n",
        )
    }

    /// After how many seconds the client should come again, if it should.
    fn retry_after(&self) -> Option<u64> {
        match &self.content {
            Content::Value(status) if !self.code.is_success() => {
                status["details"]["retryAfterSeconds"].as_u64()
            }
            Content::Text(_) if self.code == StatusCode::TOO_MANY_REQUESTS => Some(1),
            _ => None,
        }
    }

    /// An answer of nothing at all.
    pub(crate) fn empty(code: StatusCode) -> Self {
        Self::headers(code, Vec::new())
    }

    /// Nothing but headers.
    pub(crate) fn headers(code: StatusCode, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        Self::new(code, Content::None(headers))
    }

    /// What something else has answered, as it is.
    pub(crate) fn passed_on(response: Response<Body>) -> Self {
        Self::new(response.status(), Content::PassedOn(Box::new(response)))
    }

    /// From here on the connection is no longer HTTP.
    pub(crate) fn switching(headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        Self::headers(StatusCode::SWITCHING_PROTOCOLS, headers)
    }

    pub(crate) fn stream(content_type: &'static str, body: Body) -> Self {
        Self::new(StatusCode::OK, Content::Stream { content_type, body })
    }

    /// What `carry` makes of an endless body, which keeps the place that it holds; other answers are
    /// left as they are.
    pub(super) fn with_stream(self, carry: impl FnOnce(Body) -> Self) -> Self {
        match self.content {
            Content::Stream { body, .. } => carry(body.holding(self.place)),
            _ => self,
        }
    }

    pub(crate) fn error(error: &ApiError) -> Self {
        Self::new(error.code, Content::Value(error.to_status()))
    }

    pub(crate) fn with_code(mut self, code: StatusCode) -> Self {
        self.code = code;
        self
    }

    pub(crate) fn into_response(self, encoding: Encoding) -> Response<Body> {
        let retry_after = self.retry_after();
        if let Content::None(headers) = self.content {
            let mut response = Response::new(Body::pieces([]));
            *response.status_mut() = self.code;
            response.headers_mut().extend(headers);
            return response;
        }
        if let Content::PassedOn(response) = self.content {
            return response.map(|body| body.holding(self.place));
        }
        let (content_type, body) = match self.content {
            Content::Value(value) => (
                encoding.content_type(),
                Body::whole(encode(&value, encoding)),
            ),
            Content::Json(pieces) if encoding == Encoding::Json => {
                (encoding.content_type(), Body::pieces(pieces))
            }
            Content::Stored(json) if encoding == Encoding::Json => {
                (encoding.content_type(), Body::whole(json))
            }
            Content::Json(pieces) => (
                encoding.content_type(),
                Body::whole(encoded_anew(&pieces.concat(), encoding)),
            ),
            Content::Stored(json) => (
                encoding.content_type(),
                Body::whole(encoded_anew(&json, encoding)),
            ),
            Content::Bytes(media_type, bytes) => (media_type, Body::whole(bytes)),
            Content::None(_) | Content::PassedOn(_) => ("", Body::pieces([])),
            Content::Text(text) => ("text/plain; charset=utf-8", Body::whole(text)),
            Content::Stream { content_type, body } => (content_type, body.holding(self.place)),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        for warning in &self.warnings {
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            // Text that is not ASCII goes as its bytes; one with control characters does not go.
            if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
                headers.append(WARNING, value);
            }
        }
        response
    }
}

/// JSON in another form.
fn encoded_anew(json: &[u8], encoding: Encoding) -> Bytes {
    let value: Value = serde_json::from_slice(json).unwrap_or_default();
    encode(&value, encoding)
}

fn encode(value: &Value, encoding: Encoding) -> Bytes {
    let bytes: Bytes = match encoding {
        Encoding::Json => serde_json::to_vec(value).unwrap_or_default().into(),
        Encoding::Yaml => serde_saphyr::to_string(value).unwrap_or_default().into(),
    };
    steps(bytes.len());
    bytes
}
