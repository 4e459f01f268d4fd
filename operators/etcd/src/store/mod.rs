//! [`Store`]: where backups are kept, and what is asked of it.
//!
//! Nine calls, each of which may fail or lose its answer. An object that is written in parts is not
//! visible before the upload is completed, so no half-written object is ever taken for a backup.
//! [`Remote`] asks real stores; tests put a simulated one in its place.

mod error;
mod location;
mod remote;
mod secret;

use std::{collections::BTreeMap, fmt, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;

pub(crate) use self::location::Location;
pub use self::{
    error::StoreError,
    location::{Place, S3Source, StorageType},
    remote::Remote,
};

/// The data of a Secret.
pub type SecretData = BTreeMap<String, Vec<u8>>;

/// How large the parts of an upload are, and the pieces in which an object is read.
pub const PART: usize = 8 * 1024 * 1024;

/// A call, as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// [`Store::begin`]
    Begin,
    /// [`Store::part`]
    Part,
    /// [`Store::complete`]
    Complete,
    /// [`Store::abort`]
    Abort,
    /// [`Store::create`]
    Create,
    /// [`Store::size`]
    Size,
    /// [`Store::read`]
    Read,
    /// [`Store::list`]
    List,
    /// [`Store::delete`]
    Delete,
}

impl Call {
    /// Whether it changes what is stored.
    pub fn changes(self) -> bool {
        !matches!(self, Self::Size | Self::Read | Self::List)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Begin => "begin an upload",
            Self::Part => "upload a part",
            Self::Complete => "complete an upload",
            Self::Abort => "abort an upload",
            Self::Create => "create an object",
            Self::Size => "look up an object",
            Self::Read => "read an object",
            Self::List => "list objects",
            Self::Delete => "delete an object",
        })
    }
}

/// A bucket, and what is asked of it. Keys are relative to the bucket.
#[async_trait]
pub trait Store: Send + Sync {
    /// Begins an upload in parts; returns its id.
    async fn begin(&self, key: &str) -> Result<String, StoreError>;

    /// Uploads one part, counted from 0; returns what [`complete`](Self::complete) needs of it.
    async fn part(
        &self,
        key: &str,
        upload: &str,
        index: usize,
        bytes: Bytes,
    ) -> Result<String, StoreError>;

    /// Makes the object of the parts, in place of one of that name.
    async fn complete(&self, key: &str, upload: &str, parts: Vec<String>)
    -> Result<(), StoreError>;

    /// Forgets an upload; done already if there is none.
    async fn abort(&self, key: &str, upload: &str) -> Result<(), StoreError>;

    /// Creates a small object; [`StoreError::AlreadyExists`] if there is one.
    async fn create(&self, key: &str, bytes: Bytes) -> Result<(), StoreError>;

    /// The size of an object; none if there is no such object.
    async fn size(&self, key: &str) -> Result<Option<u64>, StoreError>;

    /// A part of an object.
    async fn read(&self, key: &str, range: Range<u64>) -> Result<Bytes, StoreError>;

    /// The keys that begin with a prefix, all pages of them, in order.
    async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError>;

    /// Deletes an object; done already if there is none.
    async fn delete(&self, key: &str) -> Result<(), StoreError>;
}

/// Opens stores.
pub trait Stores: Send + Sync + 'static {
    /// The store at a place, with the data of its Secret. Nothing is asked of the store yet.
    fn open(&self, place: &Place, secret: &SecretData) -> Result<Arc<dyn Store>, StoreError>;
}
