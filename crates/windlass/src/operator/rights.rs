//! Rights: does the API server let the operator do what it declares?

use std::{collections::BTreeSet, fmt};

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, ResourceRule, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview, SelfSubjectRulesReviewSpec,
};
use kube::{Api, Client, api::PostParams};

use super::Operator;
use crate::{Error, Result};

impl Operator {
    /// What the operator declares and the API server refuses, as `verb resource.group`; nothing
    /// if all is well. One request where it is.
    pub async fn missing_rights(&self, client: &Client) -> Result<Vec<String>> {
        let reviews: Api<SelfSubjectRulesReview> = Api::all(client.clone());
        let review = SelfSubjectRulesReview {
            spec: SelfSubjectRulesReviewSpec {
                namespace: Some(client.default_namespace().to_owned()),
            },
            ..SelfSubjectRulesReview::default()
        };
        let review = reviews.create(&PostParams::default(), &review).await;
        let review = review.map_err(|error| Error::api("create", "own rules review", error))?;
        let rules = review.status.unwrap_or_default().resource_rules;
        let mut missing = Vec::new();
        for right in self.rights() {
            // The list may be incomplete, and is of one namespace: only a second look is certain.
            if !rules.iter().any(|rule| right.is_granted_by(rule))
                && !right.is_granted(client).await?
            {
                missing.push(right.to_string());
            }
        }
        // One that is declared for several names is one to whoever reads this.
        missing.dedup();
        Ok(missing)
    }

    /// Everything that is declared, each once.
    fn rights(&self) -> BTreeSet<Right> {
        let description = self.description();
        let rules = description.rules();
        let rights = rules.flat_map(|rule| {
            let mut names: Vec<Option<&String>> = rule.names.iter().map(Some).collect();
            if names.is_empty() {
                names.push(None);
            }
            let of = move |verb: &String| {
                let right = |name: Option<&String>| Right {
                    group: rule.group.clone(),
                    resource: rule.resource.clone(),
                    verb: verb.clone(),
                    name: name.cloned(),
                };
                names.iter().copied().map(right).collect::<Vec<Right>>()
            };
            rule.verbs.iter().flat_map(of)
        });
        rights.collect()
    }
}

/// A verb on a resource, or on the object of one name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    group: String,
    resource: String,
    verb: String,
    name: Option<String>,
}

impl Right {
    fn is_granted_by(&self, rule: &ResourceRule) -> bool {
        let has =
            |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
        let names = rule.resource_names.as_deref().unwrap_or_default();
        let is_listed = |name: &String| names.contains(name);
        (names.is_empty() || self.name.as_ref().is_some_and(is_listed))
            && has(rule.api_groups.as_deref().unwrap_or_default(), &self.group)
            && has(
                rule.resources.as_deref().unwrap_or_default(),
                &self.resource,
            )
            && has(&rule.verbs, &self.verb)
    }

    /// Asks about this one alone.
    async fn is_granted(&self, client: &Client) -> Result<bool> {
        let (resource, subresource) = self
            .resource
            .split_once('/')
            .unwrap_or((&self.resource, ""));
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    group: given(&self.group),
                    resource: given(resource),
                    subresource: given(subresource),
                    verb: given(&self.verb),
                    name: self.name.clone(),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
        let review = reviews.create(&PostParams::default(), &review).await;
        let review = review.map_err(|error| Error::api("create", "own access review", error))?;
        Ok(review.status.is_some_and(|status| status.allowed))
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{} {}{dot}{}", self.verb, self.resource, self.group)
    }
}
