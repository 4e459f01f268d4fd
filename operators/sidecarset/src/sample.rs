//! What to try the operator with: a set that puts a memcached beside whatever a pod with its label
//! runs, and a Deployment of such pods.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{Container, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};

use crate::kind::{ROLLING_UPDATE, SidecarContainer, SidecarSet, SidecarSetSpec, UpdateStrategy};

const NAME: &str = "sidecarset-sample";

/// The set.
pub(crate) fn set() -> SidecarSet {
    let spec = SidecarSetSpec {
        selector: Some(selector()),
        containers: vec![SidecarContainer {
            // The pod has one address: its own memcached has the usual port.
            container: Container {
                args: Some(vec!["-p".to_owned(), "11212".to_owned()]),
                ..container("cache")
            },
            ..SidecarContainer::default()
        }],
        update_strategy: UpdateStrategy {
            of: Some(ROLLING_UPDATE.to_owned()),
            max_unavailable: Some(IntOrString::Int(1)),
            ..UpdateStrategy::default()
        },
        ..SidecarSetSpec::default()
    };
    SidecarSet::new(NAME, spec)
}

/// The Deployment.
pub(crate) fn deployment() -> Deployment {
    Deployment {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            replicas: Some(2),
            selector: selector(),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels()),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec {
                    containers: vec![container("main")],
                    ..PodSpec::default()
                }),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn container(name: &str) -> Container {
    Container {
        name: name.to_owned(),
        image: Some("memcached:1.6.6".to_owned()),
        ..Container::default()
    }
}

fn labels() -> BTreeMap<String, String> {
    [("app".to_owned(), NAME.to_owned())].into()
}

fn selector() -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels()),
        ..LabelSelector::default()
    }
}
