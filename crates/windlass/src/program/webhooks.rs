//! How `run` serves webhooks: behind the Service of the manifests in a cluster, by a URL elsewhere.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket},
    path::PathBuf,
};

use clap::Args;
use kube::Config;

use crate::testing::{Certificates, WebhookServing};

/// How webhooks are served.
#[derive(Debug, Args)]
pub(super) struct Webhooks {
    /// A folder with tls.crt and tls.key (and ca.crt) to serve webhooks with, instead of a
    /// certificate of the operator's own.
    #[arg(long, value_name = "FOLDER")]
    webhook_certificates: Option<PathBuf>,
    /// The name or address by which the API server reaches this machine, when the operator runs
    /// outside the cluster; found out unless told.
    #[arg(long, value_name = "HOST")]
    webhook_host: Option<String>,
}

impl Webhooks {
    /// Inside a cluster behind the Service of the manifests, elsewhere by a URL.
    pub(super) fn serving(&self, config: &Config, in_cluster: bool) -> WebhookServing {
        if !in_cluster {
            let host = self.webhook_host.clone();
            let host = host.unwrap_or_else(|| own_address(config).to_string());
            let any = if host == Ipv4Addr::LOCALHOST.to_string() {
                Ipv4Addr::LOCALHOST
            } else {
                Ipv4Addr::UNSPECIFIED
            };
            return WebhookServing::Url {
                listen: SocketAddr::from((any, 0)),
                host,
            };
        }
        let mut serving = WebhookServing::default();
        if let (Some(folder), WebhookServing::Service { certificates, .. }) =
            (&self.webhook_certificates, &mut serving)
        {
            *certificates = Certificates::Folder(folder.clone());
        }
        serving
    }
}

/// The address of this machine on the way to the API server: no packet is sent to find it out.
fn own_address(config: &Config) -> IpAddr {
    let find = || -> Option<IpAddr> {
        let host = config.cluster_url.host()?.trim_matches(['[', ']']);
        let port = config.cluster_url.port_u16().unwrap_or(443);
        let there = (host, port).to_socket_addrs().ok()?.next()?;
        let any: SocketAddr = if there.is_ipv4() {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(there).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    find().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}
