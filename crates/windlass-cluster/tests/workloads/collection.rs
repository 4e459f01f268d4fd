//! What the garbage collector takes, and what it leaves.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::conditions::is_crd_established;
use kube::{Api, Resource, ResourceExt as _};
use serde_json::{Value, json};

use crate::scene::{Scene, until};
use crate::stage::play;

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// A `ConfigMap` with these owners.
fn map(name: &str, owners: &[Value]) -> Value {
    json!({ "metadata": { "name": name, "ownerReferences": owners } })
}

/// A reference to `owner`.
fn reference<K: Resource<DynamicType = ()>>(owner: &K) -> Value {
    json!(owner.owner_ref(&()))
}

/// A reference to `owner`, which cannot go in the foreground before whoever has it.
fn blocking<K: Resource<DynamicType = ()>>(owner: &K) -> Value {
    let mut reference = reference(owner);
    reference["blockOwnerDeletion"] = json!(true);
    reference
}

/// A reference to a `ConfigMap` that does not exist, or is another one.
fn to(name: &str, uid: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid })
}

/// Something that is collected after everything that became garbage before it.
async fn until_collected_by_then(scene: &Scene) {
    scene
        .create::<Secret>(map("by-then", &[to("nobody", NOBODY)]))
        .await;
    scene.until_gone::<Secret>("by-then").await;
}

#[test]
fn what_is_owned_by_nobody_is_left_alone() {
    play("no-owner", async |scene| {
        scene.create::<ConfigMap>(map("free", &[])).await;
        until_collected_by_then(scene).await;
        assert!(scene.find::<ConfigMap>("free").await.is_some());
    });
}

#[test]
fn an_owner_that_never_was_counts_as_gone() {
    play("missing-owner", async |scene| {
        scene
            .create::<ConfigMap>(map("lost", &[to("nobody", NOBODY)]))
            .await;
        scene.until_gone::<ConfigMap>("lost").await;
    });
}

#[test]
fn another_object_of_the_same_name_is_not_the_owner() {
    play("wrong-uid", async |scene| {
        scene.create::<ConfigMap>(map("owner", &[])).await;
        scene
            .create::<ConfigMap>(map("lost", &[to("owner", NOBODY)]))
            .await;
        scene.until_gone::<ConfigMap>("lost").await;
        assert!(scene.find::<ConfigMap>("owner").await.is_some());
    });
}

#[test]
fn an_object_of_another_kind_with_that_uid_is_not_the_owner() {
    play("wrong-kind", async |scene| {
        let owner = scene.create::<ConfigMap>(map("owner", &[])).await;
        let mut wrong = reference(&owner);
        wrong["kind"] = json!("Secret");
        scene.create::<ConfigMap>(map("lost", &[wrong])).await;
        scene.until_gone::<ConfigMap>("lost").await;
    });
}

#[test]
fn an_owner_in_another_namespace_counts_as_gone() {
    play("another-namespace", async |scene| {
        let elsewhere: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "default");
        let owner: ConfigMap =
            serde_json::from_value(json!({ "metadata": { "generateName": "owner-" } })).unwrap();
        let owner = elsewhere
            .create(&PostParams::default(), &owner)
            .await
            .unwrap();
        scene
            .create::<ConfigMap>(map("lost", &[reference(&owner)]))
            .await;
        scene.until_gone::<ConfigMap>("lost").await;
        let gone = DeleteParams::default();
        elsewhere.delete(&owner.name_any(), &gone).await.unwrap();
    });
}

#[test]
fn an_owner_without_a_namespace_owns_across_namespaces() {
    play("cluster-scoped", async |scene| {
        let namespaces: Api<Namespace> = Api::all(scene.client.clone());
        let owner = namespaces.get(&scene.namespace).await.unwrap();
        scene
            .create::<ConfigMap>(map("kept", &[reference(&owner)]))
            .await;
        until_collected_by_then(scene).await;
        assert!(scene.find::<ConfigMap>("kept").await.is_some());
    });
}

