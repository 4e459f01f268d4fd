//! What is filled in, and what is refused, before a Page is stored.

use windlass::Verdict;

use crate::Page;

/// One server, unless told.
pub(crate) fn fill_in(page: &mut Page) {
    page.spec.replicas.get_or_insert(1);
}

/// A page says something, and does not go from public to hidden unnoticed.
pub(crate) fn judge(page: &Page, old: Option<&Page>) -> Verdict {
    let mut verdict = Verdict::allow();
    if page.spec.text.trim().is_empty() {
        verdict.require("spec.text", "a page says something");
    }
    if old.is_some_and(|old| old.spec.public) && !page.spec.public {
        verdict.warn("the page is not reachable any more");
    }
    verdict
}
