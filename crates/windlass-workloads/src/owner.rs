//! Who controls an object, and who may take it over.
//!
//! At most one owner reference of an object has `controller: true`. A controller **claims** an
//! object that it controls and whose labels match its selector; it **adopts** a matching orphan
//! and **releases** an object of its own that no longer matches. It never touches an object that
//! another controls, and while it is being deleted itself it neither adopts nor releases.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::core::{Selector, SelectorExt};

/// The reference to the object's controller, if it has one.
pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references
        .iter()
        .flatten()
        .find(|reference| reference.controller == Some(true))
}

/// Whether the object's controller is the one with this uid.
pub(crate) fn is_controlled_by(meta: &ObjectMeta, uid: &str) -> bool {
    controller_of(meta).is_some_and(|reference| reference.uid == uid)
}

/// The selector in the form that matches labels; `None` when it is not valid.
///
/// An invalid selector selects nothing: acting on a guess would delete or adopt the wrong objects.
pub(crate) fn selector(selector: &LabelSelector) -> Option<Selector> {
    selector.clone().try_into().ok()
}

/// Whether the labels of an object match.
pub(crate) fn matches(selector: &Selector, meta: &ObjectMeta) -> bool {
    match &meta.labels {
        Some(labels) => selector.matches(labels),
        None => selector.matches(&BTreeMap::new()),
    }
}

/// What a controller does about one object that it might own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It is ours and stays so.
    Keep,
    /// It is nobody's and matches: take it.
    Adopt,
    /// It is ours but no longer matches: let it go.
    Release,
    /// It is none of our business.
    Ignore,
}

/// What the controller `owner` does about an object with this metadata.
pub(crate) fn claim(owner: &ObjectMeta, selector: &Selector, object: &ObjectMeta) -> Claim {
    let owner_is_going = owner.deletion_timestamp.is_some();
    let matching = matches(selector, object);
    match controller_of(object) {
        Some(reference) if Some(&reference.uid) != owner.uid.as_ref() => Claim::Ignore,
        Some(_) if matching => Claim::Keep,
        Some(_) if owner_is_going => Claim::Ignore,
        Some(_) => Claim::Release,
        None if !matching || owner_is_going || object.deletion_timestamp.is_some() => Claim::Ignore,
        None => Claim::Adopt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn meta(uid: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(uid.to_owned()),
            uid: Some(uid.to_owned()),
            ..ObjectMeta::default()
        }
    }

    fn labelled(mut meta: ObjectMeta, app: &str) -> ObjectMeta {
        meta.labels = Some(BTreeMap::from([("app".to_owned(), app.to_owned())]));
        meta
    }

    fn controlled(mut meta: ObjectMeta, uid: &str) -> ObjectMeta {
        meta.owner_references = Some(vec![OwnerReference {
            uid: uid.to_owned(),
            controller: Some(true),
            ..OwnerReference::default()
        }]);
        meta
    }

    fn going(mut meta: ObjectMeta) -> ObjectMeta {
        meta.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        meta
    }

    fn web() -> Selector {
        Selector::from_iter([("app", "web")])
    }

    #[test]
    fn keeps_its_own_and_adopts_matching_orphans() {
        let owner = meta("owner");
        let matching = labelled(meta("pod"), "web");
        assert_eq!(
            claim(&owner, &web(), &controlled(matching.clone(), "owner")),
            Claim::Keep
        );
        assert_eq!(claim(&owner, &web(), &matching), Claim::Adopt);
    }

    #[test]
    fn never_touches_what_another_controls() {
        let owner = meta("owner");
        let other = controlled(labelled(meta("pod"), "web"), "other");
        assert_eq!(claim(&owner, &web(), &other), Claim::Ignore);
        let other = controlled(labelled(meta("pod"), "db"), "other");
        assert_eq!(claim(&owner, &web(), &other), Claim::Ignore);
    }

    #[test]
    fn releases_what_no_longer_matches() {
        let owner = meta("owner");
        let strayed = controlled(labelled(meta("pod"), "db"), "owner");
        assert_eq!(claim(&owner, &web(), &strayed), Claim::Release);
        assert_eq!(claim(&going(owner), &web(), &strayed), Claim::Ignore);
    }

    #[test]
    fn adopts_nothing_that_is_going_nor_while_going() {
        let orphan = labelled(meta("pod"), "web");
        assert_eq!(
            claim(&meta("owner"), &web(), &going(orphan.clone())),
            Claim::Ignore
        );
        assert_eq!(claim(&going(meta("owner")), &web(), &orphan), Claim::Ignore);
    }

    #[test]
    fn an_unlabelled_object_matches_only_a_selector_that_asks_for_absence() {
        assert!(!matches(&web(), &meta("pod")));
        let absent: Selector = kube::core::Expression::DoesNotExist("app".to_owned()).into();
        assert!(matches(&absent, &meta("pod")));
    }

    #[test]
    fn an_invalid_selector_is_none() {
        use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
        let invalid = LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: "app".to_owned(),
                operator: "Resembles".to_owned(),
                values: None,
            }]),
            match_labels: None,
        };
        assert!(selector(&invalid).is_none());
    }
}
