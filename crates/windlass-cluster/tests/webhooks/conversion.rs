//! Versions of a kind, converted by the operator.

use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass::{Operator, webhook::Versions};
use windlass_cluster::TestCluster;

use crate::demo::{demo, operator, v1, v2};

#[windlass_cluster::test]
async fn every_version_shows_the_same_object(cluster: TestCluster) {
    cluster.start(operator()).await;
    let mut new = demo("one", Some(4));
    new.spec.config = Some("c".to_owned());
    cluster.create(new).await;
    let old = cluster.get::<v1::Demo>("one").await;
    assert_eq!(old.spec.size, Some(4));
    assert_eq!(old.annotations()["demo.example.com/config"], "c");
    let listed: Vec<_> = cluster.list::<v1::Demo>().await;
    assert_eq!(listed.len(), 1);
}

#[windlass_cluster::test]
async fn a_write_to_the_old_version_is_stored_in_the_new(cluster: TestCluster) {
    cluster.start(operator()).await;
    let old: Api<v1::Demo> = Api::namespaced(cluster.client(), "default");
    let made = old
        .create(
            &PostParams::default(),
            &v1::Demo::new("one", v1::DemoSpec { size: None }),
        )
        .await
        .expect("created");
    // The defaults of the new version reach the old one, by the webhook that asks for the new.
    assert_eq!(made.spec.size, Some(3));
    let patch = Patch::Merge(json!({"spec": {"size": 5}}));
    old.patch("one", &PatchParams::default(), &patch)
        .await
        .expect("patched");
    assert_eq!(cluster.get::<v2::Demo>("one").await.spec.replicas, Some(5));
}

#[windlass_cluster::test]
async fn what_cannot_be_converted_says_why(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(demo("unlucky", Some(13))).await;
    let old: Api<v1::Demo> = Api::namespaced(cluster.client(), "default");
    let refused = old.list(&ListParams::default()).await.expect_err("listed");
    assert!(
        refused.to_string().contains("13 cannot be said in v1"),
        "{refused}"
    );
}

#[test]
fn what_is_converted_comes_back_as_it_was() {
    // Both ways for each, but for those with the number that the old version cannot say.
    let returned = operator().check_conversions(300).expect("faithful");
    assert!((500..=600).contains(&returned), "{returned}");
}

/// Versions of which the old one has no room for a note.
mod forgetful {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    pub(crate) mod v2 {
        use super::*;

        #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[kube(group = "example.com", version = "v2", kind = "Thing", namespaced)]
        pub(crate) struct ThingSpec {
            pub(crate) size: i32,
            pub(crate) tags: Vec<String>,
            pub(crate) note: Option<String>,
        }
    }

    pub(crate) mod v1 {
        use super::*;

        #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[kube(group = "example.com", version = "v1", kind = "Thing", namespaced)]
        pub(crate) struct ThingSpec {
            pub(crate) size: i32,
            pub(crate) tags: Vec<String>,
        }
    }

    impl From<v1::Thing> for v2::Thing {
        fn from(old: v1::Thing) -> Self {
            let v1::ThingSpec { size, tags } = old.spec;
            let note = None;
            let spec = v2::ThingSpec { size, tags, note };
            let metadata = old.metadata;
            Self { metadata, spec }
        }
    }

    impl From<v2::Thing> for v1::Thing {
        fn from(new: v2::Thing) -> Self {
            let v2::ThingSpec { size, tags, .. } = new.spec;
            let spec = v1::ThingSpec { size, tags };
            let metadata = new.metadata;
            Self { metadata, spec }
        }
    }
}

#[test]
fn a_field_that_a_conversion_forgets_is_found_in_the_smallest_object() {
    let versions = Versions::hub::<forgetful::v2::Thing>().spoke::<forgetful::v1::Thing>();
    let operator = Operator::new("forgetful").versions(versions);
    let lost = operator.check_conversions(300).unwrap_err().to_string();
    let says = |line: &str, what: &str| {
        let line = lost.lines().find(|one| one.trim().starts_with(line));
        assert!(
            line.is_some_and(|line| line.contains(what)),
            "{what}: {lost}"
        );
    };
    assert!(
        lost.starts_with("an object of example.com/v2 does not survive the way to example.com/v1"),
        "{lost}"
    );
    // Whatever does not matter is left out: metadata but for the least, and tags.
    says("it was", r#""note":"#);
    says("it was", r#""tags":[]"#);
    says("and then", r#""spec":{"size":"#);
    assert!(!lost.contains("finalizers"), "{lost}");
}

#[test]
fn an_operator_without_conversions_has_none_to_check() {
    let none = Operator::new("plain").check_conversions(10).unwrap_err();
    assert_eq!(none.to_string(), "plain has no conversion to check");
}
