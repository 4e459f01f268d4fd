//! A value read as Go reads it into a struct: unknown fields are dropped (and told), nulls and empty
//! collections vanish, a value of the wrong type is an error.

use serde_json::Value;

use super::DecodeError;
use super::scalar::{read_bytes, read_quantity, read_time};
use crate::defaults;
use crate::findings::{Findings, MOST_STRANGE};
use crate::go;
use crate::place::Place;
use crate::registry::types::{self, ListKind, Scalar, Type};
use crate::steps::step;
use crate::timestamp::Precision;

/// Reads a value into its type, field by field.
pub(super) struct Reader<'t> {
    /// The struct that holds what is being read.
    pub(super) structure: &'t str,
    pub(super) unknown: Findings,
    /// How many lists that are compared as a whole it is in: there Go keeps an empty list apart
    /// from none while it compares. `defaults::drop_empties` ends that.
    wholes: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn of(structure: &'t str) -> Self {
        Self {
            structure,
            unknown: Findings::at_most(MOST_STRANGE),
            wholes: 0,
        }
    }

    fn mismatch(&self, value: &Value, ty: &Type, place: &Place<'_>) -> DecodeError {
        // A number that is no number of this sort is shown.
        let shown = match (value, ty.resolve()) {
            (Value::Number(number), Type::Scalar(Scalar::Int32 | Scalar::Integer)) => {
                format!("number {number}")
            }
            _ => go::json_kind(value),
        };
        self.misfit(shown, types::type_name(ty), place)
    }

    fn misfit(&self, found: String, ty: impl Into<String>, place: &Place<'_>) -> DecodeError {
        DecodeError::Field {
            found,
            structure: self.structure.to_owned(),
            field: place.fields(),
            ty: ty.into(),
        }
    }

    /// Reads `value` as `ty`; the error is the one Go's decoder would give.
    pub(super) fn read(
        &mut self,
        value: &mut Value,
        ty: &'t Type,
        place: &Place<'_>,
    ) -> Result<(), DecodeError> {
        step();
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
                        None => self.unknown.add(|| place.path()),
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
    ) -> Result<(), DecodeError> {
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
                return Err(self.misfit(go::json_kind(value), "[]uint8", place));
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(value: &mut Value, ty: &str) -> Result<Vec<String>, DecodeError> {
        let mut reader = Reader::of(ty);
        let ty = Type::Named(format!("io.k8s.api.core.v1.{ty}").into());
        reader.read(value, &ty, &Place::Root)?;
        Ok(reader.unknown.into_texts())
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
        let error = |mut value: Value| read(&mut value, "Pod").unwrap_err().to_string();
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
