use super::*;
use proptest::prelude::*;
use serde_json::json;

fn pod_template() -> Type {
    Type::Named("io.k8s.api.core.v1.PodSpec".into())
}

fn patched(object: &Value, patch: &Value) -> Value {
    apply(object, patch, &pod_template()).unwrap()
}

#[test]
fn containers_merge_by_name() {
    let object = json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]});
    let patch = json!({"containers": [{"name": "b", "image": "2"}, {"name": "c", "image": "3"}]});
    let expected = json!({"containers": [
        {"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c", "image": "3"}]});
    let new_comes_first = patched(&object, &json!({"containers": [{"name": "z"}]}));
    assert_eq!(new_comes_first["containers"][0]["name"], "z");
    assert_eq!(patched(&object, &patch), expected);
}

#[test]
fn directives_delete_replace_retain_and_order() {
    let object =
        json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"x": "1", "y": "2"}});
    assert_eq!(
        patched(
            &object,
            &json!({"containers": [{"name": "a", "$patch": "delete"}]})
        )["containers"],
        json!([{"name": "b"}])
    );
    assert_eq!(
        patched(
            &object,
            &json!({"containers": [{"name": "z"}, {"$patch": "replace"}]})
        )["containers"],
        json!([{"name": "z"}])
    );
    assert_eq!(
        patched(
            &object,
            &json!({"nodeSelector": {"$retainKeys": ["x"], "x": "9"}})
        )["nodeSelector"],
        json!({"x": "9"})
    );
    assert_eq!(
        patched(
            &object,
            &json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]})
        )["containers"],
        json!([{"name": "b"}, {"name": "a"}])
    );
}

#[test]
fn a_list_without_a_merge_rule_is_replaced() {
    let object = json!({"containers": [{"name": "a", "args": ["1", "2"]}]});
    let patch = json!({"containers": [{"name": "a", "args": ["3"]}]});
    assert_eq!(
        patched(&object, &patch)["containers"][0]["args"],
        json!(["3"])
    );
}

/// The patch that turns one pod spec into another, as kubectl makes them.
fn diff(from: &Value, to: &Value, ty: &Type) -> Map<String, Value> {
    let none = Map::new();
    let (from, to) = (
        from.as_object().unwrap_or(&none),
        to.as_object().unwrap_or(&none),
    );
    let mut out = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        out.insert(key.clone(), Value::Null);
    }
    for (key, new) in to {
        let rule = Rule::of(ty, key);
        match (from.get(key), new) {
            (Some(old), new) if old == new => {}
            (Some(old @ Value::Object(_)), new @ Value::Object(_)) => {
                out.insert(key.clone(), diff(old, new, ty.member(key)).into());
            }
            (Some(Value::Array(old)), Value::Array(new)) if rule.merge => {
                let Some(merge_key) = rule.key else { continue };
                let find = |list: &[Value], item: &Value| {
                    list.iter()
                        .find(|known| known[merge_key] == item[merge_key])
                        .cloned()
                };
                let mut items = Vec::new();
                for item in new {
                    let mut change = match find(old, item) {
                        Some(before) if before == *item => continue,
                        Some(before) => diff(&before, item, rule.item),
                        None => item.as_object().cloned().unwrap_or_default(),
                    };
                    change.insert(merge_key.into(), item[merge_key].clone());
                    items.push(Value::Object(change));
                }
                for item in old.iter().filter(|item| find(new, item).is_none()) {
                    items.push(json!({merge_key: item[merge_key], PATCH: "delete"}));
                }
                let keys = new.iter().map(|item| json!({merge_key: item[merge_key]}));
                out.insert(format!("{ELEMENT_ORDER}{key}"), keys.collect());
                out.insert(key.clone(), items.into());
            }
            (_, new) => {
                out.insert(key.clone(), new.clone());
            }
        }
    }
    out
}

fn spec() -> impl Strategy<Value = Value> {
    let env = proptest::collection::btree_map("[A-C]", "[1-3]", 1..4);
    let args = proptest::collection::vec("[a-b]", 1..3);
    let container = (env, args, "i:[1-2]").prop_map(|(env, args, image)| {
        let env: Vec<Value> = env
            .into_iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        json!({"image": image, "args": args, "env": env})
    });
    let containers = proptest::collection::btree_map("[p-s]", container, 1..4)
        .prop_map(|map| map.into_iter().collect::<Vec<_>>())
        .prop_shuffle();
    let selector = proptest::option::of(proptest::collection::btree_map("[k-m]", "[x-z]", 1..3));
    (containers, selector).prop_map(|(containers, selector)| {
        let named = |(name, mut container): (String, Value)| {
            container["name"] = name.into();
            container
        };
        let mut spec = json!({"containers": containers.into_iter().map(named).collect::<Vec<_>>()});
        if let Some(selector) = selector {
            spec["nodeSelector"] = json!(selector);
        }
        spec
    })
}

proptest! {
    #[test]
    fn merging_a_diff_gives_the_target(from in spec(), to in spec()) {
        let patch = Value::Object(diff(&from, &to, &pod_template()));
        prop_assert_eq!(patched(&from, &patch), to);
    }

    #[test]
    fn merging_twice_is_merging_once(from in spec(), to in spec()) {
        let patch = Value::Object(diff(&from, &to, &pod_template()));
        let once = patched(&from, &patch);
        prop_assert_eq!(patched(&once, &patch), once);
    }
}
