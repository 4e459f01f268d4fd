//! Groups of Kubernetes' own: a definition in one says by whom it was approved, or that it was not.

use serde_json::Value;

use super::definition::text;
use super::path::key;
use windlass_apimachinery::field::{self, Cause};

const APPROVED: &str = "api-approved.kubernetes.io";

/// How the writer of a definition in a group of Kubernetes' own says that it may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    Approved,
    Bypassed,
    Missing,
    Invalid,
}

/// Whether a definition of a protected group is approved, and the sentence about it.
pub(super) fn approval(crd: &Value) -> Option<(Approval, String)> {
    let group = text(&crd["spec"]["group"]);
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|own| group == *own || group.ends_with(&format!(".{own}")));
    if !is_protected {
        return None;
    }
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let said = text(&crd["metadata"]["annotations"][APPROVED]);
    let is_url = said.split_once("://").is_some_and(|(scheme, rest)| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && !host.is_empty()
            && !host.contains(' ')
    });
    Some(if said.is_empty() {
        let why = format!("protected groups must have approval annotation \"{APPROVED}\", {see}");
        (Approval::Missing, why)
    } else if said.starts_with("unapproved") {
        (Approval::Bypassed, format!("not approved: {said:?}"))
    } else if is_url {
        (Approval::Approved, format!("approved in {said}"))
    } else {
        let why = format!(
            "protected groups must have approval annotation \"{APPROVED}\" with either a URL or a reason starting with \"unapproved\", {see}"
        );
        (Approval::Invalid, why)
    })
}

pub(super) fn check_approval(crd: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let Some((approved, why)) = approval(crd) else {
        return;
    };
    if old.and_then(approval).map(|(before, _)| before) == Some(approved) {
        return;
    }
    let at = key("metadata.annotations", APPROVED);
    match approved {
        Approval::Approved | Approval::Bypassed => {}
        Approval::Missing => causes.push(field::required(at, &why)),
        Approval::Invalid => {
            let said = &crd["metadata"]["annotations"][APPROVED];
            causes.push(field::invalid(at, said, &why));
        }
    }
}
