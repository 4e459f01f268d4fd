//! [`HookCaller`]: a hook that is ready to be called.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    kinds::HookVersion,
    transport::{Answer, Call, Target, Transport},
};

/// How long an answer is kept by its `ETag` if nothing else is said.
pub(super) const KEPT: Duration = Duration::from_mins(5);

/// A hook that is ready to be called.
pub(super) struct HookCaller {
    /// `sync`, `finalize` or `customize`.
    pub(super) name: &'static str,
    pub(super) version: HookVersion,
    pub(super) target: Target,
    pub(super) headers: Vec<(String, String)>,
    pub(super) timeout: Duration,
    /// Whether unknown fields of an answer are an error.
    pub(super) strict: bool,
    pub(super) etags: Option<Etags>,
    pub(super) transport: Arc<dyn Transport>,
}

/// What a hook said.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    Answer(Value),
    /// Nothing, and to be asked again after this time.
    Later(Duration),
}

/// Answers by the object they are about, with their tags.
#[derive(Default)]
pub(super) struct Etags {
    pub(super) kept: Duration,
    answers: Mutex<BTreeMap<String, Tagged>>,
}

#[derive(Clone)]
struct Tagged {
    tag: String,
    body: Vec<u8>,
    until: Instant,
}

impl Etags {
    pub(super) fn new(kept: Duration) -> Self {
        Self {
            kept,
            answers: Mutex::default(),
        }
    }

    fn get(&self, about: &str) -> Option<Tagged> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        answers.retain(|_, tagged| tagged.until > now);
        answers.get(about).cloned()
    }

    fn keep(&self, about: &str, tag: String, body: Vec<u8>) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + self.kept;
        answers.insert(about.to_owned(), Tagged { tag, body, until });
    }
}

impl HookCaller {
    /// Calls the hook about an object. An error says what went wrong.
    pub(super) async fn call(
        &self,
        about: &str,
        request: &Value,
        fields: &[&str],
        now: Timestamp,
    ) -> Result<Said, String> {
        let failed = |why: String| format!("{} hook failed: {why}", self.name);
        let body = serde_json::to_vec(request).map_err(|error| failed(error.to_string()))?;
        let known = self.etags.as_ref().and_then(|etags| etags.get(about));
        let mut headers = self.headers.clone();
        if let Some(known) = &known {
            headers.push(("If-None-Match".to_owned(), known.tag.clone()));
        }
        let call = Call {
            target: self.target.clone(),
            headers,
            body,
            timeout: self.timeout,
        };
        let answer = self.transport.call(&call).await.map_err(failed)?;
        let body = match (answer.status, known) {
            (200, _) => {
                if let (Some(etags), Some(tag)) = (&self.etags, answer.headers.get("etag")) {
                    etags.keep(about, tag.clone(), answer.body.clone());
                }
                answer.body
            }
            (304 | 412, Some(known)) => known.body,
            (429, _) => return Ok(Said::Later(retry_after(&answer, now))),
            (status, _) => {
                let said = String::from_utf8_lossy(&answer.body);
                let said: String = said.trim().chars().take(500).collect();
                return Err(failed(format!("status {status}: {said}")));
            }
        };
        let value: Value = serde_json::from_slice(&body)
            .map_err(|error| failed(format!("the answer is not JSON: {error}")))?;
        let Some(answered) = value.as_object() else {
            return Err(failed("the answer is no object".to_owned()));
        };
        if self.strict
            && let Some(unknown) = answered.keys().find(|key| !fields.contains(&key.as_str()))
        {
            let known = fields.join(", ");
            return Err(failed(format!(
                "the answer has the unknown field {unknown} (known: {known})"
            )));
        }
        Ok(Said::Answer(value))
    }
}

/// When one that is asked too much wants to be asked again.
fn retry_after(answer: &Answer, now: Timestamp) -> Duration {
    let text = answer
        .headers
        .get("retry-after")
        .map_or("", |text| text.trim());
    if let Ok(seconds) = text.parse::<u64>() {
        return Duration::from_secs(seconds.clamp(1, 86_400));
    }
    let at = jiff::fmt::rfc2822::parse(text).map(|at| at.timestamp());
    let wait = at.ok().map(|at| at.duration_since(now));
    let wait = wait.and_then(|wait| Duration::try_from(wait).ok());
    wait.unwrap_or_default().max(Duration::from_secs(1))
}
