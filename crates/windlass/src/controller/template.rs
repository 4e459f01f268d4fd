//! [`Template`]: dependents as plain YAML, with values of the object in it.
//!
//! The text is read once, when the operator is declared: its kinds are the operator's rights, like
//! those of any other dependent. `{{ spec.image }}` in a string stands for that field of the object;
//! a string that is nothing else becomes the value itself, be it a number or a map. Values are put
//! in after the YAML has been read, so none of them can change what the document is.
//!
//! ```
//! use windlass::{Controller, Operator, controller::{Template}};
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! # #[derive(kube::CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! # #[kube(group = "example.com", version = "v1", kind = "Page", namespaced)]
//! # struct PageSpec { text: String, replicas: i32, public: bool }
//!
//! const SERVER: &str = r#"
//! apiVersion: v1
//! kind: ConfigMap
//! metadata:
//!   name: "{{ metadata.name }}-content"
//! data:
//!   index.html: "<p>{{ spec.text }}</p>"
//! ---
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata:
//!   name: "{{ metadata.name }}"
//! spec:
//!   replicas: "{{ spec.replicas }}"
//!   selector: { matchLabels: { page: "{{ metadata.name }}" } }
//!   template:
//!     metadata: { labels: { page: "{{ metadata.name }}" } }
//!     spec: { containers: [{ name: web, image: nginx }] }
//! "#;
//!
//! fn operator() -> Operator {
//!     Operator::new("pages")
//!         .controller(Controller::of::<Page>().template(Template::yaml(SERVER).when(|page: &Page| page.spec.public)))
//! }
//! operator().check().unwrap();
//! # assert_eq!(operator().description().rules().filter(|rule| rule.resource == "deployments").count(), 1);
//! ```

