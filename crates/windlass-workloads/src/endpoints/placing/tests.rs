//! Few writes, and never too many in one.

use super::*;

fn endpoint(number: usize) -> Endpoint {
    Endpoint {
        addresses: vec![format!("10.0.{}.{}", number / 250, number % 250)],
        target_ref: Some(ObjectReference {
            name: Some(format!("pod-{number:04}")),
            ..ObjectReference::default()
        }),
        ..Endpoint::default()
    }
}

fn slice(name: &str, endpoints: std::ops::Range<usize>) -> EndpointSlice {
    let mut slice = EndpointSlice {
        endpoints: Some(endpoints.map(endpoint).collect()),
        ..EndpointSlice::default()
    };
    slice.metadata.name = Some(name.to_owned());
    slice
}

fn placed(existing: Vec<EndpointSlice>, wanted: std::ops::Range<usize>) -> Plan {
    let wanted = wanted
        .map(endpoint)
        .map(|one| (identity(&one), one))
        .collect();
    let mut plan = Plan::default();
    place(
        &mut plan,
        existing,
        wanted,
        &BTreeMap::new(),
        EndpointSlice::default,
    );
    plan
}

fn lengths(slices: &[EndpointSlice]) -> Vec<(&str, usize)> {
    let lengths = slices
        .iter()
        .map(|slice| (slice.metadata.name.as_deref().unwrap_or("new"), len(slice)));
    lengths.collect()
}

#[test]
fn a_slice_holds_a_hundred() {
    let plan = placed(Vec::new(), 0..250);
    assert_eq!(
        lengths(&plan.create),
        [("new", 100), ("new", 100), ("new", 50)]
    );
}

#[test]
fn what_stays_stays_where_it_is() {
    let plan = placed(vec![slice("a", 0..100), slice("b", 100..150)], 0..150);
    assert_eq!(lengths(&plan.keep), [("a", 100), ("b", 50)]);
    assert!(plan.create.is_empty() && plan.update.is_empty() && plan.delete.is_empty());
}

#[test]
fn new_ones_go_into_slices_that_change_anyway() {
    // Ten go from the first, twenty come: ten of them into the first, the rest into the second.
    let plan = placed(vec![slice("a", 0..100), slice("b", 100..150)], 10..170);
    assert_eq!(lengths(&plan.update), [("a", 100), ("b", 60)]);
    assert!(plan.create.is_empty() && plan.delete.is_empty() && plan.keep.is_empty());
}

#[test]
fn new_ones_go_into_the_slice_that_they_fill_best() {
    let existing = vec![slice("a", 0..50), slice("b", 50..140), slice("c", 140..150)];
    let plan = placed(existing, 0..158);
    assert_eq!(lengths(&plan.update), [("b", 98)]);
    assert_eq!(lengths(&plan.keep), [("a", 50), ("c", 10)]);
}

#[test]
fn a_slice_that_becomes_empty_serves_for_a_new_one() {
    let mut plan = placed(vec![slice("a", 0..5)], 5..10);
    assert_eq!(lengths(&plan.delete), [("a", 5)]);
    plan.reuse(|_| true);
    assert_eq!(lengths(&plan.update), [("a", 5)]);
    assert!(plan.create.is_empty() && plan.delete.is_empty());
}

#[test]
fn a_change_of_one_endpoint_writes_its_slice() {
    let mut before = slice("a", 0..3);
    before.endpoints.as_mut().unwrap()[1].zone = Some("elsewhere".to_owned());
    let plan = placed(vec![before, slice("b", 3..5)], 0..5);
    assert_eq!(lengths(&plan.update), [("a", 3)]);
    assert_eq!(lengths(&plan.keep), [("b", 2)]);
}
