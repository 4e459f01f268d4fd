//! The private bridge that pods are on.
//!
//! Each cluster has one, named after its data folder, with ranges for pods and Services that no
//! route of the machine led to when it was made; they are kept in `network.json`. The machine has
//! the first address of the pods' range. A pod has its address alone (/32), with the machine as its
//! way to everywhere, its neighbours included. What the kernel must allow is allowed on the bridge
//! only, and so is gone with it.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::range::{self, Range};

const FILE: &str = "network.json";
/// How the names of links to pods begin.
const LINK: &str = "wv";
/// What the kernel is told about the bridge: forward what comes in by it; let the machine itself
/// reach node ports at 127.0.0.1 through it; do not tell pods of shorter ways.
const SETTINGS: [(&str, &str); 3] = [
    ("forwarding", "1"),
    ("route_localnet", "1"),
    ("send_redirects", "0"),
];

/// A bridge and its ranges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bridge {
    /// The name of the interface; also of the nftables table and of the cgroup.
    pub name: String,
    /// Where pods' addresses come from.
    pub pods: Range,
    /// Where Services' addresses come from.
    pub services: Range,
}

impl Bridge {
    /// The bridge of the cluster in `folder`, if it has one.
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(folder.join(FILE)).ok()?).ok()
    }

    /// Makes the bridge of the cluster in `folder` and brings it up, or brings the one it had up
    /// again.
    pub async fn make(folder: &Path) -> io::Result<Self> {
        // Two clusters that start at the same time must not choose the same ranges.
        let _turn = turn().await?;
        let bridge = match Self::read(folder) {
            Some(bridge) => bridge,
            None => Self::choose(folder)?,
        };
        bridge.up().await?;
        Ok(bridge)
    }

    fn choose(folder: &Path) -> io::Result<Self> {
        let table = std::fs::read_to_string("/proc/net/route")?;
        let (pods, services) = range::choose(&range::routed(&table))
            .ok_or_else(|| io::Error::other("every private range has a route on this machine"))?;
        let mut hasher = DefaultHasher::new();
        folder.canonicalize()?.hash(&mut hasher);
        let bridge = Self {
            name: format!("wl{:010x}", hasher.finish() & 0xff_ffff_ffff),
            pods,
            services,
        };
        let draft = folder.join("network.json.draft");
        std::fs::write(&draft, serde_json::to_vec(&bridge)?)?;
        std::fs::rename(draft, folder.join(FILE))?;
        Ok(bridge)
    }

    async fn up(&self) -> io::Result<()> {
        let name = &self.name;
        let made = if exists(name) {
            String::new()
        } else {
            format!("link add {name} type bridge\n")
        };
        let script = format!(
            "{made}addr replace {}/{} dev {name}\nlink set {name} up\nroute replace {} dev {name}\n",
            self.gateway(),
            self.pods.prefix,
            self.services,
        );
        ip(None, &script).await?;
        for (setting, value) in SETTINGS {
            std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/{setting}"), value)?;
        }
        // Nothing of the cluster has an address of the other kind, and no rule is about them: the
        // machine does not listen to any here. Where the kernel has none, there is nothing to do.
        let other = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        if std::path::Path::new(&other).exists() {
            std::fs::write(other, "1")?;
        }
        Ok(())
    }

    /// Takes the bridge and everything on it away.
    pub async fn remove(&self) -> io::Result<()> {
        super::nft::remove(&self.name).await?;
        if exists(&self.name) {
            // The kernel takes the links of pods away in its own time after their namespaces.
            for link in self.links().await? {
                let _ = ip(None, &format!("link del {link}\n")).await;
            }
            ip(None, &format!("link del {}\n", self.name)).await?;
        }
        Ok(())
    }

    /// The links to pods that are on it: those on others are another cluster's.
    async fn links(&self) -> io::Result<Vec<String>> {
        let listed = Command::new("ip")
            .args(["-oneline", "link", "show", "master", &self.name])
            .stdin(Stdio::null())
            .output()
            .await?;
        Ok(names(&String::from_utf8_lossy(&listed.stdout)))
    }

    /// The machine's own address on it.
    pub fn gateway(&self) -> Ipv4Addr {
        self.pods.at(1)
    }

    /// A free address for a pod. Where the search begins follows from the pod's name, so that the
    /// same pods get the same addresses again.
    pub(crate) fn address_for(
        &self,
        namespace: &str,
        name: &str,
        taken: &BTreeSet<Ipv4Addr>,
    ) -> Option<Ipv4Addr> {
        let mut hasher = DefaultHasher::new();
        (namespace, name).hash(&mut hasher);
        // The first two are the network's and the machine's, the last everybody's.
        let count = self.pods.size().saturating_sub(3);
        let start = u32::try_from(hasher.finish() % u64::from(count.max(1))).unwrap_or_default();
        (0..count)
            .map(|step| self.pods.at(2 + (start + step) % count))
            .find(|address| !taken.contains(address))
    }

    /// Connects the network namespace of a process.
    pub(crate) async fn connect(&self, uid: &str, pid: i32, address: Ipv4Addr) -> io::Result<()> {
        let (link, gateway) = (link(uid), self.gateway());
        self.disconnect(uid).await;
        let outside = format!(
            "link add {link} type veth peer name eth0 netns {pid}\n\
             link set {link} master {}\n\
             link set {link} up\n",
            self.name
        );
        ip(None, &outside).await?;
        let inside = format!(
            "link set lo up\n\
             addr add {address}/32 dev eth0\n\
             link set eth0 up\n\
             route add {gateway} dev eth0\n\
             route add default via {gateway} dev eth0\n"
        );
        ip(Some(pid), &inside).await
    }

    /// Removes the link of a pod. It goes with the pod's namespace, but later.
    pub(crate) async fn disconnect(&self, uid: &str) {
        let link = link(uid);
        if exists(&link) {
            // Somebody else may have been quicker.
            let _ = ip(None, &format!("link del {link}\n")).await;
        }
    }

    /// Cuts the link of a pod, or mends it.
    pub(crate) async fn cut(&self, uid: &str, cut: bool) -> io::Result<()> {
        let state = if cut { "down" } else { "up" };
        ip(None, &format!("link set {} {state}\n", link(uid))).await
    }
}

