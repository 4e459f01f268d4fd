//! What a request asks for: resource, namespace, name, subresource and verb, read off path, method and query.

use std::collections::BTreeMap;

use http::Method;
pub use windlass_apimachinery::Verb;

use crate::node::PROXY;

/// A request for objects of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceRequest {
    /// API group, empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Namespace from the path.
    pub namespace: Option<String>,
    /// Object name from the path.
    pub name: Option<String>,
    /// `status`, `log`, ….
    pub subresource: Option<String>,
    /// What to do.
    pub verb: Verb,
}

/// The query part, decoded. Of a repeated parameter the first value counts, as in Kubernetes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        // Go reads no pair with a semicolon in it: some once took that for another separator.
        let read = |pair: &&str| !pair.is_empty() && !pair.contains(';');
        for pair in query.split('&').filter(read) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Some(key), Some(value)) =
                (percent_decode(key, true), percent_decode(value, true))
            {
                values.entry(key).or_default().push(value);
            }
        }
        Self(values)
    }

    /// The value, if it is there and not empty.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0
            .get(key)?
            .first()
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// A parameter that is there means yes, unless it says `false` or `0`.
    pub(crate) fn flag(&self, key: &str) -> bool {
        let value = self.0.get(key).and_then(|values| values.first());
        value.is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// Whether a parameter is there, whatever it says.
    pub(crate) fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(crate) fn all(&self, key: &str) -> &[String] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }
}

/// Decodes `%XX` (and `+` in queries), bytes that are no text as U+FFFD; `None` when a percent sign
/// stands for nothing.
pub(crate) fn percent_decode(text: &str, plus_is_space: bool) -> Option<String> {
    if !text.contains(['%', '+']) {
        return Some(text.to_owned());
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let digits = text.get(at + 1..at + 3)?;
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                out.push(u8::from_str_radix(digits, 16).ok()?);
                at += 3;
            }
            b'+' if plus_is_space => {
                out.push(b' ');
                at += 1;
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Some(String::from_utf8(out).unwrap_or_else(|error| lossy(error.as_bytes())))
}

/// Every byte that is no text replaced.
fn lossy(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\u{fffd}'));
    }
    text
}

/// What stands between the slashes of a path. Slashes at its end mean nothing; a second one at its
/// beginning does.
pub(super) fn segments(path: &str) -> Vec<&str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.trim_end_matches('/').split('/').collect()
}

