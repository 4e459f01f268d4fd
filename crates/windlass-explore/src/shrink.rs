//! The smallest part of something that still shows the same.

/// Leaves out whatever is not needed: first halves, then quarters, then single items. `shows` is asked
/// about each candidate; `all` itself is taken to show it.
pub async fn smallest<T: Clone>(all: Vec<T>, mut shows: impl AsyncFnMut(&[T]) -> bool) -> Vec<T> {
    let mut kept = all;
    let mut size = kept.len().div_ceil(2);
    while size > 0 && !kept.is_empty() {
        let mut at = 0;
        while at < kept.len() {
            let end = (at + size).min(kept.len());
            let candidate: Vec<T> = kept[..at].iter().chain(&kept[end..]).cloned().collect();
            if shows(&candidate).await {
                kept = candidate;
            } else {
                at = end;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_is_needed_is_kept() {
        let all: Vec<u32> = (0..20).collect();
        let mut asked = 0;
        let kept = smallest(all, async |part: &[u32]| {
            asked += 1;
            part.contains(&3) && part.contains(&17)
        })
        .await;
        assert_eq!(kept, [3, 17]);
        assert!(asked < 30, "{asked}");
    }

    #[tokio::test]
    async fn what_needs_nothing_is_left_with_nothing() {
        assert!(
            smallest(vec![1, 2, 3], async |_: &[u32]| true)
                .await
                .is_empty()
        );
        assert_eq!(
            smallest(vec![1], async |part: &[u32]| !part.is_empty()).await,
            [1]
        );
    }
}
