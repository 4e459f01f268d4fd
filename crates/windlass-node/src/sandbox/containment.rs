//! Sandboxes: what they are made from, and what is taken away after them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;

use super::bundle::{self, Place};
use super::image::Images;
use super::leftovers::{delete_containers, remove_cgroups};
use super::root::Root;
use super::{FOLDERS, SandboxConfig, exec, files, oci_runtime};
use crate::containment::{Containment, Described};
use crate::env::Environment;
use crate::network::Bridge;
use crate::program::{Found, Obstacle, Program, Programs};
use crate::runtime::{Connection, Execution, Launch, Note, Report, Reports, Session};
use crate::shim;
use crate::store::{PodNote, Store};

/// Containers that an OCI runtime keeps apart from the machine.
#[derive(Debug)]
pub(crate) struct Sandbox {
    store: Store,
    bridge: Bridge,
    /// The root of containers without an image.
    root: Root,
    /// What pods must not see, where their root shows what is around it.
    hidden: Option<PathBuf>,
    programs: Programs,
    images: Images,
    oci: PathBuf,
    /// Where that keeps its state.
    oci_root: PathBuf,
    scheme: String,
    api_server: (String, u16),
    commands: AtomicU64,
}

impl Sandbox {
    pub(super) fn new(config: SandboxConfig, store: Store) -> io::Result<Self> {
        let oci = oci_runtime().ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "no OCI runtime is installed")
        })?;
        let oci_root = store.oci();
        std::fs::create_dir_all(&oci_root)?;
        let scheme = oci.file_name().unwrap_or_default();
        let root = Root::make(store.root())?;
        let hidden = config.hidden.canonicalize()?;
        Ok(Self {
            bridge: config.bridge,
            hidden: Some(hidden).filter(|hidden| root.shows(hidden)),
            root,
            programs: Programs::new(config.images.without_addresses(), true, FOLDERS.to_owned()),
            images: Images::new(config.image_dir, store.root().join("images")),
            store,
            scheme: scheme.to_string_lossy().into_owned(),
            oci,
            oci_root,
            api_server: config.api_server,
            commands: AtomicU64::new(0),
        })
    }

    /// What `kubectl get nodes -o wide` shows.
    pub(super) fn version(&self) -> String {
        format!("{}://windlass-{}", self.scheme, env!("CARGO_PKG_VERSION"))
    }

    /// What a container runs, and in which root.
    async fn content(&self, launch: &Launch) -> Result<Content, Obstacle> {
        let name = launch.container.image.as_deref().unwrap_or_default();
        let image = self.images.find(name).await;
        let image = image.map_err(|error| {
            let message = format!("image \"{name}\" cannot be unpacked: {error}");
            Obstacle::Configuration(message)
        })?;
        if let Some(image) = image {
            let dir = Some(image.config.working_dir.clone()).filter(|dir| !dir.is_empty());
            return Ok(Content {
                program: image.program(launch),
                note: None,
                image: Some(image.root),
                programs: Vec::new(),
                working_dir: dir.unwrap_or_else(|| "/".to_owned()),
            });
        }
        let found = self.programs.find(launch).await?;
        Ok(Content {
            programs: self.brought(&found),
            program: found.program,
            note: found.note,
            image: None,
            working_dir: "/".to_owned(),
        })
    }

    /// The file of a program that the user's table names, where the root does not have it. What a
    /// container names by itself is not brought: it could be any file of the machine.
    fn brought(&self, found: &Found) -> Vec<(PathBuf, PathBuf)> {
        let Some(real) = found.path.canonicalize().ok().filter(|_| found.is_of_table) else {
            return Vec::new();
        };
        let mut brought = Vec::new();
        if !self.root.shows(&real) {
            brought.push((real.clone(), real.clone()));
            let folder = found
                .path
                .parent()
                .and_then(|path| path.canonicalize().ok());
            // A link in a folder that is shown leads to the file; any other is shown as the file.
            if found.path != real && !folder.is_some_and(|folder| self.root.shows(&folder)) {
                brought.push((real, found.path.clone()));
            }
        }
        brought
    }
}

/// What a container is made from.
struct Content {
    program: Program,
    /// What a person should know about it.
    note: Option<Note>,
    /// The root of its image, where it has one.
    image: Option<PathBuf>,
    /// Files that are shown in its root.
    programs: Vec<(PathBuf, PathBuf)>,
    /// Where it runs, unless the container says so itself.
    working_dir: String,
}

impl Containment for Sandbox {
    fn scheme(&self) -> &str {
        &self.scheme
    }

    fn address(&self, namespace: &str, name: &str, taken: &BTreeSet<Ipv4Addr>) -> Option<Ipv4Addr> {
        self.bridge.address_for(namespace, name, taken)
    }

    fn host_address(&self) -> Ipv4Addr {
        self.bridge.gateway()
    }

