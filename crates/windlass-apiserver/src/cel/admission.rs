//! What expressions about requests see: those of match conditions and of policies.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Declared, Environment, Expression, NOT_RUN, Object, Type};

/// What is said of the one variable that Kubernetes has here and this server has not.
const AUTHORIZER: &str = "undeclared reference to 'authorizer' (in container '')";

/// The variables of every expression about a request: the object as it is going to be and as it
/// is, the request, and the namespace it is in.
pub(crate) fn environment() -> Environment {
    Environment::default()
        .variable("object", Type::Dyn, None)
        .variable("oldObject", Type::Dyn, None)
        .declared("namespaceObject", &namespace())
        .declared("request", &request())
}

/// An object with these fields, of which no size is known.
pub(crate) fn object(fields: impl IntoIterator<Item = (String, Type)>) -> Arc<Declared> {
    let fields = fields.into_iter();
    let fields = fields.map(|(name, ty)| (name, plain(ty))).collect();
    of(fields)
}

/// Compiles an expression that must be a truth; the error is the text that Kubernetes shows.
pub(crate) fn condition(source: &str, environment: &Environment) -> Result<Expression, String> {
    let compiled = Expression::compile(source, environment).map_err(|why| {
        let why = why.replace(AUTHORIZER, &format!("'authorizer' {NOT_RUN}"));
        format!("compilation failed: {why}")
    })?;
    match compiled.result {
        Type::Bool => Ok(compiled),
        other => Err(format!("must evaluate to bool but got {other}")),
    }
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

fn namespace() -> Arc<Declared> {
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
