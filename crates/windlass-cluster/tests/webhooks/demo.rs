//! An operator with webhooks, to test with.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    Controller, Declare, Observed, Operator, Result, Webhook,
    handle::Reads,
    watch::Scope,
    webhook::{Operation, Review, Validator, Verdict, Versions},
};

/// The version that is stored.
pub(crate) mod v2 {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[kube(
        group = "demo.example.com",
        version = "v2",
        kind = "Demo",
        namespaced,
        status = "DemoStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub(crate) struct DemoSpec {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(crate) replicas: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(crate) config: Option<String>,
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
    pub(crate) struct DemoStatus {
        #[serde(default)]
        pub(crate) seen: i32,
    }
}

/// The version before.
pub(crate) mod v1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[kube(
        group = "demo.example.com",
        version = "v1",
        kind = "Demo",
        namespaced,
        status = "v2::DemoStatus"
    )]
    pub(crate) struct DemoSpec {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(crate) size: Option<i32>,
    }
}

impl From<v1::Demo> for v2::Demo {
    fn from(old: v1::Demo) -> Self {
        let mut new = Self::new(
            "",
            v2::DemoSpec {
                replicas: old.spec.size,
                config: old.annotations().get("demo.example.com/config").cloned(),
            },
        );
        new.metadata = old.metadata;
        new.status = old.status;
        new.annotations_mut().remove("demo.example.com/config");
        new
    }
}

/// What the old version cannot say is an annotation; a negative number it cannot say at all.
impl TryFrom<v2::Demo> for v1::Demo {
    type Error = String;

    fn try_from(new: v2::Demo) -> Result<Self, String> {
        if new.spec.replicas == Some(13) {
            return Err("13 cannot be said in v1".to_owned());
        }
        let mut old = Self::new(
            "",
            v1::DemoSpec {
                size: new.spec.replicas,
            },
        );
        old.metadata = new.metadata;
        old.status = new.status;
        if let Some(config) = new.spec.config {
            old.annotations_mut()
                .insert("demo.example.com/config".to_owned(), config);
        }
        Ok(old)
    }
}

pub(crate) fn demo(name: &str, replicas: Option<i32>) -> v2::Demo {
    v2::Demo::new(
        name,
        v2::DemoSpec {
            replicas,
            config: None,
        },
    )
}

fn fill_in(demo: &mut v2::Demo) {
    demo.spec.replicas.get_or_insert(3);
}

fn judge(demo: &v2::Demo, old: Option<&v2::Demo>) -> Verdict {
    let mut verdict = Verdict::allow();
    let replicas = demo.spec.replicas.unwrap_or_default();
    if replicas < 1 {
        verdict.invalid("spec.replicas", replicas, "must be at least 1");
    }
    if replicas > 5 {
        verdict.warn("more than five is a lot");
    }
    if demo.spec.config.as_deref() == Some("") {
        verdict.require("spec.config", "leave it out or name one");
    }
    if old.is_some_and(|old| old.spec.config != demo.spec.config) {
        verdict.forbid("spec.config", "may not change");
    }
    assert!(replicas != 666, "a webhook that panics");
    verdict
}

fn keep(demo: &v2::Demo) -> Verdict {
    if demo.labels().contains_key("keep") {
        Verdict::deny("it is to be kept")
    } else {
        Verdict::allow()
    }
}

/// A `ConfigMap` may name only a Demo that exists.
pub(crate) struct Named {
    demos: Reads<v2::Demo>,
}

impl Named {
    fn declare(declare: &mut Declare<Webhook<ConfigMap>>) -> Self {
        Self {
            demos: declare.reads(&Scope::all()),
        }
    }
}

impl Validator for Named {
    type Object = ConfigMap;

    async fn validate(&self, review: &Review<ConfigMap>) -> Result<Verdict> {
        let mut verdict = Verdict::allow();
        let named = review
            .object
            .as_ref()
            .and_then(|map| map.labels().get("demo"));
        if let Some(name) = named
            && self.demos.get(review, name).await?.is_none()
        {
            verdict.invalid(
                "metadata.labels[demo]",
                name.as_str(),
                "there is no such Demo",
            );
        }
        Ok(verdict)
    }
}

pub(crate) fn operator() -> Operator {
    Operator::new("demo")
        .controller(
            Controller::of::<v2::Demo>().status(|demo: &v2::Demo, _: &Observed| v2::DemoStatus {
                seen: demo.spec.replicas.unwrap_or_default(),
            }),
        )
        .versions(Versions::hub::<v2::Demo>().spoke::<v1::Demo>())
        .webhook(
            Webhook::of::<v2::Demo>()
                .defaulting(fill_in)
                .validating(judge)
                .validating_deletion(keep),
        )
        .webhook(
            Webhook::of::<ConfigMap>()
                .validator([Operation::Create, Operation::Update], Named::declare),
        )
}
