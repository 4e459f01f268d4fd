//! From what a controller says about its hooks to hooks that can be called.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use windlass::kind::Key;

use super::{
    hook::{Etags, HookCaller, KEPT},
    kinds::{
        Connection, EndpointConfig, Hook, HookVersion, Hooks, KeyReference, UnmarshallMode, Webhook,
    },
    transport::{Target, Tls, Transport},
};

/// How long a webhook may take if it does not say.
const TIMEOUT: Duration = Duration::from_secs(10);

/// An object that a hook's configuration names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
    Secret,
    ConfigMap,
    Service,
    /// The `EndpointSlice`s of a Service of that name.
    Slices,
}

/// What is named, as far as it is there. Slices are a list.
pub(super) type Found = BTreeMap<(Named, Key), Value>;

/// The hooks of a controller.
pub(super) struct Callers {
    pub(super) sync: HookCaller,
    pub(super) finalize: Option<HookCaller>,
    pub(super) customize: Option<HookCaller>,
}

/// What a controller says about its hooks.
pub(super) struct Said<'a> {
    pub(super) hooks: Option<&'a Hooks>,
    pub(super) endpoints: &'a [EndpointConfig],
    /// Whether programs may be run.
    pub(super) exec: bool,
    pub(super) transport: &'a Arc<dyn Transport>,
}

