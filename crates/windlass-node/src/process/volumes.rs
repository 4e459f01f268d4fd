//! Volumes, as far as plain processes can have them.
//!
//! Without a mount namespace nothing can appear at a path of a container's choosing. Every volume
//! is prepared all the same, and a container finds where in the variable
//! `WINDLASS_VOLUME_<NAME>`; its ServiceAccount (token, CA, namespace) in
//! `WINDLASS_SERVICE_ACCOUNT`, and the file of its last message in
//! `WINDLASS_TERMINATION_MESSAGE_PATH`. An event says which mounts are not where the pod wants
//! them; what every pod gets without asking is left out of it, or every pod would have one.

use std::path::Path;

use crate::env::Environment;
use crate::runtime::{Launch, Mount, Note, Report, Reports};
use crate::volume::is_message;

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Tells a container where its volumes are, and people what is not where it should be.
pub(super) fn provide(launch: &Launch, environment: &mut Environment, reports: &Reports) {
    let mut elsewhere = Vec::new();
    for mount in &launch.mounts {
        let source = mount.source.to_string_lossy();
        if is_message(mount) {
            environment.set("WINDLASS_TERMINATION_MESSAGE_PATH", source);
        } else if mount.path == TOKEN_PATH {
            environment.set("WINDLASS_SERVICE_ACCOUNT", source);
        } else {
            let variable = variable(&mount.name);
            if !is_there(mount) {
                elsewhere.push(format!(
                    "{} at {} (it is at {source}, in ${variable})",
                    mount.name, mount.path
                ));
            }
            environment.set(variable, source);
        }
    }
    if !elsewhere.is_empty() && launch.run == 0 {
        let message = format!(
            "the process runtime cannot mount volumes; container {} runs without {}",
            launch.container.name,
            elsewhere.join(", ")
        );
        reports.report(Report::Note(Note::warning("VolumesNotMounted", message)));
    }
}

/// Whether the machine has at that path what the container wants there.
fn is_there(mount: &Mount) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let wanted = real(Path::new(&mount.path));
    wanted.is_some() && wanted == real(&mount.source)
}

fn variable(volume: &str) -> String {
    let name = volume.replace(['-', '.'], "_").to_ascii_uppercase();
    format!("WINDLASS_VOLUME_{name}")
}
