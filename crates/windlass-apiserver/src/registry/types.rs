//! The types of objects, as far as merging, ownership and field checks need them.
//!
//! Built-in kinds take theirs from the table of facts, custom kinds from their CRD's schema; both
//! come out as this one [`Type`], so apply, strategic merge and decoding have one implementation.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::registry::facts::{self, Definition};

/// A JSON value that is not a map or a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    /// Text that is base64.
    Bytes,
    Int32,
    Integer,
    Number,
    Boolean,
    IntOrString,
    /// Text of a format of its own, of which merging knows only that it is no map and no list.
    Untyped,
    /// `100m`, `1Gi`: text or number on the wire.
    Quantity,
    /// An RFC 3339 timestamp, to the second.
    Time,
    /// One to the microsecond.
    MicroTime,
}

/// How the items of a list are told apart when two lists are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// Not at all: the list is replaced whole.
    Atomic,
    /// By their value.
    Set,
    /// By these fields.
    Map(Vec<String>),
}

/// How strategic merge treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PatchRule {
    pub(crate) merge: bool,
    /// Not even a struct is merged.
    pub(crate) replace: bool,
    pub(crate) merge_key: Option<String>,
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) ty: Type,
    pub(crate) patch: PatchRule,
    pub(crate) default: Option<Value>,
}

/// A type.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// A definition of the table of facts, by name.
    Named(Name),
    Scalar(Scalar),
    /// Known fields; `open` types keep unknown ones.
    Struct {
        fields: BTreeMap<String, Field>,
        atomic: bool,
        open: bool,
    },
    Map {
        value: Box<Type>,
        atomic: bool,
    },
    List {
        item: Box<Type>,
        kind: ListKind,
    },
    /// Nothing is known: maps merge by key, lists are replaced.
    Any,
}

static ANY: Type = Type::Any;

/// The name of a definition. What it stands for is looked up once: every write goes down the types
/// of its object many times.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    text: Box<str>,
    definition: OnceLock<Option<&'static Definition>>,
}

impl<T: Into<Box<str>>> From<T> for Name {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            definition: OnceLock::new(),
        }
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Name {
    fn definition(&self) -> Option<&'static Definition> {
        *self
            .definition
            .get_or_init(|| facts::get().definition(&self.text))
    }
}

/// What stands before the name of a type whose fields are owned one by one where it is used,
/// though the type itself is replaced whole.
pub(crate) const GRANULAR: &str = "granular#";

impl Type {
    /// The name of the definition, if it is one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Type::Named(name) => Some(name.strip_prefix(GRANULAR).unwrap_or(name)),
            _ => None,
        }
    }

    /// What is known of the definition, if it is one.
    pub(crate) fn definition(&self) -> Option<&'static Definition> {
        match self {
            Type::Named(name) => name.definition(),
            _ => None,
        }
    }

    /// The fields that are on the wire even when nobody set them, and what they hold then.
    pub(crate) fn zeros(&self) -> Option<&'static Map<String, Value>> {
        self.definition().map(|definition| &definition.zeros)
    }

    /// Follows names to what they stand for.
    pub(crate) fn resolve(&self) -> &Type {
        let mut ty = self;
        // A chain of names is never long; the bound keeps a broken table from looping.
        for _ in 0..8 {
            match ty {
                Type::Named(name) => ty = name.definition().map_or(&ANY, |found| &found.ty),
                other => return other,
            }
        }
        &ANY
    }

    /// Whether nothing is known of values of this type, nor of what is in them.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self.resolve(), Type::Any)
    }

    /// The type of the value under `key`.
    pub(crate) fn member(&self, key: &str) -> &Type {
        match self.resolve() {
            Type::Struct { fields, .. } => fields.get(key).map_or(&ANY, |field| &field.ty),
            Type::Map { value, .. } => value,
            _ => &ANY,
        }
    }

    /// The declared field `key`, if this is a struct that has it.
    pub(crate) fn field(&self, key: &str) -> Option<&Field> {
        match self.resolve() {
            Type::Struct { fields, .. } => fields.get(key),
            _ => None,
        }
    }

    /// The type of a list's items.
    pub(crate) fn item(&self) -> &Type {
        match self.resolve() {
            Type::List { item, .. } => item,
            _ => &ANY,
        }
    }

    /// Whether values of this type are replaced whole.
    pub(crate) fn is_atomic(&self) -> bool {
        match self.resolve() {
            Type::Struct { atomic, .. } | Type::Map { atomic, .. } => *atomic,
            Type::List { kind, .. } => *kind == ListKind::Atomic,
            Type::Scalar(_) => true,
            Type::Named(_) | Type::Any => false,
        }
    }
}

/// The name of a type in a decoding error: `int32`, `map[string]string`, `[]v1.Container`.
pub(crate) fn type_name(ty: &Type) -> String {
    match ty {
        Type::Named(name) => match ty.resolve() {
            Type::Struct { .. } => {
                let mut parts = name.rsplit('.');
                let (kind, version) = (parts.next(), parts.next());
                format!(
                    "{}.{}",
                    version.unwrap_or_default(),
                    kind.unwrap_or_default()
                )
            }
            other => type_name(other),
        },
        Type::Scalar(scalar) => match scalar {
            Scalar::String | Scalar::Untyped => "string",
            Scalar::Bytes => "[]uint8",
            Scalar::Int32 => "int32",
            Scalar::Integer => "int64",
            Scalar::Number => "float64",
            Scalar::Boolean => "bool",
            Scalar::IntOrString => "intstr.IntOrString",
            Scalar::Quantity => "resource.Quantity",
            Scalar::Time => "v1.Time",
            Scalar::MicroTime => "v1.MicroTime",
        }
        .to_owned(),
        Type::Map { value, .. } => format!("map[string]{}", type_name(value)),
        Type::List { item, .. } => format!("[]{}", type_name(item)),
        Type::Struct { .. } | Type::Any => "map[string]interface {}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_as_go_names_them() {
        let pod = Type::Named("io.k8s.api.core.v1.PodSpec".into());
        assert_eq!(type_name(pod.member("containers")), "[]v1.Container");
        assert_eq!(type_name(pod.member("nodeSelector")), "map[string]string");
        assert_eq!(type_name(pod.member("priority")), "int32");
    }
}