impl Said<'_> {
    fn all(&self) -> impl Iterator<Item = &Hook> {
        let hooks = self.hooks.into_iter();
        hooks.flat_map(|hooks| {
            [&hooks.sync, &hooks.finalize, &hooks.customize]
                .into_iter()
                .flatten()
        })
    }

    /// The objects that have to be looked at.
    pub(super) fn named(&self) -> BTreeSet<(Named, Key)> {
        let mut named = BTreeSet::new();
        let mut add = |kind: Named, reference: &KeyReference| {
            let (namespace, name) = (reference.namespace.as_str(), reference.name.as_str());
            named.insert((kind, Key::namespaced(namespace, name)));
        };
        let mut services = BTreeSet::new();
        for webhook in self.all().filter_map(|hook| hook.webhook.as_ref()) {
            let Ok(url) = url_of(webhook) else { continue };
            let connection = self.connection(webhook, &url);
            if let Some(bundle) = &connection.ca_bundle {
                bundle
                    .secret_ref
                    .iter()
                    .for_each(|one| add(Named::Secret, one));
                let map = bundle.config_map_ref.iter();
                map.for_each(|one| add(Named::ConfigMap, one));
            }
            let secrets = [
                connection.client_tls.map(|it| it.secret_ref),
                connection.authorization.map(|it| it.secret_ref),
                connection.basic_auth.map(|it| it.secret_ref),
            ];
            secrets
                .iter()
                .flatten()
                .for_each(|one| add(Named::Secret, one));
            services.extend(service_of(&url));
        }
        for service in services {
            named.insert((Named::Service, service.clone()));
            named.insert((Named::Slices, service));
        }
        named
    }

    /// How a webhook is connected to: as it says itself, or as is said for its host.
    fn connection(&self, webhook: &Webhook, url: &str) -> Connection {
        let own = webhook.connection.clone();
        let (host, port) = host_of(url).unwrap_or_default();
        let with_port = format!("{host}:{port}");
        let shared = self
            .endpoints
            .iter()
            .find(|one| one.host == host || one.host == with_port)
            .map(|one| one.connection.clone())
            .unwrap_or_default();
        let own_login = own.authorization.is_some() || own.basic_auth.is_some();
        let (authorization, basic_auth) = if own_login {
            (own.authorization, own.basic_auth)
        } else {
            (shared.authorization, shared.basic_auth)
        };
        Connection {
            ca_bundle: own.ca_bundle.or(shared.ca_bundle),
            client_tls: own.client_tls.or(shared.client_tls),
            authorization,
            basic_auth,
        }
    }

    /// The hooks, ready to be called; an error says what is missing or wrong.
    pub(super) fn callers(&self, found: &Found) -> Result<Callers, String> {
        let hooks = self.hooks.ok_or("no hooks are defined")?;
        let caller = |name, hook: &Option<Hook>| match hook {
            Some(hook) => self
                .caller(name, hook, found)
                .map(Some)
                .map_err(|error| format!("{name} hook: {error}")),
            None => Ok(None),
        };
        Ok(Callers {
            sync: caller("sync", &hooks.sync)?.ok_or("no sync hook is defined")?,
            finalize: caller("finalize", &hooks.finalize)?,
            customize: caller("customize", &hooks.customize)?,
        })
    }

    fn caller(&self, name: &'static str, hook: &Hook, found: &Found) -> Result<HookCaller, String> {
        let version = hook.version.unwrap_or_default();
        let plain = |target, timeout| HookCaller {
            name,
            version,
            target,
            headers: Vec::new(),
            timeout,
            strict: version == HookVersion::V2,
            etags: None,
            transport: Arc::clone(self.transport),
        };
        let webhook = match (&hook.webhook, hook.exec.is_empty()) {
            (Some(webhook), true) => webhook,
            (None, false) if self.exec => {
                return Ok(plain(Target::Exec(hook.exec.clone()), TIMEOUT));
            }
            (None, false) => {
                return Err("programs are not run for controllers in the cluster; \
                            start with --exec-hooks to allow it"
                    .to_owned());
            }
            (Some(_), false) => return Err("it has both webhook and exec".to_owned()),
            (None, true) => return Err("it has neither webhook nor exec".to_owned()),
        };
        let url = url_of(webhook)?;
        let connection = self.connection(webhook, &url);
        let timeout = match &webhook.timeout {
            Some(text) => duration_of(text).ok_or(format!("invalid timeout {text}"))?,
            None => TIMEOUT,
        };
        let tls = Arc::new(tls_of(&connection, found)?);
        let endpoints = service_of(&url)
            .filter(|service| found.contains_key(&(Named::Service, service.clone())))
            .map(|service| {
                endpoints_of(&service, host_of(&url).map_or(80, |(_, port)| port), found)
            });
        let mut caller = plain(
            Target::Webhook {
                url,
                endpoints,
                tls,
            },
            timeout,
        );
        caller.headers.extend(login_of(&connection, found)?);
        if let Some(mode) = webhook.response_unmarshall_mode {
            caller.strict = mode == UnmarshallMode::Strict;
        }
        if let Some(etag) = webhook
            .etag
            .as_ref()
            .filter(|etag| etag.enabled == Some(true))
        {
            let seconds = etag
                .cache_timeout_seconds
                .and_then(|it| u64::try_from(it).ok());
            let kept = seconds
                .filter(|it| *it > 0)
                .map_or(KEPT, Duration::from_secs);
            caller.etags = Some(Etags::new(kept));
        }
        Ok(caller)
    }
}

/// The address of a webhook.
fn url_of(webhook: &Webhook) -> Result<String, String> {
    if let Some(url) = &webhook.url {
        return Ok(url.clone());
    }
    let (Some(service), Some(path)) = (&webhook.service, &webhook.path) else {
        return Err("it needs either url, or both service and path".to_owned());
    };
    if service.name.is_empty() || service.namespace.is_empty() {
        return Err("its service needs name and namespace".to_owned());
    }
    let protocol = service.protocol.as_deref().unwrap_or("http");
    let port = service.port.unwrap_or(80);
    Ok(format!(
        "{protocol}://{}.{}:{port}{path}",
        service.name, service.namespace
    ))
}

/// Host and port of a URL.
fn host_of(url: &str) -> Option<(String, u16)> {
    let uri: http::Uri = url.parse().ok()?;
    let default = if uri.scheme_str() == Some("https") {
        443
    } else {
        80
    };
    Some((uri.host()?.to_owned(), uri.port_u16().unwrap_or(default)))
}

