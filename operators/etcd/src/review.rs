//! What the webhook says of a cluster that the schema lets pass.

use kube::ResourceExt;
use windlass::webhook::Verdict;

use crate::kind::EtcdCluster;

/// The name of a member is a label, and it is the cluster's with eleven letters after it.
const LONGEST_NAME: usize = 52;

/// Refuses a name that members could not have, and warns of what works but helps nobody.
pub(crate) fn judge(cluster: &EtcdCluster, _: Option<&EtcdCluster>) -> Verdict {
    let mut verdict = Verdict::allow();
    let name = cluster.name_any();
    let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
    if name.len() > LONGEST_NAME || !starts || name.contains('.') {
        let why = format!(
            "must be at most {LONGEST_NAME} characters, begin with a letter and have no dots: its \
             Services and pods are named after it"
        );
        verdict.invalid("metadata.name", name, why);
    }
    let size = cluster.spec.size;
    if size % 2 == 0 {
        verdict.warn(format!(
            "spec.size {size} is even: {size} members survive no more failures than {} would",
            size - 1
        ));
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::EtcdClusterSpec;

    fn verdict(name: &str, size: i32) -> Verdict {
        let spec = EtcdClusterSpec {
            size,
            ..EtcdClusterSpec::default()
        };
        judge(&EtcdCluster::new(name, spec), None)
    }

    #[test]
    fn even_sizes_are_warned_of_and_odd_ones_are_not() {
        for size in 1..=7 {
            let verdict = verdict("c", size);
            assert!(verdict.is_allowed());
            let warned = format!("{verdict:?}").contains("is even");
            assert_eq!(warned, size % 2 == 0, "{size}");
        }
    }

    #[test]
    fn a_name_that_members_could_not_have_is_refused() {
        assert!(verdict(&"c".repeat(52), 1).is_allowed());
        for name in ["1c", "a.b", &"c".repeat(53)] {
            assert!(!verdict(name, 1).is_allowed(), "{name}");
        }
    }
}
