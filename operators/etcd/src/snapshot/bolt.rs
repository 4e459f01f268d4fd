//! What is in a snapshot, read from a few pages of its bbolt file.
//!
//! The newest revision is the last key of the bucket `key`, or the revision of the last compaction
//! where everything after it is gone. Asking a member for its revision before or after the snapshot
//! would give another one.

use async_trait::async_trait;
use bytes::Bytes;

/// The length of a page's header.
const HEADER: usize = 16;
/// The length of an element's head, in branches and leaves alike.
const ELEMENT: usize = 16;
/// The revision of a database that was never written to.
const FIRST: i64 = 1;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const MAGIC: u32 = 0xED0C_DAED;
/// A page that is longer, with the pages that continue it, is not one of etcd's.
const LONGEST: u64 = 256 * 1024 * 1024;
/// Deeper trees have more keys than bytes fit on a disk.
const DEEPEST: usize = 32;

/// What a snapshot says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The newest revision.
    pub revision: i64,
    /// Up to which revision it is compacted.
    pub compact_revision: i64,
    /// The version of the cluster, such as 3.4.0; empty where none was set yet.
    pub cluster_version: String,
    /// Whether clients have to say who they are.
    pub auth_enabled: bool,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoltError<E> {
    /// The file cannot be read.
    #[error(transparent)]
    Read(E),
    /// It is no bbolt file, or a damaged one.
    #[error("cannot read the snapshot: it is not a database of etcd: {0}")]
    Invalid(&'static str),
}

/// A file that is read in parts.
#[async_trait]
pub trait ReadAt: Send + Sync {
    /// Why a read failed.
    type Error: Send;
    /// So many bytes at a place.
    async fn read_at(&self, offset: u64, length: u64) -> Result<Bytes, Self::Error>;
}

/// What the snapshot of that length, without its hash, says of itself.
pub async fn facts<R: ReadAt>(file: &R, length: u64) -> Result<Facts, BoltError<R::Error>> {
    let tree = Tree::open(file, length).await?;
    let mut facts = Facts::default();
    if let Some(meta) = tree.bucket(b"meta").await? {
        let compacted = tree.get(&meta, b"scheduledCompactRev").await?;
        facts.compact_revision = compacted.map_or(0, |value| revision(&value));
    }
    let Some(keys) = tree.bucket(b"key").await? else {
        return Err(BoltError::Invalid("it has no keys"));
    };
    let last = tree.last_key(&keys).await?;
    facts.revision = last
        .map_or(FIRST, |key| revision(&key))
        .max(facts.compact_revision);
    if let Some(cluster) = tree.bucket(b"cluster").await? {
        let version = tree.get(&cluster, b"clusterVersion").await?;
        let version = version.map(|value| String::from_utf8_lossy(&value).into_owned());
        facts.cluster_version = version.unwrap_or_default();
    }
    if let Some(auth) = tree.bucket(b"auth").await? {
        let enabled = tree.get(&auth, b"authEnabled").await?;
        facts.auth_enabled = enabled.is_some_and(|value| value.as_ref() == [1]);
    }
    Ok(facts)
}

/// The main revision at the beginning of a key: eight bytes, the greatest first.
fn revision(key: &[u8]) -> i64 {
    let bytes = key.first_chunk::<8>().copied();
    bytes.map_or(0, i64::from_be_bytes)
}

/// A bucket: the page of its root, or, of a small one, that page itself.
#[derive(Clone, Debug)]
enum Bucket {
    At(u64),
    Inline(Bytes),
}

impl Bucket {
    fn parse<E>(value: &Bytes) -> Result<Self, BoltError<E>> {
        let root = u64_at(value, 0).ok_or(BoltError::Invalid("a bucket is too short"))?;
        Ok(match root {
            0 if value.len() > HEADER => Self::Inline(value.slice(HEADER..)),
            _ => Self::At(root),
        })
    }
}

struct Tree<'a, R> {
    file: &'a R,
    page: u64,
    length: u64,
    root: Bucket,
}

impl<'a, R: ReadAt> Tree<'a, R> {
    async fn open(file: &'a R, length: u64) -> Result<Self, BoltError<R::Error>> {
        let invalid = BoltError::Invalid("it has no header");
        let first = file
            .read_at(0, 4096.min(length))
            .await
            .map_err(BoltError::Read)?;
        let first_meta = Meta::parse(&first, HEADER);
        // Where the first header is torn, the second one says how long pages are.
        let size = first_meta.as_ref().map_or(4096, |meta| meta.page);
        let second = if size + HEADER as u64 + 64 <= length {
            let bytes = file.read_at(size, HEADER as u64 + 64).await;
            Meta::parse(&bytes.map_err(BoltError::Read)?, HEADER)
        } else {
            None
        };
        let newest = first_meta
            .into_iter()
            .chain(second)
            .max_by_key(|meta| meta.transaction);
        let meta = newest.ok_or(invalid)?;
        Ok(Self {
            file,
            page: meta.page,
            length,
            root: Bucket::At(meta.root),
        })
    }

    /// The bucket of that name, if there is one.
    async fn bucket(&self, name: &[u8]) -> Result<Option<Bucket>, BoltError<R::Error>> {
        let value = self.get(&self.root, name).await?;
        value.as_ref().map(Bucket::parse).transpose()
    }

