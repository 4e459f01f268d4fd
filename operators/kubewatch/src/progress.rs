//! How far the messages of a watch have got, kept in a `ConfigMap`.
//!
//! For each kind: the version up to which every change was sent, and the versions of the objects that
//! receivers know of. After a restart the watch of a kind goes on from there. If the API server no
//! longer knows what happened since, its objects are listed and compared: what was created, changed and
//! deleted meanwhile is sent then.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde::{Deserialize, Serialize};

const KEY: &str = "progress.json.z";
/// A `ConfigMap` holds a mebibyte: of more objects than fit only the versions of kinds are kept.
const LIMIT: usize = 900 * 1024;
/// What is read back is no larger than this.
const READ_LIMIT: u64 = 64 * 1024 * 1024;
/// The label of every `ConfigMap` with progress: no watch sends messages about them.
pub(crate) const LABEL: &str = "kubewatch.example.com/progress";
const MANAGER: &str = "kubewatch-operator";

/// How far the messages of a watch have got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// By path.
    pub(crate) kinds: BTreeMap<String, KindProgress>,
    /// How many messages were given up.
    pub(crate) dropped: u64,
}

/// How far the messages about one kind have got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KindProgress {
    /// Every change up to this version was sent.
    pub(crate) version: String,
    /// What receivers know of.
    #[serde(default)]
    pub(crate) objects: BTreeMap<String, Seen>,
    /// Whether those are all objects.
    #[serde(default)]
    pub(crate) partial: bool,
}

/// The version of an object that receivers know of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen(pub(crate) String, pub(crate) String);

/// Where progress is kept.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) owner: Option<OwnerReference>,
}

impl Place {
    fn api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// What is kept; nothing at the first start.
    pub(crate) async fn load(&self) -> windlass::Result<Option<Progress>> {
        let Some(map) = self.api().get_opt(&self.name).await? else {
            return Ok(None);
        };
        let data = map.binary_data.unwrap_or_default().remove(KEY);
        Ok(data.and_then(|data| unpack(&data.0)))
    }

    pub(crate) async fn save(&self, progress: &Progress) -> windlass::Result<()> {
        let mut packed = pack(progress)?;
        if packed.len() > LIMIT {
            let mut less = progress.clone();
            for kind in less.kinds.values_mut() {
                kind.objects.clear();
                kind.partial = true;
            }
            packed = pack(&less)?;
        }
        let mut map = ConfigMap::default();
        map.metadata.name = Some(self.name.clone());
        map.metadata.namespace = Some(self.namespace.clone());
        map.metadata.labels = Some(BTreeMap::from([(LABEL.to_owned(), "true".to_owned())]));
        map.metadata.owner_references = self.owner.clone().map(|owner| vec![owner]);
        map.binary_data = Some(BTreeMap::from([(KEY.to_owned(), ByteString(packed))]));
        let params = PatchParams::apply(MANAGER).force();
        self.api()
            .patch(&self.name, &params, &Patch::Apply(&map))
            .await?;
        Ok(())
    }
}

fn pack(progress: &Progress) -> windlass::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&serde_json::to_vec(progress)?)?;
    Ok(encoder.finish()?)
}

/// What was packed; nothing if it cannot be read: the watch then begins as at its first start.
fn unpack(data: &[u8]) -> Option<Progress> {
    let mut text = Vec::new();
    let read = ZlibDecoder::new(data)
        .take(READ_LIMIT)
        .read_to_end(&mut text);
    read.ok()?;
    serde_json::from_slice(&text).ok()
}
