//! From what a client sent to an object of a known type.
//!
//! A built-in object is read as Go would read it into a struct: unknown fields are dropped (and
//! told), nulls and empty collections vanish, a value of the wrong type is an error.

mod place;
pub(crate) mod protobuf;

use base64::Engine as _;
use serde_json::{Value, json};

use self::place::Place;
use crate::crd::CustomVersion;
use crate::defaults;
use crate::facts;
use crate::go;
use crate::http::Query;
use crate::quantity::{self, Quantity};
use crate::resource::Resource;
use crate::status::{ApiError, Result, field};
use crate::timestamp::{self, Precision};
use crate::types::{ListKind, Scalar, Type};

/// What to do about fields the server does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl FieldValidation {
    /// What the query asks for; the value itself when it is none of these.
    pub(crate) fn from_query(query: &Query) -> Result<Self, &str> {
        match query.get("fieldValidation") {
            None | Some("Warn") => Ok(Self::Warn),
            Some("Ignore") => Ok(Self::Ignore),
            Some("Strict") => Ok(Self::Strict),
            Some(other) => Err(other),
        }
    }
}

/// The sentence of every body that is of this kind and cannot be read.
pub(crate) fn unreadable(resource: &Resource, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{} in version \"{}\" cannot be handled as a {}: {why}",
        resource.kind, resource.version, resource.kind
    ))
}

/// Checks that the body is an object of this resource's kind, filling in nothing. A typed body may
/// leave kind and version out: the path tells.
pub(crate) fn check_kind(object: &Value, resource: &Resource) -> Result<()> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let same_version = api_version.is_empty() || api_version == resource.api_version();
    if (kind.is_empty() || kind == resource.kind) && same_version {
        return Ok(());
    }
    if resource.is_custom() {
        return Err(if same_version {
            let cause = field::invalid("kind", &kind.into(), &format!("must be {}", resource.kind));
            let mut subject = resource.kind_subject();
            subject.kind = kind;
            ApiError::invalid(subject, crate::object::meta(object, "name"), &[cause])
        } else {
            ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                resource.api_version()
            ))
        });
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let registered = facts::get()
        .resources
        .iter()
        .any(|known| known.kind == kind && known.group == group && known.version == version);
    let why = if registered {
        let package = |group: &str| match group.split('.').next() {
            None | Some("") => "core".to_owned(),
            Some(name) => name.to_owned(),
        };
        format!(
            "converting ({version}.{kind}) to ({}.{}): unknown conversion",
            package(&resource.group),
            resource.kind
        )
    } else {
        format!(
            "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )
    };
    Err(ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {}: {why}",
        resource.kind
    )))
}

/// Brings an object into the form it is stored in; the unknown fields come back, or why it is not
/// of its type.
pub(crate) fn normalise(object: &mut Value, resource: &Resource) -> Result<Vec<String>, String> {
    normalise_as(object, resource, CustomVersion::read)
}

/// The same for an object that an apply made.
pub(crate) fn normalise_applied(
    object: &mut Value,
    resource: &Resource,
) -> Result<Vec<String>, String> {
    normalise_as(object, resource, CustomVersion::read_applied)
}

fn normalise_as(
    object: &mut Value,
    resource: &Resource,
    read: fn(&CustomVersion, &mut Value) -> Result<Vec<String>, String>,
) -> Result<Vec<String>, String> {
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".into(), resource.api_version().into());
        map.insert("kind".into(), resource.kind.clone().into());
        if map.get("metadata").is_none_or(serde_json::Value::is_null) {
            map.insert("metadata".into(), json!({}));
        }
    }
    // An empty list of owners and one empty owner both ask for ownership to be forgotten.
    if object["metadata"].get("managedFields") == Some(&json!([])) {
        object["metadata"]["managedFields"] = json!([{}]);
    }
    let mut reader = Reader::of(&resource.kind);
    match &resource.custom {
        None => reader.read(object, &resource.ty, &Place::Root)?,
        Some(custom) => {
            let place = Place::Field(&Place::Root, "metadata");
            if let Some(metadata) = object.get_mut("metadata") {
                reader.structure = "ObjectMeta";
                reader.read(metadata, resource.ty.member("metadata"), &place)?;
            }
            reader.unknown.extend(read(custom, object)?);
        }
    }
    Ok(reader.unknown)
}

/// Reads the metadata of an object inside of another; its unknown fields come back.
pub(crate) fn read_metadata(metadata: &mut Value) -> Result<Vec<String>, String> {
    let mut reader = Reader::of("ObjectMeta");
    let ty = Type::Named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta".into());
    reader.read(metadata, &ty, &Place::Root)?;
    Ok(reader.unknown)
}