/// The Service that a URL's host would name in a cluster: `name.namespace`, perhaps with more.
fn service_of(url: &str) -> Option<Key> {
    let (host, _) = host_of(url)?;
    if host.parse::<IpAddr>().is_ok() || host.starts_with('[') {
        return None;
    }
    let labels: Vec<&str> = host.trim_end_matches('.').split('.').collect();
    match labels.as_slice() {
        [name, namespace] | [name, namespace, "svc", ..] => {
            Some(Key::namespaced(*namespace, *name))
        }
        _ => None,
    }
}

/// The endpoints of a Service that are ready, for one of its ports.
fn endpoints_of(service: &Key, port: u16, found: &Found) -> Vec<SocketAddr> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let object = found.get(&(Named::Service, service.clone()));
    let ports = list(object.and_then(|it| it.pointer("/spec/ports")));
    let named = ports.iter().find(|one| one["port"] == port);
    let name = named
        .and_then(|one| one["name"].as_str())
        .unwrap_or_default();
    let mut addresses = Vec::new();
    for slice in list(found.get(&(Named::Slices, service.clone()))) {
        let ports = list(slice.get("ports"));
        let of_name = |one: &&Value| one["name"].as_str().unwrap_or_default() == name;
        let target = ports
            .iter()
            .find(of_name)
            .and_then(|one| one["port"].as_u64());
        let Some(target) = target.and_then(|port| u16::try_from(port).ok()) else {
            continue;
        };
        for endpoint in list(slice.get("endpoints")) {
            if endpoint.pointer("/conditions/ready") == Some(&Value::Bool(false)) {
                continue;
            }
            let texts = list(endpoint.get("addresses"));
            let parsed = texts.iter().filter_map(|text| text.as_str()?.parse().ok());
            addresses.extend(parsed.map(|ip: IpAddr| SocketAddr::new(ip, target)));
        }
    }
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn tls_of(connection: &Connection, found: &Found) -> Result<Tls, String> {
    let trusted = match &connection.ca_bundle {
        None => None,
        Some(bundle) => Some(
            match (&bundle.inline, &bundle.secret_ref, &bundle.config_map_ref) {
                (Some(pem), None, None) => pem.clone().into_bytes(),
                (None, Some(one), None) => value(found, Named::Secret, one, None, "ca.crt")?,
                (None, None, Some(one)) => value(found, Named::ConfigMap, one, None, "ca.crt")?,
                _ => {
                    return Err(
                        "caBundle needs one of inline, secretRef and configMapRef".to_owned()
                    );
                }
            },
        ),
    };
    let shown = match &connection.client_tls {
        None => None,
        Some(tls) => {
            let of = |key: &Option<String>, default| {
                let key = key.as_deref().or(Some(default));
                value(found, Named::Secret, &tls.secret_ref, key, default)
            };
            Some((
                of(&tls.cert_key, "tls.crt")?,
                of(&tls.private_key_key, "tls.key")?,
            ))
        }
    };
    Ok(Tls { trusted, shown })
}

