//! Rights: does the API server let the operator do what it declares?

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
        for (group, resource, verb) in self.rights() {
            // The list may be incomplete, and is of one namespace: only a second look is certain.
            if !rules
                .iter()
                .any(|rule| grants(rule, &group, &resource, &verb))
                && !self.may(client, &group, &resource, &verb).await?
            {
                let dot = if group.is_empty() { "" } else { "." };
                missing.push(format!("{verb} {resource}{dot}{group}"));
            }
        }
        Ok(missing)
    }

    /// Everything that is declared, each once.
    fn rights(&self) -> Vec<(String, String, String)> {
        let description = self.description();
        let mut rights: Vec<_> = description
            .rules()
            .flat_map(|rule| {
                let of = |verb: &String| (rule.group.clone(), rule.resource.clone(), verb.clone());
                rule.verbs.iter().map(of)
            })
            .collect();
        rights.sort_unstable();
        rights.dedup();
        rights
    }

    async fn may(&self, client: &Client, group: &str, resource: &str, verb: &str) -> Result<bool> {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    group: given(group),
                    resource: given(resource),
                    subresource: given(subresource),
                    verb: given(verb),
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

fn grants(rule: &ResourceRule, group: &str, resource: &str, verb: &str) -> bool {
    let has = |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
    rule.resource_names.as_ref().is_none_or(Vec::is_empty)
        && has(rule.api_groups.as_deref().unwrap_or_default(), group)
        && has(rule.resources.as_deref().unwrap_or_default(), resource)
        && has(&rule.verbs, verb)
}
