//! What is left of pods when their node is gone, or they are: how it is taken away.

use std::io;
use std::path::Path;

use super::oci_runtime;
use crate::containment::end_shims;
use crate::network::Bridge;
use crate::shim;
use crate::store::Store;

/// Ends every pod that a killed node left behind.
pub(super) async fn clean_up(store: &Store, bridge: Option<&Bridge>) -> io::Result<()> {
    end_shims(store).await?;
    if let Some(oci) = oci_runtime() {
        delete_containers(&oci, &store.oci(), |_| true).await;
    }
    if let Some(bridge) = bridge {
        remove_cgroups(&bridge.name);
    }
    Ok(())
}

/// Has the OCI runtime end and forget the containers whose names are meant.
pub(super) async fn delete_containers(oci: &Path, root: &Path, of: impl Fn(&str) -> bool) {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    for id in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        if !of(&id) {
            continue;
        }
        if let Err(error) = shim::delete(oci, root, &id).await {
            tracing::warn!(%error, id, "cannot delete a container");
        }
    }
}

/// Removes the cgroup that the containers' cgroups were in, from every hierarchy.
pub(super) fn remove_cgroups(name: &str) {
    let root = Path::new("/sys/fs/cgroup");
    let mut parents = vec![root.to_owned()];
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    parents.extend(
        entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir()),
    );
    for parent in parents {
        let group = parent.join(name);
        let inner = std::fs::read_dir(&group).into_iter().flatten().flatten();
        for child in inner.filter(|entry| entry.path().is_dir()) {
            let _ = std::fs::remove_dir(child.path());
        }
        let _ = std::fs::remove_dir(group);
    }
}
