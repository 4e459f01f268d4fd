//! The `kube-apiserver` of envtest: the embedded API server, with the certificates envtest made.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use windlass_cluster::{BareServer, BareServerConfig, ServiceRange, kubernetes_version};

use super::flags::{Flags, help};
use super::{ended, run};

const ABOUT: &str = "windlass as the kube-apiserver of envtest: the embedded API server, its objects in\nmemory, without controllers. With WINDLASS_CONTROLLERS=1 in its environment objects whose owners\nare gone are collected, and namespaces that are deleted end.";
const KNOWN: &[(&str, &str)] = &[
    ("bind-address", "where it listens [default: 127.0.0.1]"),
    ("secure-port", "the port [default: 6443]"),
    ("cert-dir", "where apiserver.crt and apiserver.key are"),
    (
        "tls-cert-file",
        "the certificate it shows, where it is not in cert-dir",
    ),
    ("tls-private-key-file", "its key"),
    ("client-ca-file", "who signs the certificates of clients"),
    (
        "service-account-signing-key-file",
        "the P-256 key that signs tokens",
    ),
    (
        "service-account-key-file",
        "ignored: the signing key verifies them",
    ),
    ("service-account-issuer", "who signs tokens"),
    (
        "service-cluster-ip-range",
        "where addresses of Services come from",
    ),
    (
        "disable-admission-plugins",
        "ServiceAccount can be disabled; others stay",
    ),
    ("authorization-mode", "RBAC, which needs not be said"),
    ("allow-privileged", "always true"),
    ("etcd-servers", "ignored: objects are kept in memory"),
    ("advertise-address", "ignored"),
];
/// Asks for the garbage collector, and for namespaces that end.
const CONTROLLERS: &str = "WINDLASS_CONTROLLERS";

pub(super) fn main(args: &[OsString]) -> ExitCode {
    let flags = Flags::read(args);
    if flags.has("help") || flags.has("h") {
        print!("{}", help(ABOUT, KNOWN));
        return ExitCode::SUCCESS;
    }
    if flags.has("version") {
        println!("Kubernetes {}", kubernetes_version());
        return ExitCode::SUCCESS;
    }
    crate::up::start_log();
    crate::up::raise_file_limit();
    run("kube-apiserver", serve(flags))
}

async fn serve(flags: Flags) -> Result<(), String> {
    let ignored: Vec<&str> = flags.others(KNOWN).collect();
    if !ignored.is_empty() {
        tracing::warn!(flags = ignored.join(", "), "ignored flags");
    }
    let server = BareServer::start(config(&flags)?).await;
    let server = server.map_err(|error| error.to_string())?;
    let ended = ended().await;
    server.stop().await;
    ended
}

fn config(flags: &Flags) -> Result<BareServerConfig, String> {
    let invalid = |name: &str, value: &str| format!("--{name}: {value:?} is not valid");
    let ip = match flags.get("bind-address") {
        None => IpAddr::from(Ipv4Addr::LOCALHOST),
        Some(ip) => ip.parse().map_err(|_| invalid("bind-address", ip))?,
    };
    let port = match flags.get("secure-port") {
        None => 6443,
        Some(port) => port.parse().map_err(|_| invalid("secure-port", port))?,
    };
    let service_range = match flags.get("service-cluster-ip-range") {
        None => ServiceRange::default(),
        // A second range is of IPv6, of which there is none here.
        Some(ranges) => {
            let first = ranges.split(',').next().unwrap_or_default();
            let range = first.parse();
            range.map_err(|error| format!("--service-cluster-ip-range: {error}"))?
        }
    };
    if let Some(mode) = flags
        .list("authorization-mode")
        .into_iter()
        .find(|mode| *mode != "RBAC")
    {
        tracing::warn!(mode, "ignored authorization mode: RBAC decides");
    }
    let disabled = flags.list("disable-admission-plugins");
    for name in disabled.iter().filter(|name| **name != "ServiceAccount") {
        tracing::warn!(name, "this admission plug-in cannot be disabled");
    }
    Ok(BareServerConfig {
        listen: SocketAddr::from((ip, port)),
        serving: serving(flags)?,
        client_ca: flags.get("client-ca-file").map(read).transpose()?,
        signing_key: flags
            .get("service-account-signing-key-file")
            .map(read)
            .transpose()?,
        issuer: flags
            .list("service-account-issuer")
            .first()
            .map(ToString::to_string),
        service_range,
        service_account_admission: !disabled.contains(&"ServiceAccount"),
        removes: std::env::var_os(CONTROLLERS).is_some_and(|value| value == "1"),
    })
}

/// The certificate to show, and its key, if there is one.
fn serving(flags: &Flags) -> Result<Option<(String, String)>, String> {
    if let (Some(certificate), Some(key)) = (
        flags.get("tls-cert-file"),
        flags.get("tls-private-key-file"),
    ) {
        return Ok(Some((read(certificate)?, read(key)?)));
    }
    let Some(folder) = flags.get("cert-dir").map(Path::new) else {
        return Ok(None);
    };
    let (certificate, key) = (folder.join("apiserver.crt"), folder.join("apiserver.key"));
    if !certificate.exists() {
        return Ok(None);
    }
    Ok(Some((read(certificate)?, read(key)?)))
}

fn read(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    let text = std::fs::read_to_string(path);
    text.map_err(|error| format!("cannot read {}: {error}", path.display()))
}
