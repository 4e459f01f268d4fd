//! What an object is found by.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Namespace and name; the namespace is empty for cluster-scoped objects. Both are kept in one
/// piece, which clones share: every stored object has one, and so has the table it is in.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    text: Arc<str>,
    /// Where the name starts.
    name_at: u32,
}

impl Key {
    /// The key of an object; no namespace for cluster-scoped ones.
    pub fn new(namespace: &str, name: &str) -> Self {
        let mut text = String::with_capacity(namespace.len() + name.len());
        text.push_str(namespace);
        text.push_str(name);
        Self {
            // A request is limited to a few megabytes, and so is a name in it.
            name_at: u32::try_from(namespace.len()).unwrap_or_default(),
            text: text.into(),
        }
    }

    /// The namespace; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        &self.text[..self.name_at as usize]
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.text[self.name_at as usize..]
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.name_at == other.name_at {
            // Namespaces of one length: the whole is in the order of its parts.
            return self.text.cmp(&other.text);
        }
        self.namespace()
            .cmp(other.namespace())
            .then_with(|| self.name().cmp(other.name()))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace().is_empty() {
            f.write_str(self.name())
        } else {
            write!(f, "{}/{}", self.namespace(), self.name())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_by_namespace_and_then_by_name() {
        let mut keys = [
            ("b", "a"),
            ("a-b", "c"),
            ("a", "z"),
            ("", "z"),
            ("a", "bc"),
            ("ab", "c"),
        ]
        .map(|(namespace, name)| Key::new(namespace, name));
        keys.sort();
        let shown = keys.each_ref().map(|key| format!("{key:?}"));
        assert_eq!(shown, ["z", "a/bc", "a/z", "a-b/c", "ab/c", "b/a"]);
        assert_ne!(Key::new("a", "bc"), Key::new("ab", "c"));
    }
}
