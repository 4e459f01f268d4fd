//! Types as authors write them make schemas the API server takes, or an error that names the field;
//! never a panic. What the API server takes is what `windlass_manifests::structural` says of it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use windlass::{Action, Context, Controller, Declare, Kind, Operator, Reconciler, Result};

struct Idle<K>(std::marker::PhantomData<fn() -> K>);

impl<K: Kind> Reconciler for Idle<K> {
    type Object = K;

    async fn reconcile(&self, _: &K, _: &Context<K>) -> Result<Action> {
        Ok(Action::done())
    }
}

fn operator<K: Kind + CustomResourceExt + DeserializeOwned>() -> Operator {
    let declare = |_: &mut Declare<K>| Idle(std::marker::PhantomData);
    Operator::new("kinds").controller(Controller::of::<K>().reconciler(declare))
}

/// What is wrong with a kind, or its schema of `spec`.
fn spec_of<K: Kind + CustomResourceExt>() -> std::result::Result<Value, String> {
    let operator = operator::<K>();
    operator.check().map_err(|error| error.to_string())?;
    let crd = serde_json::to_value(&operator.crds()[0]).unwrap();
    Ok(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone())
}

macro_rules! kind {
    ($kind:literal, $(#[$attribute:meta])* struct $spec:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)* }) => {
        #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[kube(group = "kinds.example.com", version = "v1", kind = $kind, namespaced)]
        $(#[$attribute])*
        struct $spec { $($(#[$of_field])* $field: $type,)* }
    };
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
#[schemars(transform = windlass::kind::one_of)]
enum Source {
    Git { url: String, branch: Option<String> },
    Archive { file_path: String },
    Nothing,
}

kind!(
    "Tagged",
    struct TaggedSpec {
        source: Source,
        other: Option<Source>,
    }
);

#[test]
fn an_enum_with_a_tag_has_its_fields_side_by_side_and_rules_for_what_each_needs() {
    let spec = spec_of::<Tagged>().unwrap();
    let source = &spec["properties"]["source"];
    assert_eq!(source["type"], "object");
    let fields: Vec<&String> = source["properties"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["branch", "filePath", "type", "url"]);
    assert_eq!(
        source["properties"]["type"]["enum"],
        serde_json::json!(["Git", "Archive", "Nothing"])
    );
    let rules = source["x-kubernetes-validations"].as_array().unwrap();
    let rules: Vec<&str> = rules
        .iter()
        .filter_map(|rule| rule["rule"].as_str())
        .collect();
    assert_eq!(
        rules,
        [
            "self.type != 'Git' || has(self.url)",
            "self.type != 'Archive' || has(self.filePath)",
        ]
    );
    assert_eq!(spec["properties"]["other"]["nullable"], true);
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
enum Untransformed {
    Git { url: String },
    Archive { path: String },
}

kind!(
    "Untold",
    struct UntoldSpec {
        source: Untransformed,
    }
);

#[test]
fn an_enum_with_a_tag_and_no_transform_is_an_error_that_says_what_helps() {
    let error = spec_of::<Untold>().unwrap_err();
    assert!(error.starts_with("untolds.kinds.example.com: "), "{error}");
    assert!(error.contains("\"type\""), "{error}");
    assert!(error.contains("windlass::kind::one_of"), "{error}");
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Common {
    colour: String,
}

kind!(
    "Flat",
    struct FlatSpec {
        #[serde(flatten)]
        common: Common,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }
);

#[test]
fn a_flattened_struct_is_its_fields_and_a_flattened_map_keeps_what_is_unknown() {
    let spec = spec_of::<Flat>().unwrap();
    assert_eq!(spec["properties"]["colour"]["type"], "string");
    assert_eq!(spec["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(spec.get("additionalProperties"), None);
}

kind!(
    "FlatMap",
    struct FlatMapSpec {
        name: String,
        #[serde(flatten)]
        rest: BTreeMap<String, String>,
    }
);

#[test]
fn a_flattened_map_of_texts_beside_fields_is_an_error_that_names_it() {
    let error = spec_of::<FlatMap>().unwrap_err();
    assert!(
        error.contains("v1 .spec: it has named fields and a map flattened"),
        "{error}"
    );
}

kind!(
    "Loose",
    struct LooseSpec {
        map: BTreeMap<String, Value>,
        list: Vec<Value>,
        value: Value,
        maybe: Option<Value>,
        maps: BTreeMap<String, BTreeMap<String, Value>>,
    }
);

#[test]
fn values_of_any_type_are_kept_as_they_are() {
    let spec = spec_of::<Loose>().unwrap();
    let any = "x-kubernetes-preserve-unknown-fields";
    let fields = &spec["properties"];
    assert_eq!(fields["map"]["additionalProperties"][any], true);
    assert_eq!(fields["value"][any], true);
    assert_eq!(fields["list"]["items"][any], true);
    assert_eq!(fields["maybe"][any], true);
    let inner = &fields["maps"]["additionalProperties"]["additionalProperties"];
    assert_eq!(inner[any], true);
}

kind!(
    "Bag",
    struct BagSpec {
        lists: BTreeMap<String, BTreeMap<String, Vec<Value>>>,
    }
);

#[test]
fn a_list_of_any_values_inside_a_map_is_an_error_that_says_what_helps() {
    let error = spec_of::<Bag>().unwrap_err();
    assert!(error.starts_with("bags.kinds.example.com: "), "{error}");
    assert!(error.contains("BTreeMap<String, Value>"), "{error}");
}

kind!(
    "Numbers",
    struct NumbersSpec {
        port: IntOrString,
        maybe: Option<IntOrString>,
        amount: Quantity,
        small: u8,
        wide: u64,
        nested: Option<Option<i32>>,
    }
);

#[test]
fn numbers_have_formats_and_bounds_the_api_server_knows() {
    let spec = spec_of::<Numbers>().unwrap();
    let fields = &spec["properties"];
    assert_eq!(fields["port"]["x-kubernetes-int-or-string"], true);
    assert_eq!(fields["maybe"]["x-kubernetes-int-or-string"], true);
    assert_eq!(fields["small"]["format"], "int32");
    assert_eq!(fields["small"]["maximum"], 255.0);
    assert_eq!(fields["wide"]["format"], "int64");
    assert_eq!(fields["nested"]["type"], "integer");
    assert_eq!(fields["nested"]["nullable"], true);
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

kind!(
    "Recursive",
    struct RecursiveSpec {
        tree: Tree,
    }
);

#[test]
fn a_type_that_contains_itself_is_an_error_that_names_the_field() {
    let error = spec_of::<Recursive>().unwrap_err();
    assert!(
        error.contains(".children[]: the type contains itself"),
        "{error}"
    );
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    Number(i32),
    Text(String),
}

kind!(
    "Mixed",
    struct MixedSpec {
        either: Either,
    }
);

#[test]
fn a_value_of_two_types_is_an_error_that_names_the_field() {
    let error = spec_of::<Mixed>().unwrap_err();
    assert!(error.contains("v1 .spec.either: "), "{error}");
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Choice {
    Local { path: String },
    Remote { url: String },
}

kind!(
    "External",
    struct ExternalSpec {
        choice: Choice,
        maybe: Option<Choice>,
    }
);

#[test]
fn an_enum_without_a_tag_is_one_field_of_several() {
    let spec = spec_of::<External>().unwrap();
    let choice = &spec["properties"]["choice"];
    assert_eq!(
        choice["properties"]["local"]["properties"]["path"]["type"],
        "string"
    );
    assert_eq!(choice["oneOf"][1]["required"][0], "remote");
}

kind!(
    "Pair",
    struct PairSpec {
        pair: (i32, String),
    }
);

#[test]
fn a_tuple_is_an_error_that_names_the_field() {
    let error = spec_of::<Pair>().unwrap_err();
    assert!(error.contains("pair"), "{error}");
}

#[test]
fn flawed_kinds_have_no_manifests() {
    let operator = operator::<Recursive>();
    let description = operator.description();
    let installation = windlass::manifests::Installation::of(&description);
    let error = windlass::manifests::manifests(&description, &installation).unwrap_err();
    assert!(error.to_string().contains(".children[]"), "{error}");
}
