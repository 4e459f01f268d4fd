//! A node whose pods are sandboxes: each has namespaces of its own, contained by an OCI runtime.
//!
//! A pod has an address on a private bridge, a host name and processes of its own. Its root shows the
//! programs of the host and little else (`root`), so that what is installed runs without an image;
//! what it writes goes to a layer in the data folder, and is gone with the container. Volumes are mounted
//! where the pod wants them. The namespaces are held by the pod's shim ([`crate::shim`]), a process
//! that outlives this one: a node that was killed and started again goes on with the pods as they
//! are.
//!
//! It needs root, Linux, and `runc` or `crun`, `ip`, `nft`, `unshare` and `nsenter`. [`missing`]
//! says what of it a machine lacks.

mod bundle;
mod capability;
mod containment;
mod exec;
mod files;
mod image;
mod leftovers;
mod root;

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass::Operator;

use crate::containment::ContainedRuntime;
use crate::fault::Faults;
use crate::image::ImageTable;
use crate::network::{self, Bridge};
use crate::node::{self, NodeConfig};
use crate::process::NodeError;
use crate::server::Tls;
use crate::store::Store;
use containment::Sandbox;

/// The programs that stand for an OCI runtime, the preferred one first.
const OCI_RUNTIMES: [&str; 2] = ["runc", "crun"];
/// What else is run, and the package that brings it.
const TOOLS: [(&str, &str); 4] = [
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
];
/// Where programs are looked for, whatever the user's `PATH`.
const FOLDERS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Containers have roots of their own; the node's folder is nobody else's to enter.
const FOLDER_MODE: u32 = 0o700;

/// What a node of sandboxes is made from.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// Its name; also the value of `spec.nodeName` of its pods.
    pub name: String,
    /// What its HTTPS server needs.
    pub tls: Option<Tls>,
    /// Where the node keeps logs and what it must remember.
    pub state_dir: PathBuf,
    /// A folder that pods must not see, wherever it is: it holds the cluster's keys.
    pub hidden: PathBuf,
    /// Which programs stand for which images.
    pub images: ImageTable,
    /// The folder with real images: OCI layouts and archives.
    pub image_dir: PathBuf,
    /// The network the pods are on.
    pub bridge: Bridge,
    /// How this program is called to become a shim; the subcommand is appended.
    pub shim: Vec<OsString>,
    /// What tests do to it.
    pub faults: Faults,
    /// Host and port of the API server as pods should use them.
    pub api_server: (String, u16),
}

/// The node as an operator: a controller of its pods, the tasks that route Services and answer for
/// names, and the one that makes it known.
pub fn operator(config: SandboxConfig) -> Result<Operator, NodeError> {
    let (bridge, state_dir) = (config.bridge.clone(), config.state_dir.clone());
    let (name, tls) = (config.name.clone(), config.tls.clone());
    let faults = config.faults.clone();
    let shim = config.shim.clone();
    let made = Store::open(&state_dir, FOLDER_MODE)
        .and_then(|store| Ok((Sandbox::new(config, store.clone())?, store)));
    let (sandbox, store) = made.map_err(|source| NodeError::State {
        path: state_dir.clone(),
        source,
    })?;
    let runtime = ContainedRuntime::new(store, shim, sandbox);
    let node = NodeConfig {
        name,
        host_ip: bridge.gateway().into(),
        state_dir,
        listen: SocketAddr::from((bridge.gateway(), 0)),
        tls,
        runtime: runtime.containment().version(),
        faults,
    };
    let operator = node::operator(node, Arc::new(runtime))?;
    Ok(network::translating(operator, &bridge))
}

/// What this machine lacks for sandboxes, as a clause of a sentence; `None` when it has everything.
pub fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("it needs root".to_owned());
    }
    if oci_runtime().is_none() {
        return Some("neither runc nor crun is installed".to_owned());
    }
    let tool = TOOLS.iter().find(|(tool, _)| find(tool).is_none());
    if let Some((tool, package)) = tool {
        return Some(format!("{tool} is not installed (package {package})"));
    }
    // Containers without namespaces of a new kind: try what every pod needs.
    let tried = std::process::Command::new("unshare")
        .args([
            "--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--", "true",
        ])
        .output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Some(format!("namespaces are not allowed here ({})", said.trim()))
        }
        Err(error) => Some(format!("namespaces cannot be tried ({error})")),
    }
}

/// The OCI runtime of this machine.
pub fn oci_runtime() -> Option<PathBuf> {
    OCI_RUNTIMES.iter().find_map(|name| find(name))
}

fn find(program: &str) -> Option<PathBuf> {
    crate::image::find(program, FOLDERS)
}

/// Ends every pod that a killed node left behind, and takes away what it leaves on the machine.
pub async fn clean_up(state_dir: &Path, bridge: Option<&Bridge>) -> io::Result<()> {
    leftovers::clean_up(&Store::open(state_dir, FOLDER_MODE)?, bridge).await
}
