//! [`object!`](crate::object): Kubernetes objects, written as short as in YAML and checked by the
//! compiler.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString},
};

/// Makes an object of any type that has a `Default`, by the fields that matter.
///
/// Fields have the names of the Rust type, so the compiler finds a misspelt one, and rustdoc and
/// the editor know them. `{ … }` is a nested struct, or a map if its keys are strings; `[ … ]` is a
/// list. Anything else is an expression. `Some`, `String::from`, `Quantity` and `IntOrString` are
/// added where the field's type asks for them. What is not named keeps its default.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use windlass::object;
///
/// let (name, replicas) = ("cache".to_owned(), 3);
/// let labels = windlass::labels([("app", "cache")]);
/// let deployment = object!(Deployment {
///     metadata: { name: name, labels: labels.clone() },
///     spec: {
///         replicas: replicas,
///         selector: { match_labels: labels.clone() },
///         template: {
///             metadata: { labels: labels, annotations: { "example.com/config": "v1" } },
///             spec: {
///                 containers: [{
///                     name: "cache",
///                     image: "memcached:1.6.6",
///                     args: ["-m", "64"],
///                     ports: [{ name: "cache", container_port: 11211 }],
///                     resources: { requests: { "cpu": "100m", "memory": "128Mi" } },
///                     liveness_probe: { tcp_socket: { port: 11211 } },
///                 }],
///             },
///         },
///     },
/// });
/// let container = &deployment.spec.unwrap().template.spec.unwrap().containers[0];
/// assert_eq!(container.args.as_ref().unwrap(), &["-m", "64"]);
/// ```
///
/// A field that does not exist does not compile:
///
/// ```compile_fail
/// # use k8s_openapi::api::apps::v1::Deployment;
/// windlass::object!(Deployment { spec: { replica: 3 } });
/// ```
#[macro_export]
macro_rules! object {
    ($kind:ty { $($fields:tt)* }) => {{
        let mut object = <$kind as ::core::default::Default>::default();
        $crate::__object_fields!((&mut object) $($fields)*);
        object
    }};
}

/// Sets the fields of a struct. Not to be called.
#[doc(hidden)]
#[macro_export]
macro_rules! __object_fields {
    (($at:expr)) => {
        let _ = $at;
    };
    // A map: its keys are strings.
    (($at:expr) $key:literal : $($rest:tt)*) => {
        let at = $at;
        $crate::__object_entries!((at) $key : $($rest)*);
    };
    (($at:expr) $($fields:tt)*) => {
        let at = $at;
        $crate::__object_struct!((at) $($fields)*);
    };
}

/// Sets the fields of a struct, one after the other. Not to be called.
#[doc(hidden)]
#[macro_export]
macro_rules! __object_struct {
    (($at:ident)) => {};
    (($at:ident) $field:ident : { $($body:tt)* } $(, $($rest:tt)*)?) => {
        {
            #[allow(unused_imports, reason = "an option has the method itself")]
            use $crate::__object::Plain as _;
            $crate::__object_fields!(($crate::__object::At(&mut $at.$field).nested()) $($body)*);
        }
        $crate::__object_struct!(($at) $($($rest)*)?);
    };
    (($at:ident) $field:ident : [ $($items:tt)* ] $(, $($rest:tt)*)?) => {
        {
            #[allow(unused_imports, reason = "an option has the method itself")]
            use $crate::__object::Plain as _;
            let list = $crate::__object::At(&mut $at.$field).nested();
            let _ = &list;
            $crate::__object_items!((list) $($items)*);
        }
        $crate::__object_struct!(($at) $($($rest)*)?);
    };
    (($at:ident) $field:ident : $value:expr $(, $($rest:tt)*)?) => {
        $at.$field = $crate::__object::IntoField::into_field($value);
        $crate::__object_struct!(($at) $($($rest)*)?);
    };
    // The name of the variable is that of the field.
    (($at:ident) $field:ident $(, $($rest:tt)*)?) => {
        $at.$field = $crate::__object::IntoField::into_field($field);
        $crate::__object_struct!(($at) $($($rest)*)?);
    };
}

/// Adds the items of a list. Not to be called.
#[doc(hidden)]
#[macro_export]
macro_rules! __object_items {
    (($list:ident)) => {};
    (($list:ident) { $($body:tt)* } $(, $($rest:tt)*)?) => {
        {
            $crate::__object_fields!(($crate::__object::pushed($list)) $($body)*);
        }
        $crate::__object_items!(($list) $($($rest)*)?);
    };
    (($list:ident) $value:expr $(, $($rest:tt)*)?) => {
        $list.push($crate::__object::IntoField::into_field($value));
        $crate::__object_items!(($list) $($($rest)*)?);
    };
}

/// Adds the entries of a map. Not to be called.
#[doc(hidden)]
#[macro_export]
macro_rules! __object_entries {
    (($map:ident)) => {};
    (($map:ident) $key:literal : $value:expr $(, $($rest:tt)*)?) => {
        $map.insert(
            ::std::string::String::from($key),
            $crate::__object::IntoField::into_field($value),
        );
        $crate::__object_entries!(($map) $($($rest)*)?);
    };
}

