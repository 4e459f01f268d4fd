//! [`Vault`]: a simulated object store in virtual time.
//!
//! What must hold of backups at every moment is looked at after each change: a manifest has its
//! object, and the newest backup of a series is never deleted.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_operator::backup::Manifest;
use etcd_operator::snapshot::Check;
use etcd_operator::store::{Call, Place, SecretData, Store, StoreError, Stores};
use tokio::time::sleep;
use windlass_cluster::{Fate, Outside};

/// How long a call takes.
const LATENCY: Duration = Duration::from_millis(5);
/// How long a caller waits for an answer.
const PATIENCE: Duration = Duration::from_mins(1);
/// Who calls.
const OPERATOR: &str = "etcd-operator";
/// The key that opens it.
pub(crate) const SECRET_KEY: &str = "wJalrXUtnFEMI-hush";
/// The only bucket.
pub(crate) const BUCKET: &str = "mybucket";

/// A simulated store. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Vault {
    state: Arc<Mutex<State>>,
    outside: Option<Outside>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Bytes>,
    uploads: BTreeMap<String, BTreeMap<usize, Bytes>>,
    begun: usize,
    /// Whether calls are answered with an error.
    broken: bool,
    /// How many of the bytes written next are stored with a bit flipped.
    flips: usize,
    /// What should never have been.
    violations: Vec<String>,
}

impl Vault {
    /// An empty store. What becomes of calls is decided by the replays of a scenario.
    pub(crate) fn new(outside: Option<Outside>) -> Self {
        Self {
            state: Arc::default(),
            outside,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls fail, or do not any more.
    pub(crate) fn break_down(&self, broken: bool) {
        self.lock().broken = broken;
    }

    /// The next object is stored with a flipped bit.
    pub(crate) fn flip_next(&self) {
        self.lock().flips = 1;
    }

    /// Flips a bit of an object that is there.
    pub(crate) fn damage(&self, key: &str) {
        let mut state = self.lock();
        let object = state.objects.get_mut(key).expect("an object");
        let mut bytes = object.to_vec();
        bytes[100] ^= 1;
        *object = bytes.into();
    }

    /// Puts an object there, as another program would.
    pub(crate) fn put(&self, key: &str, bytes: impl Into<Bytes>) {
        self.lock().objects.insert(key.to_owned(), bytes.into());
    }

    /// An object.
    pub(crate) fn object(&self, key: &str) -> Option<Bytes> {
        self.lock().objects.get(key).cloned()
    }

    /// All keys.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.lock().objects.keys().cloned().collect()
    }

    /// The manifests, by the key of their data.
    pub(crate) fn manifests(&self) -> BTreeMap<String, Manifest> {
        manifests(&self.lock().objects)
    }

    /// Nothing happened that must never happen.
    pub(crate) fn is_sound(&self) {
        let state = self.lock();
        assert!(state.violations.is_empty(), "{:#?}", state.violations);
    }

    async fn call<T>(
        &self,
        call: Call,
        carry_out: impl FnOnce(&mut State) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let outside = self.outside.as_ref();
        let fate = outside.map_or(Fate::Answered, |outside| {
            outside.call(OPERATOR, call.to_string(), call.changes())
        });
        sleep(LATENCY).await;
        if fate == Fate::CallLost {
            sleep(PATIENCE).await;
            return Err(StoreError::TimedOut(call));
        }
        let done = {
            let mut state = self.lock();
            if state.broken {
                Err(StoreError::Unavailable {
                    call,
                    message: "the store answered with an error".to_owned(),
                })
            } else {
                let before = call.changes().then(|| state.objects.clone());
                let done = carry_out(&mut state);
                if let Some(before) = before {
                    state.look(&before);
                }
                done
            }
        };
        match (fate, outside) {
            (Fate::CallerKilled, Some(outside)) => outside.kill(OPERATOR).await,
            (Fate::AnswerLost, _) => {
                sleep(PATIENCE).await;
                return Err(StoreError::TimedOut(call));
            }
            _ => {}
        }
        done
    }
}

impl State {
    /// Notes what must not be.
    fn look(&mut self, before: &BTreeMap<String, Bytes>) {
        let now = manifests(&self.objects);
        for (key, manifest) in &now {
            let object = self.objects.get(key);
            let checked = object.and_then(|object| {
                let mut check = Check::default();
                check.update(object);
                check.finish().ok()
            });
            if checked.is_none_or(|checked| checked.sha256 != manifest.sha256) {
                let text = format!("{key} has a manifest, and is not what it says");
                self.violations.push(text);
            }
        }
        for (key, manifest) in manifests(before) {
            let newer = |one: &&Manifest| {
                one.backup_uid == manifest.backup_uid && one.sequence > manifest.sequence
            };
            let periodic = key.contains("_v");
            if periodic && !now.contains_key(&key) && !now.values().any(|one| newer(&one)) {
                self.violations
                    .push(format!("{key} was the newest, and is gone"));
            }
        }
    }
}

fn manifests(objects: &BTreeMap<String, Bytes>) -> BTreeMap<String, Manifest> {
    let found = objects.iter().filter_map(|(key, bytes)| {
        let data = key.strip_suffix(".manifest.json")?;
        Some((data.to_owned(), Manifest::parse(bytes)?))
    });
    found.collect()
}

impl Stores for Vault {
    fn open(&self, place: &Place, secret: &SecretData) -> Result<Arc<dyn Store>, StoreError> {
        let credentials = secret.get("credentials").map_or(&[][..], Vec::as_slice);
        let credentials = String::from_utf8_lossy(credentials);
        if !credentials.contains("aws_secret_access_key") {
            return Err(StoreError::Secret("it has no key credentials".to_owned()));
        }
        Ok(Arc::new(Door {
            vault: self.clone(),
            denied: !credentials.contains(SECRET_KEY),
            missing: place.bucket != BUCKET,
        }))
    }
}

/// The store as one caller sees it.
struct Door {
    vault: Vault,
    denied: bool,
    missing: bool,
}

impl Door {
    async fn call<T>(
        &self,
        call: Call,
        carry_out: impl FnOnce(&mut State) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (denied, missing) = (self.denied, self.missing);
        let guarded = move |state: &mut State| match (denied, missing) {
            (true, _) => Err(StoreError::AccessDenied(call)),
            (_, true) => Err(StoreError::NotFound(call)),
            _ => carry_out(state),
        };
        self.vault.call(call, guarded).await
    }
}

#[async_trait]
impl Store for Door {
    async fn begin(&self, _: &str) -> Result<String, StoreError> {
        self.call(Call::Begin, |state| {
            state.begun += 1;
            let id = format!("upload-{}", state.begun);
            state.uploads.insert(id.clone(), BTreeMap::new());
            Ok(id)
        })
        .await
    }