    fn environment(&self, pod: &Pod, _address: IpAddr) -> Environment {
        let mut environment = Environment::default();
        environment.set("PATH", FOLDERS);
        environment.set("HOSTNAME", files::hostname(pod));
        let (host, port) = &self.api_server;
        environment.set("KUBERNETES_SERVICE_HOST", host.as_str());
        environment.set("KUBERNETES_SERVICE_PORT", port.to_string());
        environment.set("KUBERNETES_SERVICE_PORT_HTTPS", port.to_string());
        environment
    }

    fn config(&self, pod: &Pod, note: &PodNote, folder: &Path) -> io::Result<shim::Config> {
        let gateway = self.bridge.gateway();
        files::write(&folder.join("etc"), pod, note.address, gateway)?;
        let spec = pod.spec.as_ref();
        let hostname = if note.host_network {
            rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned()
        } else {
            files::hostname(pod)
        };
        Ok(shim::Config::Sandbox(shim::Sandbox {
            hostname,
            own_network: !note.host_network,
            oci: self.oci.clone(),
            oci_root: self.oci_root.clone(),
            share_processes: spec.and_then(|spec| spec.share_process_namespace) == Some(true),
        }))
    }

    async fn join(&self, uid: &str, note: &PodNote, shim: i32) -> io::Result<()> {
        if note.host_network {
            return Ok(());
        }
        self.bridge.connect(uid, shim, note.address).await
    }

    async fn describe(
        &self,
        launch: &Launch,
        folder: &Path,
        reports: &Reports,
    ) -> Result<Described, Obstacle> {
        let content = self.content(launch).await?;
        let program = content.program;
        if let Some(note) = content.note.filter(|_| launch.run == 0) {
            reports.report(Report::Note(note));
        }
        if launch.user.uid.or(program.user).unwrap_or_default() == 0 && must_not_be_root(launch) {
            let why = "container has runAsNonRoot and image will run as root".to_owned();
            return Err(Obstacle::Configuration(why));
        }
        let (uid, name) = (launch.uid(), &launch.container.name);
        let (lower, root, hidden) = if let Some(image) = &content.image {
            (image.as_path(), Vec::new(), None)
        } else {
            let mounts = self.root.mounts(folder, bundle::is_read_only(launch))?;
            (self.root.path(), mounts, self.hidden.as_deref())
        };
        let place = Place {
            etc: &self.store.pod(uid).join("etc"),
            root,
            programs: content.programs,
            hidden,
            parts: &self.store.parts(uid),
            cgroup: format!("/{}/{uid}.{name}.{}", self.bridge.name, launch.run),
            working_dir: content.working_dir,
        };
        let description = bundle::describe(launch, &program, &place);
        let text = serde_json::to_vec(&description).map_err(io::Error::from)?;
        std::fs::write(folder.join("config.json"), text)?;
        Ok(Described {
            image_id: program.image_id,
            lower: Some(lower.to_string_lossy().into_owned()),
            parts: bundle::parts(launch, &place),
        })
    }

    fn exec(
        &self,
        id: &str,
        folder: &Path,
        execution: &Execution,
        _over: watch::Receiver<bool>,
    ) -> io::Result<Session> {
        let place = exec::Place {
            oci: &self.oci,
            oci_root: &self.oci_root,
            id,
            bundle: folder,
            number: self.commands.fetch_add(1, Ordering::Relaxed),
        };
        exec::exec(&place, execution)
    }

    async fn connect(
        &self,
        _note: &PodNote,
        shim: i32,
        port: u16,
    ) -> io::Result<Box<dyn Connection>> {
        let stream = crate::network::connect_inside(shim, port).await?;
        Ok(Box::new(stream))
    }

    async fn leave(&self, uid: &str, _orderly: bool) {
        delete_containers(&self.oci, &self.oci_root, |id| id.starts_with(uid)).await;
        self.bridge.disconnect(uid).await;
    }

    async fn sweep(&self, held: &BTreeMap<String, i32>) {
        let is_held = |id: &str| held.keys().any(|uid| id.starts_with(uid));
        delete_containers(&self.oci, &self.oci_root, |id| !is_held(id)).await;
        if held.is_empty() {
            remove_cgroups(&self.bridge.name);
        }
    }

    async fn cut(&self, uid: &str, cut: bool) -> io::Result<()> {
        self.bridge.cut(uid, cut).await
    }
}

/// Whether the container, or its pod for it, refuses to run as root.
fn must_not_be_root(launch: &Launch) -> bool {
    let own = launch.container.security_context.as_ref();
    let spec = launch.pod.spec.as_ref();
    let shared = spec.and_then(|spec| spec.security_context.as_ref());
    own.and_then(|context| context.run_as_non_root)
        .or_else(|| shared?.run_as_non_root)
        .unwrap_or_default()
}