    /// A page with those that continue it.
    async fn read(&self, id: u64) -> Result<Bytes, BoltError<R::Error>> {
        let invalid = BoltError::Invalid("a page is outside of the file");
        let offset = id.checked_mul(self.page);
        let Some(offset) = offset.filter(|offset| offset + self.page <= self.length) else {
            return Err(invalid);
        };
        let bytes = self.file.read_at(offset, self.page).await;
        let bytes = bytes.map_err(BoltError::Read)?;
        let more = u64::from(u32_at(&bytes, 12).unwrap_or(0));
        if more == 0 {
            return Ok(bytes);
        }
        let whole = (more + 1) * self.page;
        if whole > LONGEST || offset + whole > self.length {
            return Err(invalid);
        }
        let bytes = self.file.read_at(offset, whole).await;
        bytes.map_err(BoltError::Read)
    }

    async fn page_of(&self, bucket: &Bucket) -> Result<Bytes, BoltError<R::Error>> {
        match bucket {
            Bucket::At(id) => self.read(*id).await,
            Bucket::Inline(page) => Ok(page.clone()),
        }
    }

    /// The value of a key.
    async fn get(&self, bucket: &Bucket, key: &[u8]) -> Result<Option<Bytes>, BoltError<R::Error>> {
        let mut page = self.page_of(bucket).await?;
        for _ in 0..DEEPEST {
            let (kind, count) = kind_of(&page)?;
            if kind == LEAF {
                for nth in 0..count {
                    let (found, value) = leaf(&page, nth)?;
                    if found.as_ref() == key {
                        return Ok(Some(value));
                    }
                }
                return Ok(None);
            }
            let mut next = None;
            for nth in 0..count {
                let (first, id) = branch(&page, nth)?;
                if nth == 0 || first.as_ref() <= key {
                    next = Some(id);
                }
            }
            let next = next.ok_or(BoltError::Invalid("a branch is empty"))?;
            page = self.read(next).await?;
        }
        Err(BoltError::Invalid("its tree is too deep"))
    }

    /// The last key of a bucket.
    async fn last_key(&self, bucket: &Bucket) -> Result<Option<Bytes>, BoltError<R::Error>> {
        let mut page = self.page_of(bucket).await?;
        for _ in 0..DEEPEST {
            let (kind, count) = kind_of(&page)?;
            let Some(last) = count.checked_sub(1) else {
                return Ok(None);
            };
            if kind == LEAF {
                return leaf(&page, last).map(|(key, _)| Some(key));
            }
            let (_, id) = branch(&page, last)?;
            page = self.read(id).await?;
        }
        Err(BoltError::Invalid("its tree is too deep"))
    }
}

/// The header of the file, of which there are two.
struct Meta {
    page: u64,
    root: u64,
    transaction: u64,
}

impl Meta {
    fn parse(bytes: &[u8], at: usize) -> Option<Self> {
        let meta = bytes.get(at..at + 64)?;
        let sum = u64_at(meta, 56)?;
        let page = u64::from(u32_at(meta, 8)?);
        let sound = u32_at(meta, 0)? == MAGIC && u32_at(meta, 4)? == 2 && fnv(&meta[..56]) == sum;
        (sound && page.is_power_of_two() && (512..=1 << 20).contains(&page)).then_some(Self {
            page,
            root: u64_at(meta, 16)?,
            transaction: u64_at(meta, 48)?,
        })
    }
}

/// FNV-1a of 64 bits, as bbolt signs its headers.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Branch or leaf, and how many elements it has.
fn kind_of<E>(page: &Bytes) -> Result<(u16, usize), BoltError<E>> {
    let (kind, count) = (u16_at(page, 8), u16_at(page, 10));
    match (kind, count) {
        (Some(kind @ (BRANCH | LEAF)), Some(count)) => Ok((kind, usize::from(count))),
        _ => Err(BoltError::Invalid("a page is neither branch nor leaf")),
    }
}

fn leaf<E>(page: &Bytes, nth: usize) -> Result<(Bytes, Bytes), BoltError<E>> {
    let at = HEADER + nth * ELEMENT;
    let sizes = (
        u32_at(page, at + 4),
        u32_at(page, at + 8),
        u32_at(page, at + 12),
    );
    let (Some(position), Some(key), Some(value)) = sizes else {
        return Err(BoltError::Invalid("a leaf is too short"));
    };
    let begin = at + position as usize;
    let middle = begin + key as usize;
    let end = middle + value as usize;
    if end > page.len() {
        return Err(BoltError::Invalid("a leaf is too short"));
    }
    Ok((page.slice(begin..middle), page.slice(middle..end)))
}

fn branch<E>(page: &Bytes, nth: usize) -> Result<(Bytes, u64), BoltError<E>> {
    let at = HEADER + nth * ELEMENT;
    let parts = (u32_at(page, at), u32_at(page, at + 4), u64_at(page, at + 8));
    let (Some(position), Some(key), Some(id)) = parts else {
        return Err(BoltError::Invalid("a branch is too short"));
    };
    let begin = at + position as usize;
    let end = begin + key as usize;
    if end > page.len() {
        return Err(BoltError::Invalid("a branch is too short"));
    }
    Ok((page.slice(begin..end), id))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u64::from_le_bytes)
}