/// Why an object that calls itself another built-in kind cannot be read as this one.
pub(crate) fn misread(object: &Value, resource: &Resource) -> Option<String> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let claimed = facts::get().resources.iter().find(|known| {
        let api_version = match known.group.as_str() {
            "" => known.version.clone(),
            group => format!("{group}/{}", known.version),
        };
        known.kind == text("kind") && api_version == text("apiVersion")
    });
    match claimed {
        Some(known) if known.kind != resource.kind => {
            let mut reader = Reader::of(&known.kind);
            let ty = Type::Named(known.type_name.as_str().into());
            let read = reader.read(&mut object.clone(), &ty, &Place::Root);
            read.err().or_else(|| {
                check_kind(object, resource)
                    .err()
                    .map(|error| error.message)
            })
        }
        _ => check_kind(object, resource)
            .err()
            .map(|error| error.message),
    }
}

struct Reader<'t> {
    /// The struct that holds what is being read.
    structure: &'t str,
    unknown: Vec<String>,
    /// How many lists that are compared as a whole it is in: there Go keeps an empty list apart
    /// from none while it compares. `defaults::drop_empties` ends that.
    wholes: usize,
}

impl<'t> Reader<'t> {
    fn of(structure: &'t str) -> Self {
        Self {
            structure,
            unknown: Vec::new(),
            wholes: 0,
        }
    }

    fn mismatch(&self, value: &Value, ty: &Type, place: &Place<'_>) -> String {
        // A number that is no number of this sort is shown.
        let shown = match (value, ty.resolve()) {
            (Value::Number(number), Type::Scalar(Scalar::Int32 | Scalar::Integer)) => {
                format!("number {number}")
            }
            _ => go::json_kind(value),
        };
        format!(
            "json: cannot unmarshal {shown} into Go struct field {}.{} of type {}",
            self.structure,
            place.fields(),
            go::type_name(ty)
        )
    }

    /// Reads `value` as `ty`; the error is the one Go's decoder would give.
    fn read(&mut self, value: &mut Value, ty: &'t Type, place: &Place<'_>) -> Result<(), String> {
        let shape_fits = match ty.resolve() {
            // Somebody else's object is kept as it comes, and looked at later if at all.
            Type::Struct {
                fields,
                open: true,
                atomic: true,
            } if fields.is_empty() => return Ok(()),
            Type::Struct { .. } | Type::Map { .. } => value.is_object() || value.is_null(),
            Type::List { .. } => value.is_array() || value.is_null(),
            Type::Scalar(scalar) => return self.read_scalar(value, *scalar, ty, place),
            Type::Any | Type::Named(_) => return Ok(()),
        };
        if !shape_fits {
            return Err(self.mismatch(value, ty, place));
        }
        match (ty.resolve(), value) {
            (Type::Struct { fields, open, .. }, Value::Object(map)) => {
                let outer = self.structure;
                if let (Type::Named(name), false) = (ty, place.is_root()) {
                    self.structure = name.rsplit('.').next().unwrap_or_default();
                }
                for (name, value) in map.iter_mut() {
                    let place = Place::Field(place, name);
                    match fields.get(name) {
                        Some(field) => self.read(value, &field.ty, &place)?,
                        None if *open => {}
                        None => self.unknown.push(place.path()),
                    }
                }
                let zeros = ty.zeros();
                map.retain(|name, value| match fields.get(name) {
                    None => *open,
                    // A list that is on the wire anyway is told apart from one that was not sent.
                    Some(_)
                        if value.is_array()
                            && zeros.is_some_and(|zeros| zeros.contains_key(name)) =>
                    {
                        true
                    }
                    Some(field) => {
                        let kept =
                            self.wholes > 0 || defaults::is_shown_empty(self.structure, name);
                        !is_nothing(value, &field.ty) || (kept && !value.is_null())
                    }
                });
                self.structure = outer;
                Ok(())
            }
            (Type::Map { value: ty, .. }, Value::Object(map)) => {
                map.iter_mut().try_for_each(|(name, value)| {
                    // A map keeps an entry that is null, as nothing of its type.
                    if let (Value::Null, Type::Scalar(Scalar::String)) = (&*value, ty.resolve()) {
                        *value = "".into();
                    }
                    self.read(value, ty, &Place::Entry(place, name))
                })
            }
            (Type::List { item, kind }, Value::Array(items)) => {
                let whole = usize::from(*kind == ListKind::Atomic);
                self.wholes += whole;
                let read = items.iter_mut().enumerate().try_for_each(|(index, value)| {
                    self.read(value, item, &Place::Item(place, index))
                });
                self.wholes -= whole;
                read
            }
            _ => Ok(()),
        }
    }

