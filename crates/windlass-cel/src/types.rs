//! The types of CEL, as far as expressions over objects need them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::cost::Declared;

/// An object with known fields, by their escaped names.
#[derive(Debug, Default)]
pub struct Object {
    /// The fields, as expressions name them.
    pub fields: BTreeMap<String, Arc<Declared>>,
}

/// A type.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the variants are the types of CEL")]
pub enum Type {
    /// Anything: what it is comes out when the expression is run.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Object(Arc<Object>),
    Optional(Box<Type>),
    /// A type as a value: `type(x)`, `int`.
    Kind,
    /// A value of a library: an address, a quantity.
    Opaque(&'static str),
    /// A type that is still to be found out.
    Unknown(usize),
    /// What has no type, because something is wrong with it.
    Error,
}

impl Type {
    /// A type by the name that is also a value in CEL.
    pub(super) fn named(name: &str) -> bool {
        matches!(
            name,
            "bool" | "int" | "uint" | "double" | "string" | "bytes" | "list" | "map" | "null_type"
        ) || name == "type"
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Dyn | Type::Unknown(_) => "dyn",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "duration",
            Type::Timestamp => "timestamp",
            Type::Kind => "type",
            Type::Object(_) => "object",
            Type::Opaque(name) => name,
            Type::Error => "!error!",
            Type::List(item) => return write!(f, "list({item})"),
            Type::Map(key, value) => return write!(f, "map({key}, {value})"),
            Type::Optional(inner) => return write!(f, "optional_type({inner})"),
        })
    }
}

/// What is known so far about types that are to be found out.
#[derive(Clone, Debug, Default)]
pub(super) struct Found(Vec<Option<Type>>);

impl Found {
    pub(super) fn fresh(&mut self) -> Type {
        self.0.push(None);
        Type::Unknown(self.0.len() - 1)
    }

    /// The type, with everything filled in that is known.
    pub(super) fn resolve(&self, ty: &Type) -> Type {
        match ty {
            Type::Unknown(at) => match self.0.get(*at) {
                Some(Some(found)) => self.resolve(found),
                _ => ty.clone(),
            },
            Type::List(item) => Type::List(Box::new(self.resolve(item))),
            Type::Map(key, value) => {
                Type::Map(Box::new(self.resolve(key)), Box::new(self.resolve(value)))
            }
            Type::Optional(inner) => Type::Optional(Box::new(self.resolve(inner))),
            other => other.clone(),
        }
    }

    /// Makes the two one type, if they can be.
    pub(super) fn unify(&mut self, wanted: &Type, given: &Type) -> bool {
        let (wanted, given) = (self.resolve(wanted), self.resolve(given));
        match (&wanted, &given) {
            (Type::Unknown(a), Type::Unknown(b)) if a == b => true,
            (Type::Unknown(at), other) | (other, Type::Unknown(at)) => {
                if let Some(place) = self.0.get_mut(*at) {
                    *place = Some(other.clone());
                }
                true
            }
            (Type::Dyn | Type::Error, _)
            | (_, Type::Dyn | Type::Error)
            | (Type::Null, Type::Object(_) | Type::Optional(_) | Type::Opaque(_))
            | (Type::Object(_) | Type::Optional(_) | Type::Opaque(_), Type::Null) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.unify(a, b)
            }
            (Type::Map(a, b), Type::Map(c, d)) => self.unify(a, c) && self.unify(b, d),
            (Type::Object(a), Type::Object(b)) => Arc::ptr_eq(a, b),
            (Type::Opaque(a), Type::Opaque(b)) => a == b,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}