use std::{collections::BTreeMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;

use super::{
    context::Context,
    parts::{Bound, Part, Visit},
    session::encode,
};
use crate::{Declare, Error, Kind, Result, handle::Owned, kind::KindInfo};

type Condition<K> = Arc<dyn Fn(&K) -> bool + Send + Sync>;
type Adjust<K> = Arc<dyn Fn(&K, &mut Value) + Send + Sync>;

/// Dependents as YAML documents. Given to [`Controller::template`](crate::Controller::template).
pub struct Template<K> {
    documents: Vec<Document>,
    pub(crate) flaws: Vec<String>,
    condition: Option<Condition<K>>,
    adjust: Vec<Adjust<K>>,
}

#[derive(Clone)]
struct Document {
    resource: ApiResource,
    namespaced: bool,
    value: Value,
}

impl<K: Kind> Template<K> {
    /// The documents of a text. One that is not YAML, or does not say what it is, is told by
    /// [`Operator::check`](crate::Operator::check), and when the operator is started.
    pub fn yaml(text: &str) -> Self {
        let mut template = Self {
            documents: Vec::new(),
            flaws: Vec::new(),
            condition: None,
            adjust: Vec::new(),
        };
        match serde_saphyr::from_multiple::<Value>(text) {
            Ok(values) => {
                for value in values.into_iter().filter(|value| !value.is_null()) {
                    match document::<K>(value) {
                        Ok(document) => template.documents.push(document),
                        Err(flaw) => template.flaws.push(flaw),
                    }
                }
            }
            Err(error) => template
                .flaws
                .push(format!("a template is not YAML: {error}")),
        }
        template
    }

    /// The resource name of a kind, where it is not the usual plural.
    #[must_use]
    pub fn plural(mut self, kind: &str, plural: &str) -> Self {
        let documents = self.documents.iter_mut();
        for document in documents.filter(|one| one.resource.kind == kind) {
            plural.clone_into(&mut document.resource.plural);
        }
        self
    }

    /// Wanted only where the condition holds; deleted where it does not.
    #[must_use]
    pub fn when(mut self, condition: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        self.condition = Some(Arc::new(condition));
        self
    }

    /// Changes every document before it is applied: for what depends on the object in ways that a
    /// placeholder cannot say.
    #[must_use]
    pub fn with(mut self, adjust: impl Fn(&K, &mut Value) + Send + Sync + 'static) -> Self {
        self.adjust.push(Arc::new(adjust));
        self
    }
}

fn document<K: Kind>(value: Value) -> Result<Document, String> {
    let text = |path: &str| value.pointer(path).and_then(Value::as_str);
    let (Some(api_version), Some(kind)) = (text("/apiVersion"), text("/kind")) else {
        return Err("a document of a template has no apiVersion and kind".to_owned());
    };
    if text("/metadata/name").is_none() {
        return Err(format!("a {kind} of a template has no name"));
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    // What a namespaced object owns is in its namespace; others say where theirs is.
    let namespaced =
        KindInfo::of::<K>().namespaced || value.pointer("/metadata/namespace").is_some();
    Ok(Document {
        resource,
        namespaced,
        value,
    })
}

impl Document {
    fn kind(&self) -> KindInfo {
        let resource = &self.resource;
        KindInfo {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
            namespaced: self.namespaced,
        }
    }
}

/// A template as a part of a controller.
pub(crate) struct TemplatePart<K>(pub(crate) Arc<Template<K>>);

struct BoundTemplate<K> {
    template: Arc<Template<K>>,
    owned: BTreeMap<KindInfo, Owned<DynamicObject>>,
}

impl<K: Kind> Part<K> for TemplatePart<K> {
    fn bind(&self, declare: &mut Declare<K>) -> Bound<K> {
        let kinds = self.0.documents.iter().map(Document::kind);
        let mut owned = BTreeMap::new();
        for kind in kinds {
            owned
                .entry(kind.clone())
                .or_insert_with(|| declare.owns_kind(&kind));
        }
        Bound::Apply(Box::new(BoundTemplate {
            template: Arc::clone(&self.0),
            owned,
        }))
    }
}

impl<K: Kind> BoundTemplate<K> {
    async fn apply(&self, object: &K, ctx: &Context<K>) -> Result<()> {
        let template = &self.template;
        if template.condition.as_ref().is_some_and(|is| !is(object)) {
            return Ok(());
        }
        let values = encode(&KindInfo::of::<K>(), object)?;
        let mut first_error = None;
        for document in &template.documents {
            // One that is refused should not keep the others from being repaired.
            match self.apply_one(document, object, &values, ctx).await {
                Ok(live) => ctx.session.observed().add_template(live),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    async fn apply_one(
        &self,
        document: &Document,
        object: &K,
        values: &Value,
        ctx: &Context<K>,
    ) -> Result<Value> {
        let kind = document.kind();
        let mut wanted = filled(&document.value, values)
            .map_err(|missing| missing.of(&kind, &document.value))?;
        for adjust in &self.template.adjust {
            adjust(object, &mut wanted);
        }
        let owned = self
            .owned
            .get(&kind)
            .ok_or_else(|| Error::terminal(format!("{kind} of a template was not declared")))?;
        owned.apply_value(ctx, wanted).await
    }
}

impl<K: Kind> Visit<K> for BoundTemplate<K> {
    fn visit<'a>(&'a self, object: &'a K, ctx: &'a Context<K>) -> BoxFuture<'a, Result<()>> {
        self.apply(object, ctx).boxed()
    }
}

/// A placeholder names a field that the object does not have.
#[derive(Debug, PartialEq, Eq)]
struct Missing(String);

impl Missing {
    fn of(self, kind: &KindInfo, document: &Value) -> Error {
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        Error::terminal(format!(
            "cannot fill in the template of {kind} {name}: the object has no {}",
            self.0
        ))
    }
}

/// The value with its placeholders replaced by fields of the object.
fn filled(value: &Value, object: &Value) -> Result<Value, Missing> {
    Ok(match value {
        Value::String(text) => filled_text(text, object)?,
        Value::Array(items) => {
            let items: Result<_, _> = items.iter().map(|item| filled(item, object)).collect();
            Value::Array(items?)
        }
        Value::Object(fields) => {
            let fields: Result<_, _> = fields
                .iter()
                .map(|(name, value)| {
                    let name = match filled_text(name, object)? {
                        Value::String(name) => name,
                        other => other.to_string(),
                    };
                    Ok((name, filled(value, object)?))
                })
                .collect();
            Value::Object(fields?)
        }
        scalar => scalar.clone(),
    })
}

fn filled_text(text: &str, object: &Value) -> Result<Value, Missing> {
    let (mut rest, mut out) = (text, String::new());
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((path, behind)) = after.split_once("}}") else {
            break;
        };
        let path = path.trim();
        let found = path
            .split('.')
            .try_fold(object, |at, step| match at {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?),
                at => at.get(step),
            })
            .filter(|found| !found.is_null())
            .ok_or_else(|| Missing(path.to_owned()))?;
        // Nothing else in it: the value itself, whatever it is.
        if before.is_empty() && behind.is_empty() && out.is_empty() {
            return Ok(found.clone());
        }
        out.push_str(before);
        match found {
            Value::String(text) => out.push_str(text),
            other => out.push_str(&other.to_string()),
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(Value::String(out))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_become_text_or_the_value_itself() {
        let object =
            json!({"metadata": {"name": "a"}, "spec": {"n": 3, "map": {"x": 1}, "list": ["q"]}});
        let fill = |value: Value| filled(&value, &object).unwrap();
        assert_eq!(fill(json!("{{ spec.n }}")), json!(3));
        assert_eq!(fill(json!("{{spec.map}}")), json!({"x": 1}));
        assert_eq!(
            fill(json!("{{ metadata.name }}-{{ spec.n }}!")),
            json!("a-3!")
        );
        assert_eq!(fill(json!(["{{ spec.list.0 }}"])), json!(["q"]));
        assert_eq!(fill(json!({"k-{{ spec.n }}": true})), json!({"k-3": true}));
        assert_eq!(fill(json!("{{ not closed")), json!("{{ not closed"));
        assert_eq!(
            filled(&json!("x {{ spec.none }}"), &object),
            Err(Missing("spec.none".to_owned()))
        );
    }

    #[test]
    fn a_value_cannot_change_the_document() {
        let object = json!({"spec": {"text": "}}\nkind: Secret\n{{ spec.text }}"}});
        let value = json!({"kind": "ConfigMap", "data": {"a": "<{{ spec.text }}>"}});
        let wanted =
            json!({"kind": "ConfigMap", "data": {"a": "<}}\nkind: Secret\n{{ spec.text }}>"}});
        assert_eq!(filled(&value, &object).unwrap(), wanted);
    }
}
