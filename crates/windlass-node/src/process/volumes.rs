//! Volumes, as far as plain processes can have them.
//!
//! Without a mount namespace nothing can appear at a path of a container's choosing. An emptyDir
//! is a folder of the pod, and a container that mounts it finds the folder's path in the variable
//! `WINDLASS_VOLUME_<NAME>`. An event says which mounts are not where the pod wants them; the
//! ServiceAccount token that every pod gets is left out of it, or every pod would have one.

use std::io;

use super::store::Store;
use crate::env::Environment;
use crate::runtime::{Launch, Note, Report, Reports};

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Makes the emptyDir volumes of a container and says what cannot be mounted.
pub(super) fn provide(
    store: &Store,
    launch: &Launch,
    environment: &mut Environment,
    reports: &Reports,
) -> io::Result<()> {
    let volumes = launch
        .pod
        .spec
        .as_ref()
        .and_then(|spec| spec.volumes.as_deref());
    let mut missing = Vec::new();
    for mount in launch.container.volume_mounts.iter().flatten() {
        if mount.mount_path == TOKEN_PATH {
            continue;
        }
        let volume = volumes
            .unwrap_or_default()
            .iter()
            .find(|volume| volume.name == mount.name);
        if volume.is_some_and(|volume| volume.empty_dir.is_some()) {
            let folder = store.pod(launch.uid()).join(".volumes").join(&mount.name);
            std::fs::create_dir_all(&folder)?;
            environment.set(variable(&mount.name), folder.to_string_lossy());
        }
        missing.push(format!("{} at {}", mount.name, mount.mount_path));
    }
    if !missing.is_empty() && launch.run == 0 {
        let message = format!(
            "the process runtime cannot mount volumes; container {} runs without {}",
            launch.container.name,
            missing.join(", ")
        );
        reports.report(Report::Note(Note::warning("VolumesNotMounted", message)));
    }
    Ok(())
}

fn variable(volume: &str) -> String {
    let name = volume.replace(['-', '.'], "_").to_ascii_uppercase();
    format!("WINDLASS_VOLUME_{name}")
}
