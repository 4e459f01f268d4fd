//! A validating webhook that reads another kind: an Ingress may only use hosts of the domain that
//! its namespace has.
//!
//! The namespaces come from a cache, which is behind the API server by milliseconds: an Ingress
//! that is created in the same moment as its namespace may be refused, and admitted when it is
//! tried again. Where that must not be, read live in a controller and report it in a status.

use k8s_openapi::api::{core::v1::Namespace, networking::v1::Ingress};
use kube::ResourceExt;
use windlass::{
    Webhook,
    handle::Reads,
    prelude::*,
    watch::Scope,
    webhook::{Operation, Review, Validator, Verdict},
};

/// The annotation of a namespace that names its domain.
pub const DOMAIN: &str = "example.com/domain";

/// The operator.
pub fn operator() -> Operator {
    Operator::new("reading-webhook")
        .version(env!("CARGO_PKG_VERSION"))
        .webhook(
            Webhook::of::<Ingress>()
                .validator([Operation::Create, Operation::Update], OwnDomain::declare),
        )
}

struct OwnDomain {
    namespaces: Reads<Namespace>,
}

impl OwnDomain {
    fn declare(declare: &mut Declare<Webhook<Ingress>>) -> Self {
        Self {
            namespaces: declare.reads(&Scope::all()),
        }
    }
}

impl Validator for OwnDomain {
    type Object = Ingress;

    async fn validate(&self, review: &Review<Ingress>) -> Result<Verdict> {
        let mut verdict = Verdict::allow();
        let name = review.namespace.as_deref().unwrap_or_default();
        let namespace = self.namespaces.get(review, name).await?;
        let domain = namespace.and_then(|one| one.annotations().get(DOMAIN).cloned());
        let spec = review
            .object
            .as_ref()
            .and_then(|ingress| ingress.spec.as_ref());
        let rules = spec
            .and_then(|spec| spec.rules.as_deref())
            .unwrap_or_default();
        for (nth, host) in rules
            .iter()
            .map(|rule| rule.host.as_deref().unwrap_or(""))
            .enumerate()
        {
            let at = format!("spec.rules[{nth}].host");
            match &domain {
                None => {
                    verdict.forbid(at, format!("namespace {name} has no {DOMAIN}"));
                }
                Some(domain) if !host.ends_with(&format!(".{domain}")) => {
                    verdict.invalid(at, host, format!("must be a host of {domain}"));
                }
                Some(_) => {}
            }
        }
        Ok(verdict)
    }
}