/// The name of the machine's end of a pod's link.
fn link(uid: &str) -> String {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    format!("{LINK}{:012x}", hasher.finish() & 0xffff_ffff_ffff)
}

/// The names of the links to pods in what `ip` lists, a link a line: `7: name@peer: ...`.
fn names(listed: &str) -> Vec<String> {
    let fields = listed.lines().filter_map(|line| line.split(": ").nth(1));
    let names = fields.filter_map(|field| field.split('@').next());
    let links = names.filter(|name| name.starts_with(LINK));
    links.map(str::to_owned).collect()
}

/// Whether the machine has an interface of that name.
fn exists(name: &str) -> bool {
    // The namespace's own table: /sys may be another's.
    let table = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let mut lines = table.lines().filter_map(|line| line.split_once(':'));
    lines.any(|(known, _)| known.trim() == name)
}

/// Runs commands of `ip`, here or in the network namespace of a process.
async fn ip(inside: Option<i32>, script: &str) -> io::Result<()> {
    let mut command = match inside {
        Some(pid) => {
            let mut command = Command::new("nsenter");
            command.arg(format!("--net=/proc/{pid}/ns/net")).arg("ip");
            command
        }
        None => Command::new("ip"),
    };
    command.args(["-batch", "-"]);
    super::nft::feed(&mut command, script).await
}

/// Waits for the turn of this process; over when it is dropped, or with the process.
async fn turn() -> io::Result<UnixListener> {
    let name = SocketAddr::from_abstract_name("windlass-network")?;
    for _ in 0..3000 {
        match UnixListener::bind_addr(&name) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            bound => return bound,
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "another windlass has been setting up its network for too long",
    ))
}

/// A connection to a port of the network namespace of a process, as from inside it.
pub async fn connect_inside(pid: i32, port: u16) -> io::Result<TcpStream> {
    let (sender, connected) = tokio::sync::oneshot::channel();
    // The namespace is the thread's, so the thread must not be used for anything else.
    std::thread::spawn(move || {
        let connect = || {
            let namespace = std::fs::File::open(format!("/proc/{pid}/ns/net"))?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            let stream = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            stream.set_nonblocking(true)?;
            io::Result::Ok(stream)
        };
        let _ = sender.send(connect());
    });
    TcpStream::from_std(connected.await.map_err(io::Error::other)??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_an_interface() {
        assert!(link("9f1c2a3e-0000-4000-8000-1234567890ab").len() <= 15);
    }

    #[test]
    fn links_to_pods_are_found_by_their_names() {
        let listed = "7: wv00a1b2c3d4e5@if2: <BROADCAST,UP> mtu 1500 master wl0\\    link/ether 1 brd 2\n\
                      8: eth1: <BROADCAST> mtu 1500 master wl0\\    link/ether 1 brd 2\n";
        assert_eq!(names(listed), ["wv00a1b2c3d4e5"]);
        assert_eq!(names(""), [] as [String; 0]);
    }

    #[test]
    fn addresses_are_of_the_range_and_nobody_elses() {
        let (pods, services) = range::choose(&[]).expect("ranges");
        let bridge = Bridge {
            name: "wl0".to_owned(),
            pods,
            services,
        };
        let mut taken = BTreeSet::new();
        for number in 0..300 {
            let name = format!("pod-{number}");
            let address = bridge
                .address_for("default", &name, &taken)
                .expect("an address");
            assert!(address > bridge.gateway() && address < pods.at(pods.size() - 1));
            assert!(taken.insert(address));
        }
    }
}
