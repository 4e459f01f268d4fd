//! The pod of a seed: the first member of a cluster that begins with a backup.
//!
//! It never starts twice: its init containers fill an empty folder, and a seed that ends is made
//! again as a whole. Etcd itself is started as one that has its data, so it can never begin an
//! empty cluster. No shell is needed, which the images of etcd do not have.

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, Volume, VolumeMount};
use windlass::object;

use super::pod::{FOLDER, VOLUME, pod};
use crate::{
    decision::Start,
    kind::EtcdClusterSpec,
    member::Names,
    refusal::line_of,
    restore::{
        Plan,
        fetch::{self, Arguments},
    },
};

/// Where the Secret of the store is.
const SECRET: &str = "/var/run/etcd-restore";
/// The name of its volume.
const SECRET_VOLUME: &str = "store";
/// Where the backup is put.
const SNAPSHOT: &str = "/var/etcd/restore/snapshot.db";

/// The pod of a seed.
pub(crate) fn seed(
    names: Names<'_>,
    spec: &EtcdClusterSpec,
    version: &str,
    plan: &Plan,
    image: &str,
) -> Pod {
    let name = plan.seed(names.cluster);
    let mut seed = pod(names, spec, version, &name, Start::Rejoin, &[]);
    let folder = object!(Volume {
        name: VOLUME,
        empty_dir: {}
    });
    let secret = object!(Volume {
        name: SECRET_VOLUME,
        secret: { secret_name: &plan.source.secret },
    });
    if let Some(spec_of) = seed.spec.as_mut() {
        spec_of.restart_policy = Some("Never".to_owned());
        spec_of.volumes = Some(vec![folder, secret]);
        spec_of.init_containers = Some(vec![
            fetch(plan, image),
            restore(names, spec, version, &name),
        ]);
    }
    seed
}

fn mount() -> VolumeMount {
    object!(VolumeMount {
        name: VOLUME,
        mount_path: FOLDER
    })
}

fn fetch(plan: &Plan, image: &str) -> Container {
    let arguments = Arguments {
        source: plan.source.clone(),
        secret: SECRET.to_owned(),
        to: SNAPSHOT.to_owned(),
    };
    let arguments = serde_json::to_string(&arguments).unwrap_or_default();
    let secret = object!(VolumeMount {
        name: SECRET_VOLUME,
        mount_path: SECRET,
        read_only: true
    });
    object!(Container {
        name: "fetch",
        image,
        args: ["helper", fetch::NAME, arguments.as_str()],
        volume_mounts: [mount(), secret],
        termination_message_policy: "FallbackToLogsOnError",
    })
}

fn restore(names: Names<'_>, spec: &EtcdClusterSpec, version: &str, seed: &str) -> Container {
    // From 3.5 on a program of its own does it.
    let old = line_of(version).is_some_and(|line| line < (3, 5));
    let program = if old { "etcdctl" } else { "etcdutl" };
    let url = names.peer_url(seed);
    let flags = [
        ("data-dir", format!("{FOLDER}/data")),
        ("name", seed.to_owned()),
        ("initial-cluster", format!("{seed}={url}")),
        ("initial-cluster-token", names.uid.to_owned()),
        ("initial-advertise-peer-urls", url),
    ];
    let mut command = [program, "snapshot", "restore", SNAPSHOT]
        .map(str::to_owned)
        .to_vec();
    command.extend(flags.map(|(flag, value)| format!("--{flag}={value}")));
    object!(Container {
        name: "restore",
        image: spec.image(version),
        command,
        env: [object!(EnvVar {
            name: "ETCDCTL_API",
            value: "3"
        })],
        volume_mounts: [mount()],
        termination_message_policy: "FallbackToLogsOnError",
    })
}
