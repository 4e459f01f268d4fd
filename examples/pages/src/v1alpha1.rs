//! The version before: the text was called `body`, and every page was public.

use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PageSpec, PageStatus};

/// Where what this version cannot say is kept.
const HIDDEN: &str = "web.example.com/hidden";

/// What a user asked for.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "web.example.com",
    version = "v1alpha1",
    kind = "Page",
    namespaced,
    status = "PageStatus"
)]
pub struct OldPageSpec {
    /// The text of the page.
    pub body: String,
    /// How many servers show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

impl From<Page> for crate::Page {
    fn from(mut old: Page) -> Self {
        let public = old.annotations_mut().remove(HIDDEN).is_none();
        let spec = PageSpec {
            text: old.spec.body,
            replicas: old.spec.replicas,
            public,
        };
        Self {
            metadata: old.metadata,
            spec,
            status: old.status,
        }
    }
}

impl From<crate::Page> for Page {
    fn from(mut new: crate::Page) -> Self {
        if !new.spec.public {
            new.annotations_mut()
                .insert(HIDDEN.to_owned(), String::new());
        }
        let spec = OldPageSpec {
            body: new.spec.text,
            replicas: new.spec.replicas,
        };
        Self {
            metadata: new.metadata,
            spec,
            status: new.status,
        }
    }
}
