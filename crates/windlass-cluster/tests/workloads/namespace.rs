//! A namespace is deleted, with everything in it.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use crate::scene::{Scene, until, web};
use crate::stage::play;

async fn delete_namespace(scene: &Scene) -> Api<Namespace> {
    let namespaces: Api<Namespace> = Api::all(scene.client.clone());
    let params = DeleteParams::default();
    let deleted = namespaces.delete(&scene.namespace, &params).await;
    let namespace = deleted.expect("deleted").left().expect("still there");
    let phase = namespace.status.and_then(|status| status.phase);
    assert_eq!(phase.as_deref(), Some("Terminating"));
    namespaces
}

#[test]
fn a_namespace_takes_everything_along() {
    play("everything", async |scene| {
        scene.create::<Deployment>(web(2, "a")).await;
        scene.until_rolled_out("web").await;
        let namespaces = delete_namespace(scene).await;
        until(&namespaces, &scene.namespace, "gone", |namespace| {
            namespace.is_none()
        })
        .await;
        assert!(scene.pods().await.is_empty());
        assert!(scene.sets().await.is_empty());
        assert!(scene.list::<ConfigMap>().await.is_empty());
    });
}

#[test]
fn a_namespace_waits_for_a_finalizer_inside_and_says_so() {
    play("finalizer-inside", async |scene| {
        let kept = json!({ "metadata": { "name": "kept", "finalizers": ["example.com/keep"] } });
        scene.create::<ConfigMap>(kept).await;
        let namespaces = delete_namespace(scene).await;
        let told = until(&namespaces, &scene.namespace, "told", |namespace| {
            let status = namespace.and_then(|namespace| namespace.status.as_ref());
            let conditions = status
                .into_iter()
                .flat_map(|status| status.conditions.iter().flatten());
            conditions.into_iter().any(|condition| {
                condition.type_ == "NamespaceFinalizersRemaining" && condition.status == "True"
            })
        })
        .await
        .expect("still there");
        let conditions = told.status.unwrap().conditions.unwrap();
        let message = |type_: &str| {
            conditions
                .iter()
                .find(|condition| condition.type_ == type_)
                .and_then(|condition| condition.message.as_deref())
                .unwrap_or_default()
        };
        assert_eq!(
            message("NamespaceFinalizersRemaining"),
            "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances"
        );
        assert_eq!(
            message("NamespaceContentRemaining"),
            "Some resources are remaining: configmaps. has 1 resource instances"
        );
        scene
            .patch::<ConfigMap>("kept", json!({ "metadata": { "finalizers": null } }))
            .await;
        until(&namespaces, &scene.namespace, "gone", |namespace| {
            namespace.is_none()
        })
        .await;
    });
}

#[test]
fn nothing_new_is_made_in_a_namespace_that_goes() {
    play("nothing-new", async |scene| {
        let mut kept = web(1, "a");
        kept["metadata"]["finalizers"] = json!(["example.com/keep"]);
        scene.create::<Deployment>(kept).await;
        scene.until_rolled_out("web").await;
        let namespaces = delete_namespace(scene).await;
        // Its deployment is still there, but nobody replaces the pods that go.
        scene.until_all::<Pod>("no pod", <[_]>::is_empty).await;
        scene
            .patch::<Deployment>("web", json!({ "metadata": { "finalizers": null } }))
            .await;
        until(&namespaces, &scene.namespace, "gone", |namespace| {
            namespace.is_none()
        })
        .await;
    });
}