    fn read_scalar(
        &self,
        value: &mut Value,
        scalar: Scalar,
        ty: &Type,
        place: &Place<'_>,
    ) -> Result<(), String> {
        let whole = value.is_i64() || value.is_u64();
        let fits = match scalar {
            Scalar::String | Scalar::Untyped => value.is_string(),
            Scalar::Int32 => value
                .as_i64()
                .is_some_and(|number| i32::try_from(number).is_ok()),
            Scalar::Integer => whole,
            Scalar::Number => value.is_number(),
            Scalar::Boolean => value.is_boolean(),
            Scalar::IntOrString => value.is_string() || whole,
            Scalar::Time => return read_time(value, Precision::Seconds),
            Scalar::MicroTime => return read_time(value, Precision::Micros),
            Scalar::Bytes if value.is_string() || value.is_null() => return read_bytes(value),
            Scalar::Bytes => {
                return Err(format!(
                    "json: cannot unmarshal {} into Go struct field {}.{} of type []uint8",
                    go::json_kind(value),
                    self.structure,
                    place.fields()
                ));
            }
            Scalar::Quantity => return read_quantity(value),
        };
        if fits || value.is_null() {
            return Ok(());
        }
        Err(self.mismatch(value, ty, place))
    }
}

/// What a Go struct does not keep apart from absence.
fn is_nothing(value: &Value, ty: &Type) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty() && !matches!(ty.resolve(), Type::Any),
        Value::Object(map) => map.is_empty() && matches!(ty.resolve(), Type::Map { .. }),
        _ => false,
    }
}

/// Without a type, a number that is whole is shown as such, however it was written.
pub(crate) fn whole_numbers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| {
                number.is_f64() && float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0
            });
            if let Some(whole) = whole {
                #[allow(clippy::cast_possible_truncation, reason = "whole, and within 53 bits")]
                let whole = whole as i64;
                *value = whole.into();
            }
        }
        _ => {}
    }
}

/// A time is kept in UTC, as precise as its type is.
fn read_time(value: &mut Value, precision: Precision) -> Result<(), String> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) => {
            *text = timestamp::canonical(text, precision)?;
            Ok(())
        }
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type string",
            go::json_kind(other)
        )),
    }
}

/// Base64 as Go reads it: line breaks and the last bits do not count.
const LENIENT: base64::engine::GeneralPurpose = base64::engine::GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    base64::engine::GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Bytes are kept as Go would write them.
fn read_bytes(value: &mut Value) -> Result<(), String> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) => {
            let plain = text.replace(['\n', '\r'], "");
            match LENIENT.decode(plain.as_bytes()) {
                Ok(bytes) => {
                    *text = LENIENT.encode(bytes);
                    Ok(())
                }
                Err(error) => {
                    let at = match error {
                        base64::DecodeError::InvalidByte(at, _)
                        | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                        // The group of four that is not whole.
                        base64::DecodeError::InvalidLength(_)
                        | base64::DecodeError::InvalidPadding => plain.len() - plain.len() % 4,
                    };
                    Err(format!("illegal base64 data at input byte {at}"))
                }
            }
        }
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type []uint8",
            go::json_kind(other)
        )),
    }
}

/// A quantity is kept in its canonical form.
fn read_quantity(value: &mut Value) -> Result<(), String> {
    let text = match value {
        Value::Null => return Ok(()),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(quantity::MALFORMED.to_owned()),
    };
    let read = Quantity::parse(&text).ok_or_else(|| quantity::problem(&text).to_owned())?;
    *value = read.to_string().into();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(value: &mut Value, ty: &str) -> Result<Vec<String>, String> {
        let mut reader = Reader::of(ty);
        let ty = Type::Named(format!("io.k8s.api.core.v1.{ty}").into());
        reader.read(value, &ty, &Place::Root)?;
        Ok(reader.unknown)
    }

    #[test]
    fn what_go_would_not_keep_is_dropped() {
        let mut pod = json!({"spec": {"containers": [{"name": "c", "args": [], "odd": 1, "resources": {"limits": {"cpu": 0.5}}}], "nodeSelector": {}, "volumes": null}});
        let unknown = read(&mut pod, "Pod").unwrap();
        assert_eq!(unknown, ["spec.containers[0].odd"]);
        assert_eq!(
            pod,
            json!({"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "500m"}}}]}})
        );
    }

    #[test]
    fn errors_name_the_place_as_go_does() {
        let error = |mut value: Value| read(&mut value, "Pod").unwrap_err();
        assert_eq!(
            error(json!({"spec": {"containers": [{"name": 1}]}})),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string"
        );
        assert_eq!(
            error(json!({"spec": {"containers": {}}})),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"
        );
        assert_eq!(
            error(json!({"metadata": {"labels": {"a": 1}}})),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
        );
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z0-9%]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 32, 4, |inner| {
            let key = proptest::sample::select(vec![
                "metadata",
                "spec",
                "status",
                "containers",
                "name",
                "resources",
                "limits",
                "cpu",
                "managedFields",
                "labels",
                "env",
                "ports",
                "odd",
            ]);
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map(key, inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn reading_twice_changes_nothing_more(mut value in tree()) {
            if read(&mut value, "Pod").is_ok() {
                let once = value.clone();
                prop_assert_eq!(read(&mut value, "Pod"), Ok(Vec::new()));
                prop_assert_eq!(value, once);
            }
        }
    }
}
