//! What goes wrong, in the form clients parse: `metav1.Status` with code, reason and details.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::findings::Findings;
pub(crate) use windlass_apimachinery::field::{self, Cause};

/// Which resource an error speaks of: `group` is empty for core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) group: &'a str,
    /// The plural for most errors, the Kind for Invalid.
    pub(crate) kind: &'a str,
}

impl Subject<'_> {
    /// `deployments.apps`, or `pods` in the core group.
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.kind.to_owned()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }
}

/// An answer that is not a success.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiError {
    pub(crate) code: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Value>,
    /// Where a list that broke off can go on.
    pub(crate) continuation: Option<String>,
    /// The whole body, where somebody else has written it.
    body: Option<Box<Value>>,
}

/// Shorthand for handlers.
pub(crate) type Result<T, E = ApiError> = std::result::Result<T, E>;

impl ApiError {
    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continuation: None,
            body: None,
        }
    }

    /// An answer that somebody else has written, such as a webhook's denial.
    pub(crate) fn told(code: StatusCode, message: String, body: Value) -> Self {
        Self {
            body: Some(Box::new(body)),
            ..Self::new(code, "", message)
        }
    }

    fn about(mut self, subject: Subject<'_>, name: &str) -> Self {
        self.details = Some(details(subject, name));
        self
    }

    pub(crate) fn not_found(subject: Subject<'_>, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", subject.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(subject, name)
    }

    /// The path names no resource this server has.
    pub(crate) fn resource_not_found() -> Self {
        let mut error = Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        );
        error.details = Some(json!({}));
        error
    }

    pub(crate) fn already_exists(subject: Subject<'_>, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", subject.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(subject, name)
    }

    pub(crate) fn conflict(subject: Subject<'_>, name: &str, detail: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {detail}",
            subject.qualified()
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(subject, name)
    }

    /// The optimistic lock failed.
    pub(crate) fn modified(subject: Subject<'_>, name: &str) -> Self {
        Self::conflict(
            subject,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn invalid(subject: Subject<'_>, name: &str, causes: &[Cause]) -> Self {
        // A sentence is said once, however many checks came to it.
        let mut sentences = Findings::bounded();
        // Causes are many where a client wants that: they are reported up to a bound.
        let mut reported = 0;
        for cause in causes {
            if sentences.is_full() {
                break;
            }
            reported += 1;
            sentences.add(|| format!("{}: {}", cause.field, cause.message));
        }
        let (causes, sentences) = (&causes[..reported], sentences.into_texts());
        let all = match sentences.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {all}", subject.qualified());
        let mut error =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(subject, name);
        error.set_causes(
            causes
                .iter()
                .map(|c| json!({"reason": c.reason, "message": c.message, "field": c.field}))
                .collect(),
        );
        error
    }

    pub(crate) fn set_causes(&mut self, causes: Vec<Value>) {
        if let Some(details) = self
            .details
            .get_or_insert_with(|| json!({}))
            .as_object_mut()
        {
            details.insert("causes".into(), Value::Array(causes));
        }
    }

    pub(crate) fn forbidden(subject: Subject<'_>, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", subject.qualified())
        } else {
            format!("{} \"{name}\" is forbidden: {why}", subject.qualified())
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(subject, name)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        let mut error = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        error.details = Some(json!({}));
        error
    }

    /// A custom resource cannot be treated like this.
    pub(crate) fn not_supported(subject: Subject<'_>, verb: &str) -> Self {
        let kind = subject.qualified();
        let message = format!("{verb} is not supported on resources of kind \"{kind}\"");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(subject, "")
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    /// A client, or what it waited for, was too slow.
    pub(crate) fn timeout(what: &str) -> Self {
        let mut error = Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            "Timeout",
            format!("Timeout: {what}"),
        );
        error.details = Some(json!({}));
        error
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// Something went wrong inside, told as the one cause as well.
    pub(crate) fn internal_because(why: &str) -> Self {
        let mut error = Self::internal(format!("Internal error occurred: {why}"));
        error.set_causes(vec![json!({"message": why})]);
        error
    }

    /// Something went wrong that Kubernetes has no reason for: a 500 with a message alone.
    pub(crate) fn without_reason(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// The body a client gets.
    pub(crate) fn to_status(&self) -> Value {
        if let Some(body) = &self.body {
            return body.as_ref().clone();
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code.as_u16(),
        });
        if let Some(token) = &self.continuation {
            status["metadata"]["continue"] = token.as_str().into();
        }
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

fn details(subject: Subject<'_>, name: &str) -> Value {
    let mut details = Map::new();
    if !name.is_empty() {
        details.insert("name".into(), name.into());
    }
    if !subject.group.is_empty() {
        details.insert("group".into(), subject.group.into());
    }
    if !subject.kind.is_empty() {
        details.insert("kind".into(), subject.kind.into());
    }
    Value::Object(details)
}

/// What a DELETE of most kinds answers.
pub(crate) fn success(subject: Subject<'_>, name: &str, uid: &str) -> Value {
    let mut details = details(subject, name);
    details["uid"] = uid.into();
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
