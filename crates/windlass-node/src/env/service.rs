//! The variables by which a pod finds the Services that were there before it.

use k8s_openapi::api::core::v1::Service;

use super::Environment;

/// The variables of Services that have an address.
pub fn of_services<'a>(services: impl IntoIterator<Item = &'a Service>) -> Environment {
    let mut environment = Environment::default();
    for service in services {
        set(&mut environment, service);
    }
    environment
}

fn set(environment: &mut Environment, service: &Service) {
    let Some(spec) = &service.spec else {
        return;
    };
    let address = spec.cluster_ip.as_deref().unwrap_or_default();
    let ports = spec.ports.as_deref().unwrap_or_default();
    let Some(first) = ports.first() else {
        return;
    };
    if address.is_empty() || address == "None" {
        return;
    }
    let name = variable(service.metadata.name.as_deref().unwrap_or_default());
    environment.set(format!("{name}_SERVICE_HOST"), address);
    environment.set(format!("{name}_SERVICE_PORT"), first.port.to_string());
    for port in ports {
        if let Some(port_name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            let key = format!("{name}_SERVICE_PORT_{}", variable(port_name));
            environment.set(key, port.port.to_string());
        }
    }
    let host = if address.contains(':') {
        format!("[{address}]")
    } else {
        address.to_owned()
    };
    for (index, port) in ports.iter().enumerate() {
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let (lower, upper) = (protocol.to_ascii_lowercase(), protocol.to_ascii_uppercase());
        let url = format!("{lower}://{host}:{}", port.port);
        if index == 0 {
            environment.set(format!("{name}_PORT"), url.as_str());
        }
        let prefix = format!("{name}_PORT_{}_{upper}", port.port);
        environment.set(format!("{prefix}_PROTO"), lower);
        environment.set(format!("{prefix}_PORT"), port.port.to_string());
        environment.set(format!("{prefix}_ADDR"), address);
        environment.set(prefix, url);
    }
}

fn variable(name: &str) -> String {
    name.replace('-', "_").to_ascii_uppercase()
}
