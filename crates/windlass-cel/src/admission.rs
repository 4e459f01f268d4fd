//! What expressions about requests see: those of match conditions and of policies.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::authorizer::{self, REQUEST_RESOURCE};
use super::{AdmissionError, Declared, Environment, Expression, Object, Type};

pub use super::authorizer::variables as authorizer_variables;

/// What a kind of expression may come to.
pub type Wanted = &'static [(&'static str, fn(&Type) -> bool)];

/// A truth.
pub const TRUTH: Wanted = &[("bool", |ty| matches!(ty, Type::Bool))];
/// A text.
pub const TEXT: Wanted = &[("string", |ty| matches!(ty, Type::String))];
/// A text, or nothing.
pub const TEXT_OR_NULL: Wanted = &[
    ("string", |ty| matches!(ty, Type::String)),
    ("null_type", |ty| matches!(ty, Type::Null)),
];
/// Whatever it is.
pub const ANYTHING: Wanted = &[];

/// The variables of every expression about a request: the object as it is going to be and as it
/// is, the request, and the namespace it is in.
pub fn environment() -> Environment {
    Environment::default()
        .variable("object", Type::Dyn, None)
        .variable("oldObject", Type::Dyn, None)
        .declared("namespaceObject", &namespace())
        .declared("request", &request())
}

/// The same for expressions that may ask who may do what.
pub fn with_authorizer(environment: Environment) -> Environment {
    environment
        .variable("authorizer", Type::Opaque(authorizer::AUTHORIZER), None)
        .variable(
            REQUEST_RESOURCE,
            Type::Opaque(authorizer::RESOURCE_CHECK),
            None,
        )
}

/// An object with these fields, of which no size is known.
pub fn object(fields: impl IntoIterator<Item = (String, Type)>) -> Arc<Declared> {
    let fields = fields.into_iter();
    let fields = fields.map(|(name, ty)| (name, plain(ty))).collect();
    of(fields)
}

/// The type of a variable that has a value of that type: objects are not told apart.
pub fn variable_type(ty: &Type) -> Type {
    match ty {
        Type::List(item) => Type::List(Box::new(variable_type(item))),
        Type::Map(key, value) => {
            Type::Map(Box::new(variable_type(key)), Box::new(variable_type(value)))
        }
        Type::Null
        | Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Duration
        | Type::Timestamp => ty.clone(),
        _ => Type::Dyn,
    }
}

/// Compiles an expression that must come to what is wanted.
pub fn compile(
    source: &str,
    environment: &Environment,
    wanted: Wanted,
) -> Result<Expression, AdmissionError> {
    let compiled = Expression::compile(source, environment)?;
    let fits = wanted.iter().any(|(_, is)| is(&compiled.result));
    if fits || wanted.is_empty() {
        return Ok(compiled);
    }
    let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
    Err(AdmissionError::of_type(&names, &compiled.result))
}

/// Compiles an expression that must be a truth.
pub fn condition(source: &str, environment: &Environment) -> Result<Expression, AdmissionError> {
    compile(source, environment, TRUTH)
}

fn plain(ty: Type) -> Arc<Declared> {
    let item = match &ty {
        Type::List(item) | Type::Map(_, item) => Some(plain((**item).clone())),
        _ => None,
    };
    Arc::new(Declared {
        ty,
        max: u64::MAX,
        min_bytes: 0,
        item,
    })
}

fn of(fields: BTreeMap<String, Arc<Declared>>) -> Arc<Declared> {
    plain(Type::Object(Arc::new(Object { fields })))
}

fn texts() -> Type {
    Type::List(Box::new(Type::String))
}

fn map_of(value: Type) -> Type {
    Type::Map(Box::new(Type::String), Box::new(value))
}

fn record(texts: &[&str], others: Vec<(&str, Type)>) -> Type {
    let texts = texts.iter().map(|name| (*name, Type::String));
    let fields = texts.chain(others);
    let fields = fields.map(|(name, ty)| (name.to_owned(), ty));
    object(fields).ty.clone()
}

fn request() -> Arc<Declared> {
    let kind = || record(&["group", "version", "kind"], Vec::new());
    let resource = || record(&["group", "version", "resource"], Vec::new());
    let user = record(
        &["username", "uid"],
        vec![("groups", texts()), ("extra", map_of(texts()))],
    );
    plain(record(
        &[
            "subResource",
            "requestSubResource",
            "name",
            "namespace",
            "operation",
        ],
        vec![
            ("kind", kind()),
            ("resource", resource()),
            ("requestKind", kind()),
            ("requestResource", resource()),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    ))
}

/// What expressions see of a namespace.
pub fn namespace() -> Arc<Declared> {
    let metadata = record(
        &[
            "name",
            "generateName",
            "namespace",
            "UID",
            "resourceVersion",
        ],
        vec![
            ("labels", map_of(Type::String)),
            ("annotations", map_of(Type::String)),
            ("creationTimestamp", Type::Timestamp),
            ("deletionTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("generation", Type::Int),
            ("finalizers", texts()),
        ],
    );
    let condition = record(
        &["status", "type", "message", "reason"],
        vec![("lastTransitionTime", Type::Timestamp)],
    );
    let conditions = Type::List(Box::new(condition));
    plain(record(
        &[],
        vec![
            ("metadata", metadata),
            ("spec", record(&[], vec![("finalizers", texts())])),
            (
                "status",
                record(&["phase"], vec![("conditions", conditions)]),
            ),
        ],
    ))
}
