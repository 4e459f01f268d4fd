//! What must hold of every definition and every object.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::schema::Schema;
use super::*;

#[test]
fn versions_are_ordered_as_kubernetes_orders_them() {
    let mut versions = vec![
        "foo1",
        "v1alpha1",
        "v2",
        "v1beta2",
        "v1",
        "v11alpha2",
        "v1beta1",
        "bar",
    ];
    versions.sort_by(|a, b| compare_versions(a, b));
    assert_eq!(
        versions,
        [
            "v2",
            "v1",
            "v1beta2",
            "v1beta1",
            "v11alpha2",
            "v1alpha1",
            "bar",
            "foo1"
        ]
    );
}
