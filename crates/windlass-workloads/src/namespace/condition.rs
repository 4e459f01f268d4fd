//! The conditions of a namespace that is going: what it waits for.

use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::content::Remains;

/// The conditions that describe what is left, with the transition times of those before that say
/// the same.
pub(crate) fn conditions(
    remains: &Remains,
    before: &[NamespaceCondition],
    now: &Time,
) -> Vec<NamespaceCondition> {
    let failure = if remains.failures.is_empty() {
        (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".to_owned(),
        )
    } else {
        let count = remains.failures.len();
        let failures = remains.failures.join(", ");
        let message = format!("Failed to delete all resource types, {count} remaining: {failures}");
        ("True", "ContentDeletionFailed", message)
    };
    let content = if remains.objects.is_empty() {
        (
            "False",
            "ContentRemoved",
            "All content successfully removed".to_owned(),
        )
    } else {
        let objects = listed(&remains.objects, |resource, count| {
            format!("{resource} has {count} resource instances")
        });
        (
            "True",
            "SomeResourcesRemain",
            format!("Some resources are remaining: {objects}"),
        )
    };
    let finalizers = if remains.finalizers.is_empty() {
        (
            "False",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished".to_owned(),
        )
    } else {
        let finalizers = listed(&remains.finalizers, |finalizer, count| {
            format!("{finalizer} in {count} resource instances")
        });
        let message =
            format!("Some content in the namespace has finalizers remaining: {finalizers}");
        ("True", "SomeFinalizersRemain", message)
    };
    let wanted = [
        ("NamespaceDeletionContentFailure", failure),
        ("NamespaceContentRemaining", content),
        ("NamespaceFinalizersRemaining", finalizers),
    ];
    wanted
        .into_iter()
        .map(|(type_, (status, reason, message))| {
            let same = before
                .iter()
                .find(|condition| condition.type_ == type_ && condition.status == status);
            NamespaceCondition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message),
                last_transition_time: match same {
                    Some(same) => same.last_transition_time.clone(),
                    None => Some(now.clone()),
                },
            }
        })
        .collect()
}

fn listed(
    counts: &std::collections::BTreeMap<String, usize>,
    show: impl Fn(&str, usize) -> String,
) -> String {
    counts
        .iter()
        .map(|(name, count)| show(name, *count))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::at;

    #[test]
    fn says_what_a_namespace_waits_for() {
        let remains = Remains {
            objects: [("pods.".to_owned(), 2)].into(),
            finalizers: [("example.com/keep".to_owned(), 1)].into(),
            failures: Vec::new(),
        };
        let first = conditions(&remains, &[], &Time(at(1)));
        let messages: Vec<&str> = first
            .iter()
            .filter_map(|one| one.message.as_deref())
            .collect();
        assert_eq!(
            messages,
            [
                "All content successfully deleted, may be waiting on finalization",
                "Some resources are remaining: pods. has 2 resource instances",
                "Some content in the namespace has finalizers remaining: \
                 example.com/keep in 1 resource instances",
            ]
        );
        assert_eq!(
            conditions(&remains, &first, &Time(at(2))),
            first,
            "times stay"
        );
        let later = conditions(&Remains::default(), &first, &Time(at(3)));
        assert_eq!(later[1].status, "False");
        assert_eq!(later[1].last_transition_time, Some(Time(at(3))));
    }
}