#[test]
fn one_owner_left_is_enough() {
    play("two-owners", async |scene| {
        let one = scene.create::<ConfigMap>(map("one", &[])).await;
        let two = scene.create::<ConfigMap>(map("two", &[])).await;
        let owners = [reference(&one), reference(&two)];
        scene.create::<ConfigMap>(map("shared", &owners)).await;
        scene
            .delete::<ConfigMap>("one", &DeleteParams::background())
            .await;
        let shared = scene
            .until::<ConfigMap>("shared", "without the owner that is gone", |shared| {
                shared.owner_references().len() == 1
            })
            .await;
        assert_eq!(json!(shared.owner_references()[0]), owners[1]);
        scene
            .delete::<ConfigMap>("two", &DeleteParams::background())
            .await;
        scene.until_gone::<ConfigMap>("shared").await;
    });
}

#[test]
fn in_the_background_generation_after_generation_goes() {
    play("generations", async |scene| {
        let mut owner = scene.create::<ConfigMap>(map("0", &[])).await;
        for name in ["1", "2", "3"] {
            owner = scene.create(map(name, &[reference(&owner)])).await;
        }
        scene
            .delete::<ConfigMap>("0", &DeleteParams::background())
            .await;
        assert!(scene.find::<ConfigMap>("0").await.is_none());
        scene.until_gone::<ConfigMap>("3").await;
    });
}

#[test]
fn in_the_foreground_an_owner_waits_for_those_that_block_it() {
    play("blocked", async |scene| {
        let owner = scene.create::<ConfigMap>(map("owner", &[])).await;
        let mut slow = map("slow", &[blocking(&owner)]);
        slow["metadata"]["finalizers"] = json!(["example.com/keep"]);
        scene.create::<ConfigMap>(slow).await;
        scene
            .delete::<ConfigMap>("owner", &DeleteParams::foreground())
            .await;
        scene
            .until::<ConfigMap>("slow", "on its way out", |slow| {
                slow.metadata.deletion_timestamp.is_some()
            })
            .await;
        until_collected_by_then(scene).await;
        assert!(scene.find::<ConfigMap>("owner").await.is_some());
        scene
            .patch::<ConfigMap>("slow", json!({ "metadata": { "finalizers": null } }))
            .await;
        scene.until_gone::<ConfigMap>("owner").await;
        assert!(scene.find::<ConfigMap>("slow").await.is_none());
    });
}

#[test]
fn in_the_foreground_an_owner_does_not_wait_for_those_that_do_not_block_it() {
    play("not-blocked", async |scene| {
        let owner = scene.create::<ConfigMap>(map("owner", &[])).await;
        let mut slow = map("slow", &[reference(&owner)]);
        slow["metadata"]["finalizers"] = json!(["example.com/keep"]);
        scene.create::<ConfigMap>(slow).await;
        scene
            .delete::<ConfigMap>("owner", &DeleteParams::foreground())
            .await;
        scene.until_gone::<ConfigMap>("owner").await;
        scene
            .until::<ConfigMap>("slow", "on its way out", |slow| {
                slow.metadata.deletion_timestamp.is_some()
            })
            .await;
        scene
            .patch::<ConfigMap>("slow", json!({ "metadata": { "finalizers": null } }))
            .await;
        scene.until_gone::<ConfigMap>("slow").await;
    });
}

#[test]
fn an_orphan_loses_its_owner_and_stays() {
    play("orphaned", async |scene| {
        let owner = scene.create::<ConfigMap>(map("owner", &[])).await;
        scene
            .create::<ConfigMap>(map("orphan", &[reference(&owner)]))
            .await;
        scene
            .delete::<ConfigMap>("owner", &DeleteParams::orphan())
            .await;
        scene.until_gone::<ConfigMap>("owner").await;
        until_collected_by_then(scene).await;
        let orphan = scene.find::<ConfigMap>("orphan").await.unwrap();
        assert_eq!(orphan.owner_references(), []);
    });
}

/// Two `ConfigMaps` that own each other.
async fn circle(scene: &Scene) {
    let one = scene.create::<ConfigMap>(map("one", &[])).await;
    let two = scene
        .create::<ConfigMap>(map("two", &[blocking(&one)]))
        .await;
    let close = json!({ "metadata": { "ownerReferences": [blocking(&two)] } });
    scene.patch::<ConfigMap>("one", close).await;
}

