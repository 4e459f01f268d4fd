//! Paths: what of a request's path is passed on, and where the links of an answer lead through the
//! proxy. As Go's `path` and `net/url` have it, so that both servers send the same bytes.

use crate::http::percent_decode;

/// The path of a request in its two parts, decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Paths {
    /// What is passed on; empty where the request ends with `proxy`.
    pub(super) location: String,
    /// What comes before it.
    pub(super) prefix: String,
}

impl Paths {
    /// The parts of a decoded path that has `…/<name>/proxy` in it.
    pub(super) fn of(asked: &str) -> Self {
        let rest = below(asked);
        // Slashes at the beginning are one.
        let mut subpath = rest.trim_end_matches('/').to_owned();
        if !subpath.is_empty() && !subpath.starts_with('/') {
            subpath.insert(0, '/');
        }
        if asked.ends_with('/') && !subpath.ends_with('/') {
            subpath.push('/');
        }
        let location = match subpath.as_str() {
            "" => String::new(),
            path => joined("", path),
        };
        let mut suffix = location.clone();
        if asked.ends_with('/') && !suffix.ends_with('/') {
            suffix.push('/');
        }
        let prefix = asked.strip_suffix(&suffix).unwrap_or(asked).to_owned();
        Self { location, prefix }
    }

    /// The path as it is sent.
    pub(super) fn sent(&self) -> String {
        match self.location.as_str() {
            "" => "/".to_owned(),
            path => escaped(path),
        }
    }

    /// The whole of it, for the header that says so.
    pub(super) fn forwarded(&self) -> String {
        joined(&self.prefix, &self.sent())
    }

    /// A link of an answer, led through the proxy when it is an absolute path on `backend`, or on
    /// the host that the client asked.
    pub(super) fn rewritten(&self, link: &str, backend: &str, asked: &str) -> String {
        let unchanged = || link.to_owned();
        let Some(url) = Url::read(link) else {
            return unchanged();
        };
        let elsewhere = !url.host.is_empty() && url.host != backend && url.host != asked;
        let Some(path) = percent_decode(url.path, false) else {
            return unchanged();
        };
        if elsewhere || !path.starts_with('/') {
            return unchanged();
        }
        let origin = if url.host == asked && !url.host.is_empty() {
            let scheme = url.scheme.map(|scheme| format!("{scheme}:"));
            format!("{}//{}", scheme.unwrap_or_default(), url.host)
        } else {
            String::new()
        };
        let path = if path.starts_with(&self.prefix) {
            url.path.to_owned()
        } else {
            escaped(&joined(&self.prefix, &path))
        };
        format!("{origin}{path}{}", url.rest)
    }
}

/// The first escape of a link's path that is none, if there is one.
pub(super) fn invalid_escape(link: &str) -> Option<&str> {
    let path = link.split(['?', '#']).next().unwrap_or_default();
    let invalid = |at: &usize| {
        let digits = path.as_bytes().get(at + 1..at + 3);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let at = path.match_indices('%').map(|(at, _)| at).find(invalid)?;
    let rest = &path[at..];
    let end = rest
        .char_indices()
        .nth(3)
        .map_or(rest.len(), |(end, _)| end);
    Some(&rest[..end])
}

/// What comes after `/api/v1/[namespaces/<namespace>/]<plural>/<name>/proxy/` in a path.
fn below(asked: &str) -> &str {
    let before = if asked.starts_with("/api/v1/namespaces/") {
        8
    } else {
        6
    };
    asked
        .splitn(before + 1, '/')
        .nth(before)
        .unwrap_or_default()
}

/// A URL in the parts that matter here.
struct Url<'a> {
    scheme: Option<&'a str>,
    host: &'a str,
    path: &'a str,
    /// Query and fragment.
    rest: &'a str,
}

impl<'a> Url<'a> {
    fn read(text: &'a str) -> Option<Self> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return None;
        }
        let end = text.find(['?', '#']).unwrap_or(text.len());
        let (before, rest) = text.split_at(end);
        let (scheme, before) = match before.split_once(':') {
            Some((scheme, after)) if is_scheme(scheme) => (Some(scheme), after),
            _ => (None, before),
        };
        let (host, path) = match before.strip_prefix("//") {
            Some(after) => after.split_at(after.find('/').unwrap_or(after.len())),
            None => ("", before),
        };
        Some(Self {
            scheme,
            host,
            path,
            rest,
        })
    }
}

