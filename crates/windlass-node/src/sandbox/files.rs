//! The files of a pod's `/etc` that say who it is and whom it asks for names.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;

use crate::dns::CLUSTER_DOMAIN;

/// The names of those files, below `/etc` and in the pod's folder alike.
pub(super) const NAMES: [&str; 3] = ["hosts", "hostname", "resolv.conf"];

/// The host name of a pod.
pub(super) fn hostname(pod: &Pod) -> String {
    let spec = pod.spec.as_ref();
    let own = spec.and_then(|spec| spec.hostname.clone());
    let name = own
        .or_else(|| pod.metadata.name.clone())
        .unwrap_or_default();
    // The kernel takes no more, and a name does not end with these.
    let short: String = name.chars().take(63).collect();
    short.trim_end_matches(['-', '.']).to_owned()
}

/// Writes the files into `folder`.
pub(super) fn write(
    folder: &Path,
    pod: &Pod,
    address: Ipv4Addr,
    nameserver: Ipv4Addr,
) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("hosts"), hosts(pod, address))?;
    fs::write(folder.join("hostname"), hostname(pod) + "\n")?;
    fs::write(folder.join("resolv.conf"), resolv_conf(pod, nameserver))
}

fn hosts(pod: &Pod, address: Ipv4Addr) -> String {
    let mut text = String::from(
        "# Kubernetes-managed hosts file.\n\
         127.0.0.1\tlocalhost\n\
         ::1\tlocalhost ip6-localhost ip6-loopback\n",
    );
    let spec = pod.spec.as_ref();
    let hostname = hostname(pod);
    let subdomain = spec.and_then(|spec| spec.subdomain.as_deref());
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let _ = match subdomain.filter(|subdomain| !subdomain.is_empty()) {
        Some(subdomain) => writeln!(
            text,
            "{address}\t{hostname}.{subdomain}.{namespace}.svc.{CLUSTER_DOMAIN}\t{hostname}"
        ),
        None => writeln!(text, "{address}\t{hostname}"),
    };
    let aliases = spec.and_then(|spec| spec.host_aliases.as_deref());
    for alias in aliases.unwrap_or_default() {
        let names = alias.hostnames.as_deref().unwrap_or_default().join("\t");
        let _ = writeln!(text, "{}\t{names}", alias.ip);
    }
    text
}

fn resolv_conf(pod: &Pod, nameserver: Ipv4Addr) -> String {
    let spec = pod.spec.as_ref();
    let policy = spec.and_then(|spec| spec.dns_policy.as_deref());
    let host_network = spec.and_then(|spec| spec.host_network) == Some(true);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let mut servers = Vec::new();
    let mut searches = Vec::new();
    let mut options = Vec::new();
    match policy {
        Some("None") => {}
        Some("Default") => return host_resolv_conf(),
        Some("ClusterFirst") | None if host_network => return host_resolv_conf(),
        _ => {
            servers.push(nameserver.to_string());
            searches.extend([
                format!("{namespace}.svc.{CLUSTER_DOMAIN}"),
                format!("svc.{CLUSTER_DOMAIN}"),
                CLUSTER_DOMAIN.to_owned(),
            ]);
            options.push("ndots:5".to_owned());
        }
    }
    if let Some(own) = spec.and_then(|spec| spec.dns_config.as_ref()) {
        servers.extend(own.nameservers.iter().flatten().cloned());
        for search in own.searches.iter().flatten() {
            if !searches.contains(search) {
                searches.push(search.clone());
            }
        }
        for option in own.options.iter().flatten() {
            let name = option.name.as_deref().unwrap_or_default();
            // The pod's own value of an option wins.
            let same = |other: &String| other.split(':').next() == Some(name);
            options.retain(|other| !same(other));
            options.push(match option.value.as_deref() {
                Some(value) if !value.is_empty() => format!("{name}:{value}"),
                _ => name.to_owned(),
            });
        }
    }
    let mut text = String::new();
    for server in servers {
        let _ = writeln!(text, "nameserver {server}");
    }
    if !searches.is_empty() {
        let _ = writeln!(text, "search {}", searches.join(" "));
    }
    if !options.is_empty() {
        let _ = writeln!(text, "options {}", options.join(" "));
    }
    text
}

fn host_resolv_conf() -> String {
    fs::read_to_string("/etc/resolv.conf").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[allow(clippy::needless_pass_by_value, reason = "json! makes values")]
    fn pod(spec: serde_json::Value) -> Pod {
        let pod = json!({"metadata": {"name": "web-0", "namespace": "shop"}, "spec": spec});
        serde_json::from_value(pod).expect("a pod")
    }

    #[test]
    fn a_pod_asks_the_cluster_first() {
        let pod = pod(json!({"containers": []}));
        assert_eq!(
            resolv_conf(&pod, Ipv4Addr::new(10, 244, 0, 1)),
            "nameserver 10.244.0.1\n\
             search shop.svc.cluster.local svc.cluster.local cluster.local\n\
             options ndots:5\n"
        );
    }

    #[test]
    fn a_pods_own_options_win() {
        let pod = pod(
            json!({"containers": [], "dnsPolicy": "ClusterFirst", "dnsConfig": {
                "nameservers": ["1.2.3.4"], "searches": ["example.com"],
                "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]
            }}),
        );
        assert_eq!(
            resolv_conf(&pod, Ipv4Addr::new(10, 244, 0, 1)),
            "nameserver 10.244.0.1\nnameserver 1.2.3.4\n\
             search shop.svc.cluster.local svc.cluster.local cluster.local example.com\n\
             options ndots:2 edns0\n"
        );
    }

    #[test]
    fn hosts_names_the_pod_and_its_aliases() {
        let pod = pod(
            json!({"containers": [], "hostname": "db", "subdomain": "dbs",
            "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["a", "b"]}]}),
        );
        let text = hosts(&pod, Ipv4Addr::new(10, 244, 0, 7));
        assert!(
            text.contains("10.244.0.7\tdb.dbs.shop.svc.cluster.local\tdb\n"),
            "{text}"
        );
        assert!(text.ends_with("10.0.0.9\ta\tb\n"), "{text}");
    }
}