#[test]
fn a_circle_holds_itself_until_one_is_deleted() {
    play("circle", async |scene| {
        circle(scene).await;
        until_collected_by_then(scene).await;
        assert!(scene.find::<ConfigMap>("one").await.is_some());
        assert!(scene.find::<ConfigMap>("two").await.is_some());
        scene
            .delete::<ConfigMap>("one", &DeleteParams::background())
            .await;
        scene.until_gone::<ConfigMap>("two").await;
    });
}

#[test]
fn a_circle_deleted_in_the_foreground_does_not_wait_for_itself() {
    play("foreground-circle", async |scene| {
        circle(scene).await;
        scene
            .delete::<ConfigMap>("one", &DeleteParams::foreground())
            .await;
        scene.until_gone::<ConfigMap>("one").await;
        scene.until_gone::<ConfigMap>("two").await;
    });
}

/// Defines a kind of lamps, of a group of the test's own, and gives the way to them.
async fn lamps(scene: &Scene, group: &str) -> (Api<DynamicObject>, ApiResource) {
    let definitions: Api<CustomResourceDefinition> = Api::all(scene.client.clone());
    let name = format!("lamps.{group}");
    let lamp = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": name },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "kind": "Lamp", "plural": "lamps", "singular": "lamp" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    let params = PatchParams::apply("scenarios").force();
    let applied = definitions.patch(&name, &params, &Patch::Apply(lamp)).await;
    applied.expect("a definition");
    until(&definitions, &name, "served", |definition| {
        kube::runtime::wait::Condition::matches_object(&is_crd_established(), definition)
    })
    .await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", "Lamp"));
    let lamps = Api::namespaced_with(scene.client.clone(), &scene.namespace, &kind);
    (lamps, kind)
}

/// Waits until the collector follows the lamps; Kubernetes' own looks for new kinds now and then.
async fn until_followed(scene: &Scene, lamps: &(Api<DynamicObject>, ApiResource)) {
    let owner = lamp(lamps, "brief", json!([])).await;
    scene.create::<ConfigMap>(map("brief", &[owner])).await;
    until_collected_by_then(scene).await;
    let deleted = lamps.0.delete("brief", &DeleteParams::default()).await;
    deleted.expect("deleted");
    scene.until_gone::<ConfigMap>("brief").await;
}

/// A lamp with these owners, as a reference to it.
async fn lamp(
    (lamps, kind): &(Api<DynamicObject>, ApiResource),
    name: &str,
    owners: Value,
) -> Value {
    let mut lamp = DynamicObject::new(name, kind);
    lamp.metadata.owner_references = serde_json::from_value(owners).unwrap();
    let created = lamps.create(&PostParams::default(), &lamp).await;
    json!(created.expect("a lamp").owner_ref(kind))
}

#[test]
fn kinds_that_are_defined_later_are_collected_too() {
    play("defined-later", async |scene| {
        let lamps = lamps(scene, "scenarios.example.com").await;
        // A lamp owns a lamp, which owns a built-in object.
        let first = lamp(&lamps, "first", json!([])).await;
        let second = lamp(&lamps, "second", json!([first])).await;
        scene.create::<ConfigMap>(map("owned", &[second])).await;
        until_collected_by_then(scene).await;
        assert!(scene.find::<ConfigMap>("owned").await.is_some());
        let (lamps, _) = lamps;
        lamps
            .delete("first", &DeleteParams::default())
            .await
            .expect("deleted");
        scene.until_gone::<ConfigMap>("owned").await;
        assert!(lamps.get_opt("second").await.unwrap().is_none());
    });
}

#[test]
fn a_definition_that_goes_takes_what_its_objects_own() {
    play("definition-gone", async |scene| {
        let lamps = lamps(scene, "withdrawn.example.com").await;
        until_followed(scene, &lamps).await;
        for name in ["one", "two", "three"] {
            let owner = lamp(&lamps, name, json!([])).await;
            scene.create::<ConfigMap>(map(name, &[owner])).await;
        }
        until_collected_by_then(scene).await;
        assert!(scene.find::<ConfigMap>("three").await.is_some());
        let definitions: Api<CustomResourceDefinition> = Api::all(scene.client.clone());
        definitions
            .delete("lamps.withdrawn.example.com", &DeleteParams::default())
            .await
            .expect("deleted");
        for name in ["one", "two", "three"] {
            scene.until_gone::<ConfigMap>(name).await;
        }
    });
}
