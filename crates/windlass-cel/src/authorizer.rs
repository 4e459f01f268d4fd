//! `authorizer`: expressions may ask what somebody may do.
//!
//! `authorizer` is the one whose request it is, `authorizer.serviceAccount(namespace, name)`
//! somebody else. From there a question is put together (`path`, or `group`, `resource` and what
//! narrows it down) until `check(verb)` asks it; the decision tells whether and why.

use std::fmt;
use std::sync::Arc;

use kube_cel::cel::Value;
use kube_cel::cel::objects::Opaque;

use super::error::Failure;
use super::evaluate::Result;
use windlass_apimachinery::names;

/// The name of the variable that is the resource of the request.
pub(crate) const REQUEST_RESOURCE: &str = "authorizer.requestResource";
/// What a question costs.
pub(super) const CHECK_COST: u64 = 350_000;

/// Whose rights an expression asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The user who made the request.
    Requester,
    /// A `ServiceAccount`.
    ServiceAccount {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// What an expression asks to be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question<'a> {
    /// A method, in lower case, on a path that is no resource.
    Path {
        /// The method.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
    /// A verb on a resource.
    Resource {
        /// The verb.
        verb: &'a str,
        /// The resource.
        of: &'a ResourceQuestion,
    },
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
}

/// Answers whether someone may do something, and why.
pub type Authorizer = Arc<dyn Fn(&Who, &Question<'_>) -> Decision + Send + Sync>;

/// Who is asked about, and who answers.
#[derive(Clone)]
struct Asked {
    who: Who,
    authorizer: Authorizer,
}

/// The resource a question is about; parts that are not given are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceQuestion {
    /// API group, empty for core.
    pub group: String,
    /// Plural name.
    pub resource: String,
    /// Subresource, such as `status`.
    pub subresource: String,
    /// Namespace.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

/// How far a question has come.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Authorizer,
    Path(String),
    Group(String),
    Resource(ResourceQuestion),
    Decision(Decision),
}

/// A value of this library.
#[derive(Clone)]
struct Authorization {
    asked: Asked,
    part: Part,
}

impl PartialEq for Authorization {
    fn eq(&self, other: &Self) -> bool {
        self.asked.who == other.asked.who && self.part == other.part
    }
}

impl Eq for Authorization {}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.part, self.asked.who)
    }
}

impl Opaque for Authorization {
    fn runtime_type_name(&self) -> &str {
        match self.part {
            Part::Authorizer => AUTHORIZER,
            Part::Path(_) => PATH_CHECK,
            Part::Group(_) => GROUP_CHECK,
            Part::Resource(_) => RESOURCE_CHECK,
            Part::Decision(_) => DECISION,
        }
    }
}

pub(super) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
pub(super) const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
pub(super) const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
pub(super) const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
pub(super) const DECISION: &str = "kubernetes.authorization.Decision";

/// The values of `authorizer` and of `authorizer.requestResource`.
pub fn variables(
    authorizer: Authorizer,
    requested: ResourceQuestion,
) -> [(&'static str, Value); 2] {
    let asked = Asked {
        who: Who::Requester,
        authorizer,
    };
    let resource = Authorization {
        asked: asked.clone(),
        part: Part::Resource(requested),
    };
    let authorizer = Authorization {
        asked,
        part: Part::Authorizer,
    };
    [
        ("authorizer", Value::Opaque(Arc::new(authorizer))),
        (REQUEST_RESOURCE, Value::Opaque(Arc::new(resource))),
    ]
}

/// Whether it is a value of this library: they cannot be compared.
pub(super) fn is_one(value: &Value) -> bool {
    match value {
        Value::Opaque(opaque) => opaque.downcast_ref::<Authorization>().is_some(),
        _ => false,
    }
}

/// Calls a function on a value of this library; `None` when it is none.
pub(super) fn call(name: &str, target: Option<&Value>, arguments: &[Value]) -> Option<Result> {
    let Some(Value::Opaque(opaque)) = target else {
        return None;
    };
    let on = opaque.downcast_ref::<Authorization>()?;
    Some(on.call(name, arguments))
}

impl Authorization {
    #[allow(clippy::unnecessary_wraps, reason = "the answer of a call")]
    fn with(&self, part: Part) -> Result {
        Ok(Value::Opaque(Arc::new(Self {
            asked: self.asked.clone(),
            part,
        })))
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result {
        let texts: Option<Vec<&str>> = arguments.iter().map(text).collect();
        let texts = texts.unwrap_or_default();
        match (&self.part, name, texts.as_slice()) {
            (Part::Authorizer, "path", [path]) => {
                not_empty("path", path)?;
                self.with(Part::Path((*path).to_owned()))
            }
            (Part::Authorizer, "group", [group]) => self.with(Part::Group((*group).to_owned())),
            (Part::Authorizer, "serviceAccount", [namespace, name]) => {
                self.service_account(namespace, name)
            }
            (Part::Group(group), "resource", [resource]) => {
                not_empty("resource", resource)?;
                self.with(Part::Resource(ResourceQuestion {
                    group: group.clone(),
                    resource: (*resource).to_owned(),
                    ..ResourceQuestion::default()
                }))
            }
            // Roles know nothing of selectors.
            (Part::Resource(_), "fieldSelector" | "labelSelector", [_]) => {
                self.with(self.part.clone())
            }
            (Part::Resource(question), part, [text]) if part != "check" => {
                let mut question = question.clone();
                let place = match part {
                    "subresource" => &mut question.subresource,
                    "namespace" => &mut question.namespace,
                    "name" => &mut question.name,
                    _ => return Err(no_overload()),
                };
                (*text).clone_into(place);
                self.with(Part::Resource(question))
            }
            (Part::Path(path), "check", [verb]) => self.decide(&Question::Path { verb, path }),
            (Part::Resource(of), "check", [verb]) => self.decide(&Question::Resource { verb, of }),
            (Part::Decision(decision), "allowed", []) => Ok(Value::Bool(decision.allowed)),
            (Part::Decision(decision), "reason", []) => {
                Ok(Value::String(Arc::new(decision.reason.clone())))
            }
            // Roles always have an answer.
            (Part::Decision(_), "errored", []) => Ok(Value::Bool(false)),
            (Part::Decision(_), "error", []) => Ok(Value::String(Arc::default())),
            _ => Err(no_overload()),
        }
    }

    fn service_account(&self, namespace: &str, name: &str) -> Result {
        if !names::subdomain_errors(name).is_empty() {
            return Err(Failure::said("Invalid service account name"));
        }
        if !names::label_errors(namespace).is_empty() {
            return Err(Failure::said("Invalid service account namespace"));
        }
        let asked = Asked {
            who: Who::ServiceAccount {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            },
            authorizer: self.asked.authorizer.clone(),
        };
        let part = Part::Authorizer;
        Ok(Value::Opaque(Arc::new(Self { asked, part })))
    }

    fn decide(&self, question: &Question<'_>) -> Result {
        let decision = (self.asked.authorizer)(&self.asked.who, question);
        self.with(Part::Decision(decision))
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text.as_str()),
        _ => None,
    }
}

fn not_empty(what: &str, text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Failure::said(format!("{what} must not be empty")));
    }
    Ok(())
}

fn no_overload() -> Failure {
    Failure::NoSuchOverload
}
