//! Plain processes: what they are told, and how they are found again.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;
use rustix::process::Signal;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::description::{Description, folder_of};
use super::place::Place;
use super::tree::{self, CONTAINER_MARK, Leader, Marks, NODE_MARK, POD_MARK};
use super::{HOST_IP, address, exec, volumes};
use crate::containment::{Containment, Described};
use crate::env::Environment;
use crate::image::ImageTable;
use crate::pod::hostname;
use crate::program::{Found, Obstacle, Programs};
use crate::runtime::{Connection, Execution, Launch, Report, Reports, Session, User};
use crate::shim::Config;
use crate::store::PodNote;

/// Containers that nothing keeps apart from the machine.
#[derive(Debug)]
pub(crate) struct Plain {
    /// The folder of the node.
    root: PathBuf,
    programs: Programs,
    as_root: bool,
    /// Where the API server is, for programs that look for it as a pod does.
    api_server: Option<(String, u16)>,
}

impl Plain {
    pub(crate) fn new(root: &Path, images: ImageTable, api_server: Option<(String, u16)>) -> Self {
        let as_root = rustix::process::geteuid().is_root();
        Self {
            root: root.to_owned(),
            programs: Programs::new(images, as_root, path()),
            as_root,
            api_server,
        }
    }

    fn node_mark(&self) -> Marks {
        Marks::new(NODE_MARK, &self.root.to_string_lossy(), None)
    }
}

/// The value of the mark that every process of a container carries.
fn mark(uid: &str, container: &str) -> String {
    format!("{uid}/{container}")
}

impl Containment for Plain {
    fn scheme(&self) -> &'static str {
        "process"
    }

    fn address(&self, namespace: &str, name: &str, taken: &BTreeSet<Ipv4Addr>) -> Option<Ipv4Addr> {
        let mut taken = taken.clone();
        taken.append(&mut address::bound());
        address::allocate(&self.root, namespace, name, &taken)
    }

    fn host_address(&self) -> Ipv4Addr {
        HOST_IP
    }

    fn environment(&self, pod: &Pod, address: IpAddr) -> Environment {
        let mut environment = Environment::default();
        environment.set("PATH", path());
        environment.set("HOSTNAME", hostname(pod));
        environment.set("POD_IP", address.to_string());
        environment.set(NODE_MARK, self.root.to_string_lossy());
        environment.set(POD_MARK, pod.metadata.uid.as_deref().unwrap_or_default());
        if let Some((host, port)) = &self.api_server {
            environment.set("KUBERNETES_SERVICE_HOST", host.as_str());
            environment.set("KUBERNETES_SERVICE_PORT", port.to_string());
        }
        environment
    }

    fn config(&self, _pod: &Pod, _note: &PodNote, _folder: &Path) -> io::Result<Config> {
        Ok(Config::Process)
    }

    async fn describe(
        &self,
        launch: &Launch,
        folder: &Path,
        reports: &Reports,
    ) -> Result<Described, Obstacle> {
        let work = folder.with_file_name("work");
        std::fs::create_dir_all(&work)?;
        if let Some(uid) = launch.user.uid.filter(|_| self.as_root) {
            rustix::fs::chown(&work, Some(rustix::fs::Uid::from_raw(uid)), None)
                .map_err(io::Error::from)?;
        }
        let Found {
            mut program,
            path: program_path,
            note,
            ..
        } = self.programs.find(launch).await?;
        if let Some(note) = note {
            reports.report(Report::Note(note));
        }
        let mark = mark(launch.uid(), &launch.container.name);
        program.environment.set(CONTAINER_MARK, mark);
        volumes::provide(launch, &mut program.environment, reports);
        // Nobody but root can become somebody else.
        let user = if self.as_root {
            launch.user.clone()
        } else {
            User::default()
        };
        let mut argv = program.argv.into_iter();
        let description = Description {
            name: argv.next().unwrap_or_default(),
            program: program_path,
            args: argv.collect(),
            place: Place {
                folder: folder_of(launch, &work, &user, reports),
                environment: program.environment,
                user,
            },
        };
        description.write(folder)?;
        Ok(Described {
            image_id: program.image_id,
            lower: None,
            parts: Vec::new(),
        })
    }

    fn exec(
        &self,
        _id: &str,
        folder: &Path,
        execution: &Execution,
        over: watch::Receiver<bool>,
    ) -> io::Result<Session> {
        exec::exec(&Description::read(folder)?.place, execution, over)
    }

    async fn forsake(&self, uid: &str, container: &str) {
        Marks::new(CONTAINER_MARK, &mark(uid, container), None)
            .kill()
            .await;
    }

    async fn connect(
        &self,
        note: &PodNote,
        _shim: i32,
        port: u16,
    ) -> io::Result<Box<dyn Connection>> {
        Ok(Box::new(TcpStream::connect((note.address, port)).await?))
    }

    async fn leave(&self, uid: &str, orderly: bool) {
        // A shim that ends by itself leaves nothing behind.
        if !orderly {
            Marks::new(POD_MARK, uid, None).kill().await;
        }
    }

    async fn sweep(&self, held: &BTreeMap<String, i32>) {
        let marks = self.node_mark();
        if held.is_empty() {
            marks.kill().await;
            return;
        }
        // Below no shim are those of a shim that is gone, and what commands have left behind.
        let is_held = |pid: i32| {
            let line = std::iter::successors(Some(pid), |pid| tree::parent(*pid));
            line.take_while(|pid| *pid > 1)
                .any(|pid| held.values().any(|shim| *shim == pid))
        };
        let stray: Vec<Leader> = marks
            .find()
            .into_iter()
            .filter(|pid| !is_held(*pid))
            .filter_map(Leader::alive)
            .collect();
        for stray in stray {
            tree::send_to(stray, Signal::KILL);
        }
    }

    async fn cut(&self, _uid: &str, _cut: bool) -> io::Result<()> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "pods of the process runtime are on the machine's own network, which cannot be cut",
        ))
    }
}

/// Where programs are looked for, unless a container says otherwise.
fn path() -> String {
    std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned())
}
