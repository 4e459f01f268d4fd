//! Creating pods in growing batches.
//!
//! When every pod of a ReplicaSet is refused (a quota, a webhook), a thousand attempts say no more
//! than one. So the first batch is a single pod and each batch is twice the last; the first batch
//! with a failure is the last one.

/// The most pods one reconcile creates or deletes.
pub(crate) const BURST: usize = 500;

/// The sizes of the batches in which `count` pods are created: 1, 2, 4, … and what is left.
pub(crate) fn sizes(count: usize) -> impl Iterator<Item = usize> {
    let mut left = count.min(BURST);
    let mut size = 1;
    std::iter::from_fn(move || {
        let batch = left.min(size);
        left -= batch;
        size *= 2;
        (batch > 0).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_double_and_sum_up() {
        assert_eq!(sizes(10).collect::<Vec<_>>(), [1, 2, 4, 3]);
        assert_eq!(sizes(1).collect::<Vec<_>>(), [1]);
        assert_eq!(sizes(0).count(), 0);
        assert_eq!(sizes(10_000).sum::<usize>(), BURST);
    }
}
