//! [`Writes`]: which reconcile wrote which version of an object, so that the reconcile that this
//! version triggers links to it.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use opentelemetry::trace::{SpanContext, TraceContextExt};
use serde_json::Value;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::{Key, kind::KindInfo, queue::Causes};

/// How many writes are remembered: a watch shows a write within milliseconds as a rule.
const REMEMBERED: usize = 4096;
/// How many versions one cause keeps, and so how many links it can have.
const VERSIONS: usize = 8;

/// The versions of an object whose changes woke a key. It is no part of what a cause is: two changes
/// of one object are one cause.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin(Vec<u64>);

impl Origin {
    pub(crate) fn of(version: u64) -> Self {
        Self(vec![version])
    }

    /// Adds the versions of the same cause.
    pub(crate) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
        let surplus = self.0.len().saturating_sub(VERSIONS);
        self.0.drain(..surplus);
    }
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Origin {}

/// A version of an object, by kind.
type Version = (String, Key, u64);

/// The last writes, and the span of each.
#[derive(Default)]
pub(crate) struct Writes(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    by_version: BTreeMap<Version, SpanContext>,
    /// The oldest first.
    order: VecDeque<Version>,
}

impl Writes {
    /// The span that is current has written an object; `answer` is what the server answered.
    pub(crate) fn wrote(&self, kind: &KindInfo, key: &Key, answer: &Value) {
        let context = Span::current().context().span().span_context().clone();
        if !context.is_valid() {
            return;
        }
        let version = answer.pointer("/metadata/resourceVersion");
        let version = version.and_then(Value::as_str).map(str::parse);
        let Some(Ok(version)) = version else { return };
        let version = (kind.to_string(), key.clone(), version);
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A write that changes nothing is answered with the version of an earlier one.
        if inner.by_version.contains_key(&version) {
            return;
        }
        inner.order.push_back(version.clone());
        inner.by_version.insert(version, context);
        if inner.order.len() > REMEMBERED
            && let Some(oldest) = inner.order.pop_front()
        {
            inner.by_version.remove(&oldest);
        }
    }

    /// Links a reconcile to those that wrote what caused it.
    pub(crate) fn link(&self, span: &Span, causes: &Causes) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.by_version.is_empty() {
            return;
        }
        for (kind, key, origin) in causes.changes() {
            for version in &origin.0 {
                let version = (kind.to_owned(), key.clone(), *version);
                if let Some(context) = inner.by_version.get(&version) {
                    span.add_link(context.clone());
                }
            }
        }
    }
}
