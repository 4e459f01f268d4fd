//! Which folder of a volume a container sees at which path.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, VolumeMount};

use super::{Source, VolumeError, files};
use crate::env::Environment;
use crate::runtime::{Mount, Part};

/// The name of the mount that is the container's last message; no volume can have it.
pub(super) const MESSAGE: &str = "";

/// The mounts of a container, from volumes that are ready.
pub(super) fn mounts(
    container: &Container,
    environment: &Environment,
    ready: &BTreeMap<String, Source>,
) -> Result<Vec<Mount>, VolumeError> {
    let wanted = container.volume_mounts.iter().flatten();
    wanted
        .map(|wanted| {
            let volume = ready.get(&wanted.name).ok_or(VolumeError::NotFound {
                kind: "volume",
                name: wanted.name.clone(),
            })?;
            let (source, part) = match sub_path(wanted, environment)? {
                Some(path) => {
                    let source = files::below(&volume.path, &path)?;
                    let (volume, path) = (volume.path.clone(), path.into());
                    (source, Some(Part { volume, path }))
                }
                None => (volume.path.clone(), None),
            };
            Ok(Mount {
                name: wanted.name.clone(),
                source,
                part,
                path: wanted.mount_path.clone(),
                read_only: volume.read_only || wanted.read_only == Some(true),
            })
        })
        .collect()
}

/// The part of the volume that is wanted, with the variables of the container in it.
fn sub_path(
    wanted: &VolumeMount,
    environment: &Environment,
) -> Result<Option<String>, VolumeError> {
    let given = |path: &Option<String>| path.clone().filter(|path| !path.is_empty());
    if let Some(expression) = given(&wanted.sub_path_expr) {
        return match environment.expand_all(&expression) {
            Some(path) => Ok(Some(path)),
            None => Err(VolumeError::MissingVariable(expression)),
        };
    }
    Ok(given(&wanted.sub_path))
}