    async fn part(
        &self,
        _: &str,
        upload: &str,
        index: usize,
        bytes: Bytes,
    ) -> Result<String, StoreError> {
        let upload = upload.to_owned();
        self.call(Call::Part, move |state| {
            let parts = state.uploads.get_mut(&upload);
            let parts = parts.ok_or(StoreError::NotFound(Call::Part))?;
            parts.insert(index, bytes);
            Ok(index.to_string())
        })
        .await
    }

    async fn complete(
        &self,
        key: &str,
        upload: &str,
        parts: Vec<String>,
    ) -> Result<(), StoreError> {
        let (key, upload) = (key.to_owned(), upload.to_owned());
        self.call(Call::Complete, move |state| {
            let missing = || StoreError::NotFound(Call::Complete);
            let there = state.uploads.remove(&upload).ok_or_else(missing)?;
            let mut object = Vec::new();
            for part in parts {
                let part = part.parse().ok().and_then(|nth: usize| there.get(&nth));
                object.extend_from_slice(part.ok_or_else(missing)?);
            }
            if std::mem::take(&mut state.flips) > 0 {
                object[100] ^= 1;
            }
            state.objects.insert(key, object.into());
            Ok(())
        })
        .await
    }

    async fn abort(&self, _: &str, upload: &str) -> Result<(), StoreError> {
        let upload = upload.to_owned();
        self.call(Call::Abort, move |state| {
            state.uploads.remove(&upload);
            Ok(())
        })
        .await
    }

    async fn create(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let key = key.to_owned();
        self.call(Call::Create, move |state| {
            if state.objects.contains_key(&key) {
                return Err(StoreError::AlreadyExists(Call::Create));
            }
            state.objects.insert(key, bytes);
            Ok(())
        })
        .await
    }

    async fn size(&self, key: &str) -> Result<Option<u64>, StoreError> {
        let key = key.to_owned();
        self.call(Call::Size, move |state| {
            Ok(state.objects.get(&key).map(|object| object.len() as u64))
        })
        .await
    }

    async fn read(&self, key: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        let key = key.to_owned();
        self.call(Call::Read, move |state| {
            let object = state.objects.get(&key);
            let object = object.ok_or(StoreError::NotFound(Call::Read))?;
            let at = |place: u64| usize::try_from(place).unwrap().min(object.len());
            Ok(object.slice(at(range.start)..at(range.end)))
        })
        .await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let prefix = prefix.to_owned();
        self.call(Call::List, move |state| {
            let keys = state.objects.keys();
            Ok(keys
                .filter(|key| key.starts_with(&prefix))
                .cloned()
                .collect())
        })
        .await
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        let key = key.to_owned();
        self.call(Call::Delete, move |state| {
            state.objects.remove(&key);
            Ok(())
        })
        .await
    }
}
