//! What a volume holds, from the pod and the objects it refers to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{
    ConfigMap, DownwardAPIVolumeFile, KeyToPath, PersistentVolume, Pod, Secret, Volume,
    VolumeProjection,
};

use super::VolumeError;
use super::token::{Token, Wish};
use crate::downward;
use crate::env::{Facts, Sources, claim_of};

/// Kubernetes' default for the mode of files.
const DEFAULT_MODE: u32 = 0o644;

/// What volumes are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) facts: Facts<'a>,
    pub(crate) sources: &'a Sources,
    pub(crate) tokens: &'a BTreeMap<Wish, Token>,
}

impl<'a> Given<'a> {
    pub(crate) fn pod(&self) -> &'a Pod {
        self.facts.pod
    }
}

/// What a volume holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing at first, and then what is written to it.
    Empty { group: Option<u32> },
    /// These files.
    Files(Files),
    /// What is at a path of the machine.
    Host { path: PathBuf, kind: HostKind },
}

/// Files by their path in the volume.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) files: BTreeMap<String, File>,
    /// Who they belong to, besides the node.
    pub(crate) group: Option<u32>,
}

/// A file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
    /// Whose it is, when it is one user's.
    pub(crate) owner: Option<u32>,
}

/// What a path of the machine must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// A folder, made when it is missing.
    FolderOrCreate,
    Folder,
    FileOrCreate,
    File,
    Socket,
    CharDevice,
    BlockDevice,
}

/// What a volume of a pod holds.
pub(crate) fn content(volume: &Volume, given: &Given<'_>) -> Result<Content, VolumeError> {
    let mut files = Files {
        group: group(given.pod()),
        ..Files::default()
    };
    if volume.empty_dir.is_some() {
        return Ok(Content::Empty { group: files.group });
    } else if let Some(source) = &volume.host_path {
        return host(&source.path, source.type_.as_deref());
    } else if let Some(source) = &volume.config_map {
        let mode = mode(source.default_mode);
        let optional = source.optional == Some(true);
        let items = source.items.as_deref();
        files.config_map(given, &source.name, items, optional, mode)?;
    } else if let Some(source) = &volume.secret {
        let mode = mode(source.default_mode);
        let optional = source.optional == Some(true);
        let name = source.secret_name.as_deref().unwrap_or_default();
        files.secret(given, name, source.items.as_deref(), optional, mode)?;
    } else if let Some(source) = &volume.downward_api {
        let mode = mode(source.default_mode);
        files.downward(given, source.items.as_deref().unwrap_or_default(), mode)?;
    } else if let Some(source) = &volume.projected {
        let mode = mode(source.default_mode);
        for projection in source.sources.iter().flatten() {
            files.project(given, projection, mode)?;
        }
    } else if let Some(name) = claim_of(given.pod(), volume) {
        return claimed(given, &name);
    } else {
        return Err(VolumeError::Unsupported);
    }
    Ok(Content::Files(files))
}

/// The group that everything in the pod's volumes belongs to.
fn group(pod: &Pod) -> Option<u32> {
    let context = pod.spec.as_ref()?.security_context.as_ref()?;
    u32::try_from(context.fs_group?).ok()
}

fn mode(mode: Option<i32>) -> u32 {
    mode.and_then(|mode| u32::try_from(mode).ok())
        .unwrap_or(DEFAULT_MODE)
}

fn host(path: &str, kind: Option<&str>) -> Result<Content, VolumeError> {
    let kind = match kind.unwrap_or_default() {
        "" | "DirectoryOrCreate" => HostKind::FolderOrCreate,
        "Directory" => HostKind::Folder,
        "FileOrCreate" => HostKind::FileOrCreate,
        "File" => HostKind::File,
        "Socket" => HostKind::Socket,
        "CharDevice" => HostKind::CharDevice,
        "BlockDevice" => HostKind::BlockDevice,
        _ => return Err(VolumeError::Unsupported),
    };
    // What is there, whatever it is, will do when nothing is said.
    let kind = match kind {
        HostKind::FolderOrCreate if std::path::Path::new(path).is_file() => HostKind::File,
        kind => kind,
    };
    Ok(Content::Host {
        path: PathBuf::from(path),
        kind,
    })
}

/// The folder of the volume that a claim is bound to.
fn claimed(given: &Given<'_>, name: &str) -> Result<Content, VolumeError> {
    let not_found = || VolumeError::NotFound {
        kind: "persistentvolumeclaim",
        name: name.to_owned(),
    };
    let claim = given.sources.claims.get(name).ok_or_else(not_found)?;
    let status = claim.status.as_ref();
    let bound = status.and_then(|status| status.phase.as_deref()) == Some("Bound");
    let volume = given.sources.volumes.get(name).filter(|_| bound);
    let volume = volume.ok_or_else(|| VolumeError::Unbound(name.to_owned()))?;
    persistent(volume)
}

fn persistent(volume: &PersistentVolume) -> Result<Content, VolumeError> {
    let spec = volume.spec.as_ref();
    if let Some(source) = spec.and_then(|spec| spec.host_path.as_ref()) {
        return host(&source.path, source.type_.as_deref());
    }
    let local = spec.and_then(|spec| spec.local.as_ref());
    let local = local.ok_or(VolumeError::Unsupported)?;
    // One that was provisioned for the claim is made when it is first used.
    let annotations = volume.metadata.annotations.as_ref();
    let provisioned = annotations
        .is_some_and(|annotations| annotations.contains_key("pv.kubernetes.io/provisioned-by"));
    Ok(Content::Host {
        path: PathBuf::from(&local.path),
        kind: if provisioned {
            HostKind::FolderOrCreate
        } else {
            HostKind::Folder
        },
    })
}