fn is_scheme(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Two paths joined and made clean; a slash at the end stays.
fn joined(first: &str, second: &str) -> String {
    let mut clean: Vec<&str> = Vec::new();
    for segment in first.split('/').chain(second.split('/')) {
        match segment {
            "" | "." => {}
            ".." => {
                clean.pop();
            }
            segment => clean.push(segment),
        }
    }
    let mut path = format!("/{}", clean.join("/"));
    if second.ends_with('/') && !path.ends_with('/') {
        path.push('/');
    }
    path
}

/// A path with everything escaped that Go escapes in one.
fn escaped(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
    path.bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POD: &str = "/api/v1/namespaces/d/pods/web:80/proxy";

    fn paths(below: &str) -> (String, String) {
        let paths = Paths::of(&format!("{POD}{below}"));
        (paths.sent(), paths.prefix)
    }

    #[test]
    fn path_below_proxy_is_passed_on() {
        assert_eq!(Paths::of(POD).location, "");
        assert_eq!(paths("/"), ("/".into(), POD.into()));
        assert_eq!(paths("/a/b"), ("/a/b".into(), POD.into()));
        assert_eq!(paths("/a/b/"), ("/a/b/".into(), POD.into()));
        assert_eq!(paths("/a b"), ("/a%20b".into(), POD.into()));
        assert_eq!(paths("/proxy/x"), ("/proxy/x".into(), POD.into()));
        assert_eq!(paths("/a/../b").0, "/b");
        assert_eq!(paths("//a//b").0, "/a/b");
        let node = Paths::of("/api/v1/nodes/n/proxy/logs/");
        assert_eq!(node.location, "/logs/");
        assert_eq!(node.prefix, "/api/v1/nodes/n/proxy");
        let own = Paths::of("/api/v1/namespaces/proxy/pods/proxy/proxy/proxy");
        assert_eq!(own.location, "/proxy");
        assert_eq!(own.prefix, "/api/v1/namespaces/proxy/pods/proxy/proxy");
    }

    #[test]
    fn link_to_the_same_host_leads_through_the_proxy() {
        let paths = Paths::of(&format!("{POD}/page"));
        let through = |link: &str| paths.rewritten(link, "10.0.0.5:80", "127.0.0.1:6443");
        assert_eq!(
            through("/login?next=%2Fx#top"),
            format!("{POD}/login?next=%2Fx#top")
        );
        assert_eq!(through("/a/"), format!("{POD}/a/"));
        assert_eq!(through("http://10.0.0.5:80/a"), format!("{POD}/a"));
        assert_eq!(through("//10.0.0.5:80/a"), format!("{POD}/a"));
        assert_eq!(
            through("https://127.0.0.1:6443/a"),
            format!("https://127.0.0.1:6443{POD}/a")
        );
        assert_eq!(through(&format!("{POD}/a")), format!("{POD}/a"));
        for same in [
            "a/b",
            "",
            "#top",
            "?x",
            "https://example.com/a",
            "mailto:a@b",
            "%zz",
        ] {
            assert_eq!(through(same), same);
        }
    }

    #[test]
    fn escape_that_is_none_is_found() {
        assert_eq!(invalid_escape("/a%2Fb?%zz"), None);
        assert_eq!(invalid_escape("/a%20%zz/b"), Some("%zz"));
        assert_eq!(invalid_escape("/a%2"), Some("%2"));
    }

    proptest! {
        #[test]
        fn no_path_or_link_panics(path in ".{0,60}", link in ".{0,60}") {
            let paths = Paths::of(&path);
            let _ = invalid_escape(&link);
            let _ = (paths.sent(), paths.forwarded(), paths.rewritten(&link, "a", "b"));
            let _ = Paths::of(&format!("{POD}/{path}")).rewritten(&link, "a", "b");
        }
    }
}
