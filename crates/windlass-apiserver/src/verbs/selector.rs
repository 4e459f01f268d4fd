//! Label and field selectors, in the text form of queries.

use serde_json::Value;

use windlass_apimachinery::selector::{
    FieldRequirement, LabelSelector, SelectorError, parse_fields,
};

use crate::http::Query;
use crate::registry::resource::Resource;
use crate::status::{ApiError, Result};
use crate::store::{Labelled, Stored};

impl From<SelectorError> for ApiError {
    fn from(error: SelectorError) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// Which objects a list or watch is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: LabelSelector,
    fields: Vec<FieldRequirement>,
}

impl Selector {
    /// Whether the selectors can be read at all.
    pub(crate) fn check_syntax(query: &Query) -> Result<()> {
        if let Some(text) = query.get("labelSelector") {
            LabelSelector::parse(text)?;
        }
        if let Some(text) = query.get("fieldSelector") {
            parse_fields(text)?;
        }
        Ok(())
    }

    /// The one name that is asked for, if it is one.
    pub(crate) fn only_name(&self) -> Option<&str> {
        let name = |one: &&FieldRequirement| one.field == "metadata.name" && one.equal;
        self.fields.iter().find(name).map(|one| one.value.as_str())
    }

    pub(crate) fn from_query(query: &Query, resource: &Resource) -> Result<Self> {
        let labels = match query.get("labelSelector") {
            None => LabelSelector::default(),
            Some(text) => LabelSelector::parse(text)?,
        };
        let mut fields = match query.get("fieldSelector") {
            None => Vec::new(),
            Some(text) => parse_fields(text)?,
        };
        for FieldRequirement { field, .. } in &mut fields {
            let stored = resource.stored_field(field);
            let known = matches!(field.as_str(), "metadata.name")
                || (field == "metadata.namespace"
                    && (resource.namespaced
                        || (resource.selectable.is_empty() && !resource.is_custom())));
            if !known && !resource.selectable.contains(&stored) {
                let plain = resource.selectable.is_empty() && !resource.is_custom();
                return Err(ApiError::bad_request(if plain {
                    format!(
                        "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    )
                } else {
                    resource.strategy.unknown_field_label(field)
                }));
            }
            *field = stored;
        }
        Ok(Self { labels, fields })
    }

    /// A `LabelSelector` object; a requirement it states in an unknown way matches nothing.
    pub(crate) fn from_object(selector: &Value) -> Self {
        Self {
            labels: LabelSelector::from_object(selector),
            fields: Vec::new(),
        }
    }

    /// Leaves only the object of this name.
    pub(crate) fn require_name(&mut self, name: &str) {
        self.fields.push(FieldRequirement {
            field: "metadata.name".to_owned(),
            value: name.to_owned(),
            equal: true,
        });
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_empty()
    }

    /// Whether labels are as this asks.
    pub(crate) fn matches_labels(&self, labels: &impl Labelled) -> bool {
        self.labels.matches(labels)
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.labels.matches(&object.labels)
            && self.fields.iter().all(|one| {
                let FieldRequirement {
                    field,
                    value: wanted,
                    equal,
                } = one;
                let found = match field.as_str() {
                    "metadata.name" => object.key.name(),
                    "metadata.namespace" => object.key.namespace(),
                    _ => {
                        let known = object.fields.iter().find(|(known, _)| **known == **field);
                        let Some((_, value)) = known else {
                            // It was stored before anybody could ask for this field.
                            let found = crate::store::field_text(&object.value(), field);
                            return (found == *wanted) == *equal;
                        };
                        value
                    }
                };
                (found == wanted) == *equal
            })
    }
}
