//! Where in an object or a schema something stands, as Kubernetes writes it.

/// `at.name`, or `name` at the root.
pub(super) fn child(at: &str, name: &str) -> String {
    if at.is_empty() {
        name.to_owned()
    } else {
        format!("{at}.{name}")
    }
}

/// `at[key]`.
pub(super) fn key(at: &str, key: &str) -> String {
    format!("{at}[{key}]")
}

/// `at[0]`.
pub(super) fn index(at: &str, index: usize) -> String {
    format!("{at}[{index}]")
}

/// The root has no path of its own; Kubernetes calls it `<nil>` in causes.
pub(super) fn shown(at: &str) -> String {
    if at.is_empty() {
        "<nil>".to_owned()
    } else {
        at.to_owned()
    }
}
