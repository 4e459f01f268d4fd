//! Claims of devices that pods make.

use std::collections::BTreeSet;

use crate::names;
use crate::validation::at::{At, Causes};

/// The claims of devices a pod uses.
pub(super) fn check(spec: &At<'_, '_>, causes: &mut Causes) {
    let mut seen = BTreeSet::new();
    for claim in spec.items("resourceClaims") {
        match claim.text("name") {
            "" => causes.push(claim.child("name").required("")),
            name if !seen.insert(name) => causes.push(claim.child("name").duplicate()),
            name => claim
                .child("name")
                .complain(names::label_errors(name), causes),
        }
        let (own, template) = (
            claim.has("resourceClaimName"),
            claim.has("resourceClaimTemplateName"),
        );
        let wrong = match (own, template) {
            (true, true) => Some(
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
            (false, false) => {
                Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
            }
            _ => None,
        };
        if let Some(why) = wrong {
            let shown = crate::validation::internal::show(claim.value, "core.PodResourceClaim");
            causes.push(claim.invalid_shown(&shown, why));
        }
        for field in ["resourceClaimName", "resourceClaimTemplateName"] {
            if let Some(name) = claim.get(field) {
                let text = name.value.as_str().unwrap_or_default();
                name.complain(names::subdomain_errors(text), causes);
            }
        }
    }
}
