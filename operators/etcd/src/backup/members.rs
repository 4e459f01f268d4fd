//! Which members a backup is taken from: found by Services and pods of the backup's own namespace.
//!
//! The operator may connect to more than those who make an `EtcdBackup` may. So a URL counts only
//! if it is that of a Service or a pod of the same namespace.

use k8s_openapi::{
    api::core::v1::{Pod, Service},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::ResourceExt;
use windlass::{Context, Kind, Result, handle::Reads, watch::Select};

use crate::{member::CLIENT_PORT, objects};

/// Finds members by what a spec names.
pub(crate) struct Finder {
    pub(crate) services: Reads<Service>,
    pub(crate) pods: Reads<Pod>,
}

/// What a URL names, in the namespace of the backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// A Service, or an address.
    pub(crate) host: String,
    /// The pod of the Service, if the URL is that of one.
    pub(crate) pod: Option<String>,
    pub(crate) port: i32,
}

/// Why members are not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotFound {
    /// It is no URL of a member.
    #[error("cannot use endpoint {0:?}: it must be a URL such as http://example-client:2379")]
    Invalid(String),
    /// It belongs to another namespace, or to none.
    #[error("cannot use endpoint {0:?}: it names no Service or pod of namespace {1}")]
    Foreign(String, String),
    /// No pod runs there.
    #[error("no member runs at {0}")]
    Nobody(String),
}

impl Target {
    /// What a URL names; none if it is outside of the namespace.
    pub(crate) fn parse(url: &str, namespace: &str) -> Result<Option<Self>, NotFound> {
        let invalid = || NotFound::Invalid(url.to_owned());
        let uri: http::Uri = url.parse().map_err(|_| invalid())?;
        if uri.scheme_str() != Some("http") {
            return Err(invalid());
        }
        let host = uri.host().ok_or_else(invalid)?;
        let port = uri.port_u16().map_or(CLIENT_PORT, i32::from);
        let target = |host: &str, pod: Option<&str>| Self {
            host: host.to_owned(),
            pod: pod.map(str::to_owned),
            port,
        };
        let address = host.trim_start_matches('[').trim_end_matches(']');
        if address.parse::<std::net::IpAddr>().is_ok() {
            return Ok(Some(target(address, None)));
        }
        let labels: Vec<&str> = host.trim_end_matches('.').split('.').collect();
        let is_cluster = |rest: &[&str]| matches!(rest, [] | ["svc"] | ["svc", "cluster", "local"]);
        Ok(match labels.as_slice() {
            [service] => Some(target(service, None)),
            [service, own, rest @ ..] if *own == namespace && is_cluster(rest) => {
                Some(target(service, None))
            }
            [pod, service, own, rest @ ..]
                if *own == namespace && !rest.is_empty() && is_cluster(rest) =>
            {
                Some(target(service, Some(pod)))
            }
            _ => None,
        })
    }
}

impl Finder {
    /// The URLs of the pods of a cluster.
    pub(crate) async fn of_cluster<K: Kind>(
        &self,
        ctx: &Context<K>,
        cluster: &str,
    ) -> Result<Vec<String>> {
        let pods = self
            .pods
            .list(ctx, Select::labels(objects::labels(cluster)))
            .await?;
        Ok(pods
            .iter()
            .filter_map(|pod| url(pod, CLIENT_PORT))
            .collect())
    }

    /// The URLs of the pods that endpoints name.
    pub(crate) async fn of_endpoints<K: Kind>(
        &self,
        ctx: &Context<K>,
        endpoints: &[String],
    ) -> Result<Result<Vec<String>, NotFound>> {
        let namespace = ctx.key().namespace().unwrap_or_default();
        let mut found = Vec::new();
        for endpoint in endpoints {
            let target = match Target::parse(endpoint, namespace) {
                Ok(target) => target,
                Err(error) => return Ok(Err(error)),
            };
            let foreign = || NotFound::Foreign(endpoint.clone(), namespace.to_owned());
            let Some(target) = target else {
                return Ok(Err(foreign()));
            };
            let Some(urls) = self.of_target(ctx, &target).await? else {
                return Ok(Err(foreign()));
            };
            found.extend(urls);
        }
        found.sort_unstable();
        found.dedup();
        Ok(match found.as_slice() {
            [] => Err(NotFound::Nobody(endpoints.join(", "))),
            _ => Ok(found),
        })
    }

    /// None if there is no such Service or pod.
    async fn of_target<K: Kind>(
        &self,
        ctx: &Context<K>,
        target: &Target,
    ) -> Result<Option<Vec<String>>> {
        if target.host.parse::<std::net::IpAddr>().is_ok() {
            let pods = self.pods.list(ctx, Select::own_namespace()).await?;
            let mut pods = pods
                .iter()
                .filter(|pod| address(pod) == Some(target.host.as_str()));
            return Ok(pods
                .next()
                .map(|pod| url(pod, target.port).into_iter().collect()));
        }
        let Some(service) = self.services.get(ctx, target.host.as_str()).await? else {
            return Ok(None);
        };
        let spec = service.spec.clone().unwrap_or_default();
        let Some(selector) = spec.selector.filter(|selector| !selector.is_empty()) else {
            return Ok(Some(Vec::new()));
        };
        let ports = spec.ports.unwrap_or_default();
        let port = ports.iter().find(|port| port.port == target.port);
        let port = match port.and_then(|port| port.target_port.as_ref()) {
            Some(IntOrString::Int(port)) => *port,
            _ => target.port,
        };
        let pods = self.pods.list(ctx, Select::labels(selector)).await?;
        let named = |pod: &Pod| {
            target
                .pod
                .as_ref()
                .is_none_or(|name| *name == pod.name_any())
        };
        let pods = pods.iter().filter(|pod| named(pod));
        Ok(Some(pods.filter_map(|pod| url(pod, port)).collect()))
    }
}

fn address(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref()
}

/// Where a pod is reached, if it runs.
fn url(pod: &Pod, port: i32) -> Option<String> {
    let phase = pod.status.as_ref()?.phase.as_deref();
    if pod.metadata.deletion_timestamp.is_some() || matches!(phase, Some("Failed" | "Succeeded")) {
        return None;
    }
    let address = address(pod)?;
    Some(if address.contains(':') {
        format!("http://[{address}]:{port}")
    } else {
        format!("http://{address}:{port}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_names_a_service_or_pod_of_the_own_namespace() {
        let parse = |url: &str| Target::parse(url, "shop");
        let host = |url: &str| parse(url).unwrap().map(|target| (target.host, target.pod));
        assert_eq!(
            host("http://c-client:2379"),
            Some(("c-client".to_owned(), None))
        );
        assert_eq!(
            host("http://c-client.shop.svc:2379"),
            Some(("c-client".to_owned(), None))
        );
        assert_eq!(
            host("http://m.c.shop.svc.cluster.local:2379"),
            Some(("c".to_owned(), Some("m".to_owned())))
        );
        for foreign in [
            "http://c-client.other:2379",
            "http://c.other.svc",
            "http://example.com",
        ] {
            assert_eq!(host(foreign), None, "{foreign}");
        }
        for invalid in ["c-client:2379", "ftp://c", "https://c", ""] {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
    }
}
