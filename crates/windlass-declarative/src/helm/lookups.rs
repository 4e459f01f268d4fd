//! `lookup` in templates: what a chart asks for is watched, so that it renders again when that
//! changes.
//!
//! Templates cannot wait. What a chart asks for and was not read yet is nothing at first, and
//! remembered; it is read then, and the chart rendered again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use windlass::handle::Watches;
use windlass::kind::{Key, KindInfo};
use windlass::watch::{Scope, Select};
use windlass::{Error, Result};
use windlass_charts::Lookup;

use crate::RendererContext;

/// What a chart asks for: API version, kind, namespace and name, as `lookup` has them.
type Question = (String, String, String, String);

/// What was read for a chart.
#[derive(Debug, Default)]
pub(super) struct Seen {
    answers: BTreeMap<Question, std::result::Result<Option<Value>, String>>,
    missing: Mutex<BTreeSet<Question>>,
}

impl Clone for Seen {
    fn clone(&self) -> Self {
        Self {
            answers: self.answers.clone(),
            missing: Mutex::default(),
        }
    }
}

impl Seen {
    /// What was asked for and not read yet.
    pub(super) fn missing(&self) -> BTreeSet<Question> {
        self.missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Lookup for Seen {
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> std::result::Result<Option<Value>, String> {
        let question = (
            api_version.to_owned(),
            kind.to_owned(),
            namespace.to_owned(),
            name.to_owned(),
        );
        if let Some(answer) = self.answers.get(&question) {
            return answer.clone();
        }
        self.missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(question);
        Ok(None)
    }
}

/// Reads what charts look up.
pub(super) struct Lookups(Watches);

impl Lookups {
    pub(super) fn new(watches: Watches) -> Self {
        Self(watches)
    }

    /// Reads what is missing. Whether there was anything.
    pub(super) async fn complete(
        &self,
        ctx: &RendererContext,
        seen: &mut Seen,
        missing: &BTreeSet<Question>,
    ) -> Result<bool> {
        for question in missing {
            let answer = self.answer(ctx, question).await?;
            seen.answers.insert(question.clone(), answer);
        }
        Ok(!missing.is_empty())
    }

    async fn answer(
        &self,
        ctx: &RendererContext,
        (api_version, kind, namespace, name): &Question,
    ) -> Result<std::result::Result<Option<Value>, String>> {
        let info = match self.0.kind(ctx, api_version, kind).await {
            Ok(info) => info,
            Err(error) if error.is_not_found() || error.to_string().contains("does not serve") => {
                let what = format!(
                    "unable to get apiresource from unstructured: {api_version}, Kind={kind}: {error}"
                );
                return Ok(Err(what));
            }
            Err(error) => return Err(error),
        };
        let reads = self
            .0
            .start(ctx, &info, &scope(&info, namespace, name))
            .await?;
        if name.is_empty() {
            let select = if namespace.is_empty() || !info.namespaced {
                Select::all_namespaces()
            } else {
                Select::own_namespace().in_namespace(namespace.as_str())
            };
            let mut items = Vec::new();
            for object in reads.list(ctx, select).await? {
                items.push(encoded(&info, &object)?);
            }
            let list = json!({
                "apiVersion": api_version,
                "kind": format!("{kind}List"),
                "metadata": {},
                "items": items,
            });
            return Ok(Ok(Some(list)));
        }
        let key = if info.namespaced {
            Key::namespaced(namespace.as_str(), name.as_str())
        } else {
            Key::cluster(name.as_str())
        };
        let found = reads.get(ctx, &key).await?;
        Ok(Ok(found
            .map(|object| encoded(&info, &object))
            .transpose()?))
    }
}

/// What is watched for a question.
fn scope(kind: &KindInfo, namespace: &str, name: &str) -> Scope {
    let mut scope = Scope::all();
    if kind.namespaced && !namespace.is_empty() {
        scope = scope.namespace(namespace);
    }
    if !name.is_empty() {
        scope = scope.field("metadata.name", name);
    }
    scope
}

fn encoded(kind: &KindInfo, object: &kube::core::DynamicObject) -> Result<Value> {
    let mut value = serde_json::to_value(object).map_err(Error::other)?;
    value["apiVersion"] = json!(kind.api_version());
    value["kind"] = json!(kind.kind);
    Ok(value)
}
