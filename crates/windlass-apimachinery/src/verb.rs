//! [`Verb`]: what a request does.

use std::fmt;

/// What a request does, as RBAC rules name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read many.
    List,
    /// Follow changes.
    Watch,
    /// Create an object (or post to a subresource such as `binding`).
    Create,
    /// Replace an object.
    Update,
    /// Change parts of an object; server-side apply is a patch too.
    Patch,
    /// Delete an object.
    Delete,
    /// Delete many objects by one request.
    DeleteCollection,
}

impl Verb {
    /// What keeping a cache of a kind needs.
    pub const READ: [Self; 2] = [Self::List, Self::Watch];

    /// The verb's name in RBAC rules.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether it changes anything.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