/// Reads a resource path, decoded as a whole (so that an escaped slash is one); `None` when it is not one (`/version`, `/openapi/v3`, `/apis/apps` …).
pub(crate) fn parse(method: &Method, path: &str, query: &Query) -> Option<ResourceRequest> {
    let parts = segments(path);
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !group.is_empty() => (*group, *version, rest),
        _ => return None,
    };
    // The old way to watch: a path of its own.
    let (watches, rest) = match (method.as_str(), rest) {
        ("GET", ["watch", rest @ ..]) => (true, rest),
        _ => (false, rest),
    };
    let (namespace, resource, name, subresource) = match rest {
        [] => return None,
        // The namespaces resource itself, and its two subresources.
        ["namespaces", name, sub @ ("status" | "finalize")] if group.is_empty() => {
            (Some(*name), "namespaces", Some(*name), Some(vec![*sub]))
        }
        ["namespaces", name] if group.is_empty() => (Some(*name), "namespaces", Some(*name), None),
        ["namespaces", namespace, resource] => (Some(*namespace), *resource, None, None),
        ["namespaces", namespace, resource, name] => {
            (Some(*namespace), *resource, Some(*name), None)
        }
        ["namespaces", namespace, resource, name, sub @ ..] if !sub.is_empty() => {
            (Some(*namespace), *resource, Some(*name), Some(sub.to_vec()))
        }
        [resource] => (None, *resource, None, None),
        [resource, name] => (None, *resource, Some(*name), None),
        [resource, name, sub @ ..] => (None, *resource, Some(*name), Some(sub.to_vec())),
    };
    // The namespace of a Namespace is itself for RBAC, but it is stored cluster-wide.
    let namespace = if resource == "namespaces" && group.is_empty() {
        None
    } else {
        namespace
    };
    // What comes after `proxy` is passed on.
    let is_proxied = subresource.as_ref().is_some_and(|sub| sub[0] == PROXY);
    let subresource = subresource.map(|sub| {
        if is_proxied {
            PROXY.to_owned()
        } else {
            sub.join("/")
        }
    });
    let verb = match (method.as_str(), name.is_some()) {
        ("HEAD" | "OPTIONS", true) if is_proxied => Verb::Get,
        ("GET", _) if watches => Verb::Watch,
        ("GET", true) => Verb::Get,
        ("GET", false) if query.flag("watch") => Verb::Watch,
        ("GET", false) => Verb::List,
        ("POST", _) => Verb::Create,
        ("PUT", _) => Verb::Update,
        ("PATCH", _) => Verb::Patch,
        ("DELETE", true) => Verb::Delete,
        ("DELETE", false) => Verb::DeleteCollection,
        _ => return None,
    };
    // Nothing between two slashes is no namespace: what is read there is read in all of them.
    let reads_all = matches!(verb, Verb::List | Verb::Watch);
    let namespace = namespace.filter(|namespace| !reads_all || !namespace.is_empty());
    Some(ResourceRequest {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        subresource,
        verb,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(method: &Method, path: &str, query: &str) -> String {
        match parse(method, path, &Query::parse(query)) {
            None => "none".into(),
            Some(r) => format!(
                "{} {}/{} {} ns={} name={} sub={}",
                r.verb.as_str(),
                r.group,
                r.version,
                r.resource,
                r.namespace.unwrap_or_default(),
                r.name.unwrap_or_default(),
                r.subresource.unwrap_or_default()
            ),
        }
    }

    #[test]
    fn paths_are_read_as_kubernetes_reads_them() {
        let get = Method::GET;
        assert_eq!(
            read(&get, "/api/v1/pods", "watch=1"),
            "watch /v1 pods ns= name= sub="
        );
        assert_eq!(
            read(&get, "/apis/apps/v1/namespaces/d/deployments/x/scale", ""),
            "get apps/v1 deployments ns=d name=x sub=scale"
        );
        assert_eq!(
            read(&Method::PUT, "/api/v1/namespaces/d/finalize", ""),
            "update /v1 namespaces ns= name=d sub=finalize"
        );
        assert_eq!(
            read(&Method::DELETE, "/api/v1/namespaces/d", ""),
            "delete /v1 namespaces ns= name=d sub="
        );
        assert_eq!(
            read(&get, "/api/v1/namespaces/d/pods", ""),
            "list /v1 pods ns=d name= sub="
        );
        assert_eq!(
            read(&get, "/api/v1/namespaces//pods", ""),
            "list /v1 pods ns= name= sub="
        );
        let proxied = "get /v1 pods ns=d name=https:x:8443 sub=proxy";
        let path = "/api/v1/namespaces/d/pods/https:x:8443/proxy";
        assert_eq!(read(&get, path, ""), proxied);
        assert_eq!(read(&Method::HEAD, &format!("{path}/a/b/"), ""), proxied);
        assert_eq!(
            read(&Method::POST, "/api/v1/nodes/n/proxy/logs", ""),
            "create /v1 nodes ns= name=n sub=proxy"
        );
        assert_eq!(read(&Method::HEAD, "/api/v1/nodes/n", ""), "none");
        assert_eq!(read(&get, "/api/v1", ""), "none");
        assert_eq!(read(&get, "//api/v1/pods", ""), "none");
        assert_eq!(read(&get, "/apis//v1/pods", ""), "none");
        assert_eq!(read(&get, "/healthz", ""), "none");
    }

    proptest! {
        #[test]
        fn no_path_or_query_panics(path in ".{0,80}", query in ".{0,80}") {
            let query = Query::parse(&query);
            let _ = parse(&Method::GET, &path, &query);
            let _ = percent_decode(&path, true);
        }

        #[test]
        fn decoding_undoes_encoding(text in "\\PC{0,40}") {
            let encoded = text.bytes().fold(String::new(), |out, byte| format!("{out}%{byte:02X}"));
            prop_assert_eq!(percent_decode(&encoded, false), Some(text));
        }
    }
}