/// Labels of an object; annotations and the data of a `ConfigMap` have the same form.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use windlass::{Watched, kind::Labels, labels};
/// # type App = k8s_openapi::api::core::v1::ConfigMap;
///
/// fn labels_of(app: &App) -> Labels {
///     labels([("app", app.metadata.name.clone().unwrap_or_default())])
/// }
///
/// let pods = Pod::selected_by(labels_of);
/// # windlass::Controller::of_existing::<App>().reads(pods);
/// ```
pub type Labels = BTreeMap<String, String>;

/// [`Labels`] from pairs of strings.
///
/// ```
/// let labels = windlass::labels([("app", "cache"), ("instance", &format!("cache-{}", 1))]);
/// assert_eq!(labels["instance"], "cache-1");
/// ```
pub fn labels<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Labels {
    let pairs = pairs.into_iter();
    pairs
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

/// A field that is about to be set.
#[doc(hidden)]
pub struct At<'a, T>(pub &'a mut T);

impl<'a, T: Default> At<'a, Option<T>> {
    /// What is in the option; made when it is none.
    pub fn nested(self) -> &'a mut T {
        self.0.get_or_insert_with(T::default)
    }
}

/// A field that is no option; an inherent method of [`At`] comes before it for those that are.
#[doc(hidden)]
pub trait Plain<'a, T> {
    fn nested(self) -> &'a mut T;
}

impl<'a, T> Plain<'a, T> for At<'a, T> {
    fn nested(self) -> &'a mut T {
        self.0
    }
}

/// A new item at the end of a list.
#[doc(hidden)]
pub fn pushed<T: Default>(list: &mut Vec<T>) -> &mut T {
    list.push(T::default());
    let end = list.len() - 1;
    &mut list[end]
}

/// What can be written for a field of type `F`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a field of type `{F}` cannot be set to `{Self}`",
    label = "expected `{F}`, or what it is made from"
)]
pub trait IntoField<F> {
    fn into_field(self) -> F;
}

impl<T> IntoField<T> for T {
    fn into_field(self) -> T {
        self
    }
}

impl<T> IntoField<Option<T>> for T {
    fn into_field(self) -> Option<T> {
        Some(self)
    }
}

macro_rules! conversions {
    ($($from:ty => $to:ty: $with:expr;)*) => {$(
        impl IntoField<$to> for $from {
            fn into_field(self) -> $to {
                let with: fn($from) -> $to = $with;
                with(self)
            }
        }

        impl IntoField<Option<$to>> for $from {
            fn into_field(self) -> Option<$to> {
                Some(IntoField::<$to>::into_field(self))
            }
        }
    )*};
}

conversions! {
    &str => String: str::to_owned;
    &String => String: String::clone;
    &str => Quantity: |text| Quantity(text.to_owned());
    String => Quantity: Quantity;
    &str => IntOrString: |text| IntOrString::String(text.to_owned());
    String => IntOrString: IntOrString::String;
    i32 => IntOrString: IntOrString::Int;
    u16 => IntOrString: |number| IntOrString::Int(number.into());
    u16 => i32: i32::from;
    &str => ByteString: |text| ByteString(text.as_bytes().to_vec());
    &[u8] => ByteString: |bytes| ByteString(bytes.to_vec());
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Secret, Service},
    };
    use serde_json::json;

    #[test]
    fn nested_structs_lists_and_maps_become_what_yaml_would() {
        let labels = crate::labels([("app", "x")]);
        let name = format!("{}-y", "x");
        let port: u16 = 80;
        let deployment = object!(Deployment {
            metadata: { name, labels: labels.clone() },
            spec: {
                replicas: 3,
                selector: { match_labels: labels.clone() },
                template: {
                    metadata: { labels: labels },
                    spec: {
                        containers: [
                            {
                                name: "a",
                                command: ["sh", "-c"],
                                args: vec!["true".to_owned()],
                                resources: { limits: { "memory": "1Gi" } },
                                liveness_probe: { tcp_socket: { port: port } },
                            },
                            { name: "b", ports: [{ container_port: port }] },
                        ],
                        termination_grace_period_seconds: Some(5),
                    },
                },
            },
        });
        assert_eq!(
            serde_json::to_value(deployment).unwrap(),
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "x-y", "labels": {"app": "x"}},
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": {"app": "x"}},
                    "template": {
                        "metadata": {"labels": {"app": "x"}},
                        "spec": {
                            "containers": [
                                {
                                    "name": "a", "command": ["sh", "-c"], "args": ["true"],
                                    "resources": {"limits": {"memory": "1Gi"}},
                                    "livenessProbe": {"tcpSocket": {"port": 80}},
                                },
                                {"name": "b", "ports": [{"containerPort": 80}]},
                            ],
                            "terminationGracePeriodSeconds": 5,
                        },
                    },
                },
            })
        );
    }

    #[test]
    fn empty_bodies_and_optional_values_are_kept_as_they_are() {
        let none: Option<String> = None;
        let service = object!(Service { spec: { cluster_ip: none, ports: [] } });
        let spec = service.spec.unwrap();
        assert_eq!((spec.cluster_ip, spec.ports), (None, Some(Vec::new())));
        assert_eq!(object!(ConfigMap {}), ConfigMap::default());
        let secret = object!(Secret { data: { "key": "value" } });
        assert_eq!(secret.data.unwrap()["key"].0, b"value");
    }
}