fn login_of(connection: &Connection, found: &Found) -> Result<Option<(String, String)>, String> {
    let text = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).map_err(|_| "a credential is no text".to_owned())?;
        Ok::<_, String>(text.trim().to_owned())
    };
    let login = match (&connection.authorization, &connection.basic_auth) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err("it has both authorization and basicAuth".to_owned());
        }
        (Some(login), None) => {
            let scheme = login.scheme.as_deref().unwrap_or_default().trim();
            let scheme = if scheme.is_empty() { "Bearer" } else { scheme };
            if scheme.eq_ignore_ascii_case("basic") {
                return Err("authorization of type Basic is basicAuth".to_owned());
            }
            let secret = &login.secret_ref;
            if secret.key.is_none() {
                return Err("authorization needs a key of its secret".to_owned());
            }
            let credential = text(value(found, Named::Secret, secret, None, "")?)?;
            format!("{scheme} {credential}")
        }
        (None, Some(login)) => {
            let of = |key: &Option<String>, default| {
                let key = key.as_deref().or(Some(default));
                text(value(
                    found,
                    Named::Secret,
                    &login.secret_ref,
                    key,
                    default,
                )?)
            };
            let user = of(&login.username_key, "username")?;
            if user.contains(':') {
                return Err("a user name must not contain a colon".to_owned());
            }
            let password = of(&login.password_key, "password")?;
            format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
        }
    };
    Ok(Some(("Authorization".to_owned(), login)))
}

/// The bytes under a key of a Secret or `ConfigMap`.
fn value(
    found: &Found,
    kind: Named,
    reference: &KeyReference,
    key: Option<&str>,
    default: &str,
) -> Result<Vec<u8>, String> {
    let object = Key::namespaced(reference.namespace.as_str(), reference.name.as_str());
    let key = key.or(reference.key.as_deref()).unwrap_or(default);
    let what = if kind == Named::Secret {
        "secret"
    } else {
        "configmap"
    };
    let Some(data) = found.get(&(kind, object.clone())) else {
        return Err(format!("{what} {object} does not exist"));
    };
    let Some(text) = data["data"][key].as_str() else {
        return Err(format!("{what} {object} has no key {key}"));
    };
    if kind == Named::ConfigMap {
        return Ok(text.as_bytes().to_vec());
    }
    let bytes = STANDARD.decode(text);
    bytes.map_err(|_| format!("key {key} of {what} {object} is not base64"))
}

/// A duration as Go writes it: `1m30s`, `500ms`.
pub(super) fn duration_of(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        sum += number
            * match &rest[..end] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &rest[end..];
    }
    (!text.trim().is_empty())
        .then(|| Duration::try_from_secs_f64(sum).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        assert_eq!(duration_of("10s"), Some(Duration::from_secs(10)));
        assert_eq!(duration_of("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(duration_of("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration_of("1.5h"), Some(Duration::from_mins(90)));
        for wrong in ["", "10", "s", "10 s", "ten", "-1s"] {
            assert_eq!(duration_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn host_of_two_labels_or_with_svc_names_a_service() {
        let service = |url| service_of(url).map(|key| key.to_string());
        assert_eq!(service("http://hook.ns/sync").as_deref(), Some("ns/hook"));
        assert_eq!(service("http://hook.ns:8080/").as_deref(), Some("ns/hook"));
        let long = "https://hook.ns.svc.cluster.local:443/";
        assert_eq!(service(long).as_deref(), Some("ns/hook"));
        assert_eq!(service("http://127.0.0.1:1/"), None);
        assert_eq!(service("http://localhost/"), None);
        assert_eq!(service("http://www.example.com/"), None);
    }

    #[test]
    fn endpoints_are_those_of_the_port_that_are_ready() {
        let key = Key::namespaced("ns", "hook");
        let service = json!({"spec": {"ports": [
            {"name": "web", "port": 80, "targetPort": 8080}, {"name": "other", "port": 81},
        ]}});
        let slices = json!([{
            "ports": [{"name": "other", "port": 9090}, {"name": "web", "port": 8080}],
            "endpoints": [
                {"addresses": ["10.0.0.2"], "conditions": {"ready": true}},
                {"addresses": ["10.0.0.1"]},
                {"addresses": ["10.0.0.3"], "conditions": {"ready": false}},
            ],
        }]);
        let found = Found::from([
            ((Named::Service, key.clone()), service),
            ((Named::Slices, key.clone()), slices),
        ]);
        let addresses = endpoints_of(&key, 80, &found);
        let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["10.0.0.1:8080", "10.0.0.2:8080"]);
    }
}
