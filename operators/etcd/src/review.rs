//! What the webhook says of a cluster that the schema lets pass.

use windlass::Verdict;

use crate::kind::EtcdCluster;

/// Warns of what works but helps nobody.
pub(crate) fn judge(cluster: &EtcdCluster, _: Option<&EtcdCluster>) -> Verdict {
    let mut verdict = Verdict::allow();
    let size = cluster.spec.size;
    if size % 2 == 0 {
        verdict.warn(format!(
            "spec.size {size} is even: {size} members survive no more failures than {} would",
            size - 1
        ));
    }
    verdict
}
