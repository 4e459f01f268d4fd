//! A Feed: a list of pages, published where others find it. It has steps of its own.

use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector},
};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    Action, Context, Declare, Event, FinalizingReconciler, Result, Watched,
    handle::{Owned, Reads},
};

use crate::Page;

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "web.example.com",
    version = "v1",
    kind = "Feed",
    namespaced,
    status = "FeedStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct FeedSpec {
    /// The pages that are listed.
    pub pages: LabelSelector,
    /// The `ConfigMap` that says how the list begins.
    pub heading_from: String,
}

/// What was published.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FeedStatus {
    /// How many pages are listed.
    #[serde(default)]
    pub listed: usize,
    /// Available, Progressing and Degraded; kept by the framework.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// Its handles: all it can do.
pub(crate) struct Publisher {
    lists: Owned<ConfigMap>,
    pages: Reads<Page>,
    headings: Reads<ConfigMap>,
}

impl Publisher {
    pub(crate) fn declare(declare: &mut Declare<Feed>) -> Self {
        Self {
            lists: declare.owns(),
            pages: declare.reads(Page::selected_by(|feed: &Feed| feed.spec.pages.clone())),
            headings: declare.reads(ConfigMap::referenced_by(|feed: &Feed| {
                feed.spec.heading_from.clone()
            })),
        }
    }
}

impl FinalizingReconciler for Publisher {
    type Object = Feed;

    async fn reconcile(&self, feed: &Feed, ctx: &Context<Feed>) -> Result<Action> {
        let Some(heading) = self.headings.get(ctx, &feed.spec.heading_from).await? else {
            // Not an error: its appearance wakes this feed.
            let missing = format!("config map {} does not exist", feed.spec.heading_from);
            return Ok(Action::waiting("HeadingNotFound", missing));
        };
        let pages = self.pages.list(ctx, feed.spec.pages.clone()).await?;
        let mut list = ConfigMap::default();
        list.metadata.name = Some(format!("{}-list", feed.name_any()));
        let names: Vec<String> = pages.iter().map(|page| page.name_any()).collect();
        let mut data = heading.data.clone().unwrap_or_default();
        data.insert("pages".to_owned(), names.join("\n"));
        list.data = Some(data);
        self.lists.apply(ctx, list).await?;
        ctx.set_status(FeedStatus {
            listed: names.len(),
            ..FeedStatus::default()
        })?;
        Ok(Action::done())
    }

    /// Here an external system would be notified; the feed stays until this has succeeded.
    async fn cleanup(&self, feed: &Feed, ctx: &Context<Feed>) -> Result<Action> {
        ctx.event(Event::normal(
            "Withdrawn",
            format!("{} is gone", feed.name_any()),
        ));
        Ok(Action::done())
    }
}
