//! What is defaulted, and what is rejected, before a Page is stored.

use windlass::webhook::Verdict;

use crate::Page;

/// One server by default.
pub(crate) fn default(page: &mut Page) {
    page.spec.replicas.get_or_insert(1);
}

/// A page says something, and does not go from public to hidden unnoticed.
pub(crate) fn validate(page: &Page, old: Option<&Page>) -> Verdict {
    let mut verdict = Verdict::allow();
    if page.spec.text.trim().is_empty() {
        verdict.require("spec.text", "a page says something");
    }
    if old.is_some_and(|old| old.spec.public) && !page.spec.public {
        verdict.warn("the page is not reachable any more");
    }
    verdict
}
