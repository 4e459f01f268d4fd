//! How a path names what is asked: `name`, `name:port` or `scheme:name:port`.

/// How a connection is spoken on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

/// A name in its parts; a port that is not given is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    pub(super) scheme: Scheme,
    pub(super) name: &'a str,
    pub(super) port: &'a str,
}

impl<'a> Asked<'a> {
    /// Reads one; none when it has no name, more than three parts or an unknown scheme.
    pub(super) fn read(id: &'a str) -> Option<Self> {
        let parts: Vec<&str> = id.split(':').collect();
        let (scheme, name, port) = match parts.as_slice() {
            [name] => ("", *name, ""),
            [name, port] => ("", *name, *port),
            [scheme, name, port] => (*scheme, *name, *port),
            _ => return None,
        };
        let scheme = match scheme {
            "" | "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return None,
        };
        (!name.is_empty()).then_some(Self { scheme, name, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_and_without_scheme_and_port() {
        let read = |id| Asked::read(id).map(|it| (it.scheme, it.name, it.port));
        assert_eq!(read("web"), Some((Scheme::Http, "web", "")));
        assert_eq!(read("web:80"), Some((Scheme::Http, "web", "80")));
        assert_eq!(read("web:http"), Some((Scheme::Http, "web", "http")));
        assert_eq!(read("https:web:"), Some((Scheme::Https, "web", "")));
        assert_eq!(read("http:web:8080"), Some((Scheme::Http, "web", "8080")));
        for id in ["", ":80", "ftp:web:21", "a:b:c:d", "https::443"] {
            assert_eq!(read(id), None, "{id}");
        }
    }
}