impl Files {
    fn put(&mut self, path: &str, bytes: &[u8], mode: u32) {
        let file = File {
            bytes: bytes.to_vec(),
            // Whoever shares the volume's group may read it.
            mode: if self.group.is_some() {
                mode | 0o440
            } else {
                mode
            },
            owner: None,
        };
        self.files.insert(path.to_owned(), file);
    }

    /// Takes the keys of an object, or the chosen ones.
    fn take(
        &mut self,
        data: &BTreeMap<String, &[u8]>,
        items: Option<&[KeyToPath]>,
        optional: bool,
        default: u32,
        missing: impl Fn(&str) -> VolumeError,
    ) -> Result<(), VolumeError> {
        let Some(items) = items.filter(|items| !items.is_empty()) else {
            for (key, bytes) in data {
                self.put(key, bytes, default);
            }
            return Ok(());
        };
        for item in items {
            match data.get(&item.key) {
                Some(bytes) => {
                    let mode = item.mode.map_or(default, |given| mode(Some(given)));
                    self.put(&item.path, bytes, mode);
                }
                None if optional => {}
                None => return Err(missing(&item.key)),
            }
        }
        Ok(())
    }

    fn config_map(
        &mut self,
        given: &Given<'_>,
        name: &str,
        items: Option<&[KeyToPath]>,
        optional: bool,
        mode: u32,
    ) -> Result<(), VolumeError> {
        let Some(map) = given.sources.config_maps.get(name) else {
            return absent("configmap", name, optional);
        };
        self.take(&data_of(map), items, optional, mode, |key| {
            VolumeError::NoSuchKey {
                kind: "configmap",
                what: "config",
                key: key.to_owned(),
            }
        })
    }

    fn secret(
        &mut self,
        given: &Given<'_>,
        name: &str,
        items: Option<&[KeyToPath]>,
        optional: bool,
        mode: u32,
    ) -> Result<(), VolumeError> {
        let Some(secret) = given.sources.secrets.get(name) else {
            return absent("secret", name, optional);
        };
        self.take(&secret_data_of(secret), items, optional, mode, |key| {
            VolumeError::NoSuchKey {
                kind: "secret",
                what: "secret",
                key: key.to_owned(),
            }
        })
    }

    fn downward(
        &mut self,
        given: &Given<'_>,
        items: &[DownwardAPIVolumeFile],
        default: u32,
    ) -> Result<(), VolumeError> {
        for item in items {
            let value = if let Some(field) = &item.field_ref {
                downward::field(&field.field_path, &given.facts)?
            } else if let Some(selector) = &item.resource_field_ref {
                downward::resource(selector, None, &given.facts)?
            } else {
                continue;
            };
            let mode = item.mode.map_or(default, |given| mode(Some(given)));
            self.put(&item.path, value.as_bytes(), mode);
        }
        Ok(())
    }

    fn project(
        &mut self,
        given: &Given<'_>,
        source: &VolumeProjection,
        mode: u32,
    ) -> Result<(), VolumeError> {
        if let Some(source) = &source.config_map {
            let optional = source.optional == Some(true);
            let items = source.items.as_deref();
            self.config_map(given, &source.name, items, optional, mode)
        } else if let Some(source) = &source.secret {
            let optional = source.optional == Some(true);
            let items = source.items.as_deref();
            self.secret(given, &source.name, items, optional, mode)
        } else if let Some(source) = &source.downward_api {
            self.downward(given, source.items.as_deref().unwrap_or_default(), mode)
        } else if let Some(source) = &source.service_account_token {
            let token = given.tokens.get(&Wish::of(source));
            let token = token.ok_or_else(|| VolumeError::Token("not given yet".to_owned()))?;
            let owner = only_user(given.pod());
            // A token is for nobody but the one who needs it, where that can be said.
            let mode = if owner.is_some() || self.group.is_some() {
                0o600
            } else {
                mode
            };
            self.put(&source.path, token.value.as_bytes(), mode);
            if let Some(file) = self.files.get_mut(&source.path) {
                file.owner = owner;
            }
            Ok(())
        } else {
            Err(VolumeError::Unsupported)
        }
    }
}

/// The user of every container of the pod, if it is the same.
fn only_user(pod: &Pod) -> Option<u32> {
    let spec = pod.spec.as_ref()?;
    let all = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    let mut users = all.map(|container| crate::agent::user(pod, container).uid);
    let first = users.next()??;
    users.all(|user| user == Some(first)).then_some(first)
}

fn absent(kind: &'static str, name: &str, optional: bool) -> Result<(), VolumeError> {
    if optional {
        return Ok(());
    }
    Err(VolumeError::NotFound {
        kind,
        name: name.to_owned(),
    })
}

fn data_of(map: &ConfigMap) -> BTreeMap<String, &[u8]> {
    let text = map.data.iter().flatten();
    let text = text.map(|(key, value)| (key.clone(), value.as_bytes()));
    let binary = map.binary_data.iter().flatten();
    text.chain(binary.map(|(key, value)| (key.clone(), value.0.as_slice())))
        .collect()
}

fn secret_data_of(secret: &Secret) -> BTreeMap<String, &[u8]> {
    let data = secret.data.iter().flatten();
    data.map(|(key, value)| (key.clone(), value.0.as_slice()))
        .collect()
}
