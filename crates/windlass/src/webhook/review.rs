//! [`Review`]: one request that a webhook is asked about.

use serde_json::Value;

use crate::{Error, Kind, Result, controller::Session, handle::sealed::Sealed, kind::KindInfo};

/// What the request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// An object is made.
    Create,
    /// An object is changed.
    Update,
    /// An object is deleted.
    Delete,
}

impl Operation {
    /// As webhook configurations spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A request for an object of kind `K`, before it is carried out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Review<K> {
    /// What the request does.
    pub operation: Operation,
    /// The object as it would be stored; none for a deletion.
    pub object: Option<K>,
    /// The object as it is stored; none for a creation.
    pub old: Option<K>,
    /// The object's namespace; none for kinds that live in none.
    pub namespace: Option<String>,
    /// The object's name; empty while it is still to be generated.
    pub name: String,
    /// Who asks.
    pub user: String,
    /// The groups that user is in.
    pub groups: Vec<String>,
    /// Whether nothing is going to be stored.
    pub dry_run: bool,
}

impl<K: Kind> Review<K> {
    /// Reads the `request` of an admission review.
    pub(super) fn read(request: &Value) -> Result<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = |field: &str| -> Result<Option<K>> {
            match &request[field] {
                Value::Null => Ok(None),
                value => serde_json::from_value(value.clone())
                    .map(Some)
                    .map_err(|source| Error::Codec {
                        verb: "decode",
                        object: format!("the {field} of a review of {}", KindInfo::of::<K>()),
                        source,
                    }),
            }
        };
        let operation = match request["operation"].as_str() {
            Some("CREATE") => Operation::Create,
            Some("UPDATE") => Operation::Update,
            Some("DELETE") => Operation::Delete,
            other => {
                let other = other.unwrap_or_default();
                return Err(Error::other(format!("cannot review operation {other:?}")));
            }
        };
        let groups = request["userInfo"]["groups"].as_array();
        Ok(Self {
            operation,
            object: object("object")?,
            old: object("oldObject")?,
            namespace: request["namespace"].as_str().map(str::to_owned),
            name: text(&request["name"]),
            user: text(&request["userInfo"]["username"]),
            groups: groups.into_iter().flatten().map(text).collect(),
            dry_run: request["dryRun"] == true,
        })
    }
}

/// A webhook reads in the namespace of what is reviewed, and has written nothing to wait for.
impl<K: Kind> Sealed for Review<K> {
    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    #[allow(private_interfaces, reason = "the trait is sealed")]
    fn session(&self) -> Option<&Session> {
        None
    }
}
