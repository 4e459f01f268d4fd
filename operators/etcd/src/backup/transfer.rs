//! A snapshot on its way: from a member into the store, and back out of it.

use std::{collections::VecDeque, ops::Range, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, future::BoxFuture, stream};
use tokio::time::timeout;

use crate::{
    etcd::{Etcd, EtcdError},
    snapshot::{BoltError, Check, Checked, Facts, NotWhole, ReadAt, facts},
    store::{PART, Store, StoreError},
};

/// How many parts are on their way at once.
const AT_ONCE: usize = 4;
/// A member that sends nothing for so long is stuck.
const STALLED: Duration = Duration::from_mins(1);
/// The hash at the end of a snapshot, which is not part of its database.
const HASH: u64 = 32;

/// Why a transfer failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The member.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// The member ended before the snapshot did.
    #[error("the member stopped sending the snapshot before its end")]
    Ended,
    /// The snapshot is not what it should be.
    #[error(transparent)]
    NotWhole(#[from] NotWhole),
    /// It is whole, and no database.
    #[error("cannot read the snapshot: {0}")]
    Invalid(&'static str),
    /// The object is not there.
    #[error("the backup {0} is not in the store")]
    Missing(String),
}

/// Sends the snapshot of a member into an upload. The parts that it returns are not an object yet.
pub(crate) async fn upload(
    etcd: &dyn Etcd,
    member: &str,
    store: &Arc<dyn Store>,
    key: &str,
    upload: &str,
) -> Result<(Checked, Vec<String>), TransferError> {
    let mut snapshot = etcd.snapshot(member).await?;
    let (mut check, mut piece) = (Check::default(), BytesMut::with_capacity(PART));
    let mut parts = Vec::new();
    let mut under_way: VecDeque<BoxFuture<'static, Result<String, StoreError>>> = VecDeque::new();
    let mut index = 0;
    let mut send = |bytes: Bytes| -> BoxFuture<'static, Result<String, StoreError>> {
        let (store, key, upload, nth) =
            (Arc::clone(store), key.to_owned(), upload.to_owned(), index);
        index += 1;
        let sent = tokio::spawn(async move { store.part(&key, &upload, nth, bytes).await });
        Box::pin(AbortOnDrop(sent))
    };
    let mut remaining = None;
    loop {
        let next = timeout(STALLED, snapshot.next()).await;
        let Some(chunk) = next.map_err(|_| TransferError::Ended)? else {
            break;
        };
        let chunk = chunk?;
        check.update(&chunk.blob);
        piece.extend_from_slice(&chunk.blob);
        remaining = Some(chunk.remaining);
        while piece.len() >= PART {
            under_way.push_back(send(piece.split_to(PART).freeze()));
            if under_way.len() >= AT_ONCE
                && let Some(oldest) = under_way.pop_front()
            {
                parts.push(oldest.await?);
            }
        }
    }
    if remaining != Some(0) {
        return Err(TransferError::Ended);
    }
    // Before anything of it can become an object.
    let checked = check.finish()?;
    if !piece.is_empty() {
        under_way.push_back(send(piece.freeze()));
    }
    for part in under_way {
        parts.push(part.await?);
    }
    Ok((checked, parts))
}

/// A task that ends when nobody waits for it any more.
struct AbortOnDrop(tokio::task::JoinHandle<Result<String, StoreError>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Future for AbortOnDrop {
    type Output = Result<String, StoreError>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        let task = std::pin::Pin::new(&mut self.0);
        task.poll(cx)
            .map(|done| done.unwrap_or(Err(StoreError::TimedOut(crate::store::Call::Part))))
    }
}

/// Reads an object from beginning to end; each piece goes to `each` too.
pub(crate) async fn read_back(
    store: &Arc<dyn Store>,
    key: &str,
    mut each: impl FnMut(&[u8]) -> std::io::Result<()> + Send,
) -> Result<std::io::Result<Checked>, TransferError> {
    let size = store.size(key).await?;
    let size = size.ok_or_else(|| TransferError::Missing(key.to_owned()))?;
    let mut pieces = stream::iter(ranges(size))
        .map(|range| {
            let (store, key) = (Arc::clone(store), key.to_owned());
            async move { store.read(&key, range).await }
        })
        .buffered(AT_ONCE);
    let mut check = Check::default();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        check.update(&piece);
        if let Err(error) = each(&piece) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(check.finish()?))
}

/// What the snapshot in the store says of itself.
pub(crate) async fn facts_of(
    store: &Arc<dyn Store>,
    key: &str,
    bytes: u64,
) -> Result<Facts, TransferError> {
    let object = Object { store, key };
    facts(&object, bytes.saturating_sub(HASH))
        .await
        .map_err(|error| match error {
            BoltError::Read(error) => error.into(),
            BoltError::Invalid(why) => TransferError::Invalid(why),
        })
}

struct Object<'a> {
    store: &'a Arc<dyn Store>,
    key: &'a str,
}

#[async_trait]
impl ReadAt for Object<'_> {
    type Error = StoreError;

    async fn read_at(&self, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        self.store.read(self.key, offset..offset + length).await
    }
}

fn ranges(size: u64) -> impl Iterator<Item = Range<u64>> {
    let step = PART as u64;
    (0..size.div_ceil(step)).map(move |nth| nth * step..((nth + 1) * step).min(size))
}
