//! From a webhook's configuration to an address: a Service resolves to a ready endpoint.

use std::sync::Arc;

use serde_json::Value;

use super::configuration::ClientConfig;
use super::transport::WebhookTarget;
use crate::server::ApiServer;
use crate::status::{ApiError, Subject};
use crate::store::{Key, Stored, TableName};

/// The label of an `EndpointSlice` that names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Why there is nothing to connect to.
#[derive(Debug, thiserror::Error)]
pub(super) enum AddressError {
    #[error("parse \"{0}\": invalid URL")]
    Url(String),
    #[error("{}", .0.message)]
    NoService(Box<ApiError>),
    #[error("cannot route to service with ClusterIP \"None\"")]
    Headless,
    #[error("no service port {port} found for service \"{service}\"")]
    NoPort { port: u16, service: String },
    #[error("no endpoints available for service \"{0}\"")]
    NoEndpoints(String),
}

/// Host and port to connect to.
pub(super) fn resolve(
    server: &ApiServer,
    client: &ClientConfig,
) -> Result<(String, u16), AddressError> {
    match &client.target {
        WebhookTarget::Url(url) => {
            let (host, port, _) = client
                .target
                .parts()
                .ok_or_else(|| AddressError::Url(url.clone()))?;
            Ok((host, port))
        }
        WebhookTarget::Service {
            namespace,
            name,
            port,
            ..
        } => {
            if server.webhooks().knows_service(namespace, name) {
                return Ok((format!("{name}.{namespace}.svc"), *port));
            }
            endpoint(server, namespace, name, *port)
        }
    }
}

fn endpoint(
    server: &ApiServer,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<(String, u16), AddressError> {
    let store = server.store();
    let service = store
        .get(&TableName::new("", "services"), &Key::new(namespace, name))
        .ok_or_else(|| {
            let subject = Subject {
                group: "",
                kind: "service",
            };
            AddressError::NoService(Box::new(ApiError::not_found(subject, name)))
        })?
        .value();
    if service["spec"]["type"] == "ExternalName" {
        let host = service["spec"]["externalName"].as_str().unwrap_or_default();
        return Ok((host.to_owned(), port));
    }
    if service["spec"]["clusterIP"] == "None" {
        return Err(AddressError::Headless);
    }
    let ports = service["spec"]["ports"].as_array();
    let chosen = ports
        .into_iter()
        .flatten()
        .find(|known| known["port"].as_u64() == Some(port.into()))
        .ok_or_else(|| AddressError::NoPort {
            port,
            service: name.to_owned(),
        })?;
    let port_name = chosen["name"].as_str().unwrap_or_default();
    let slices = TableName::new("discovery.k8s.io", "endpointslices");
    let listing = store
        .list(&slices, Some(namespace), None, None)
        .map_err(|_| AddressError::NoEndpoints(name.to_owned()))?;
    let of_service =
        |slice: &&Arc<Stored>| slice.labels.get(SERVICE_NAME).is_some_and(|of| of == name);
    listing
        .objects
        .iter()
        .filter(of_service)
        .find_map(|slice| ready(&slice.value(), port_name))
        .ok_or_else(|| AddressError::NoEndpoints(name.to_owned()))
}

/// The first ready address of a slice, with the port of that name.
fn ready(slice: &Value, port_name: &str) -> Option<(String, u16)> {
    let ports = slice["ports"].as_array()?;
    let port = ports
        .iter()
        .find(|port| port["name"].as_str().unwrap_or_default() == port_name)?;
    let port = u16::try_from(port["port"].as_u64()?).ok()?;
    let endpoints = slice["endpoints"].as_array()?;
    let endpoint = endpoints
        .iter()
        .find(|endpoint| endpoint["conditions"]["ready"] != false)?;
    let address = endpoint["addresses"].get(0)?.as_str()?;
    Some((address.to_owned(), port))
}
