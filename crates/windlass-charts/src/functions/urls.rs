//! URLs.

use std::collections::BTreeMap;

use super::{Result, Row, Type, entries, fail};
use crate::template::value::Value;

pub(super) const TABLE: &[Row] = &[
    ("urlParse", &[Type::Str], None, |_, args| {
        parse(&args[0].text())
    }),
    ("urlJoin", &[Type::Map], None, |_, args| join(&args[0])),
    // Rendering never asks for names.
    ("getHostByName", &[Type::Str], None, |_, _| {
        Ok(Value::str(""))
    }),
];

/// Escapes a text for a query.
pub(super) fn escape_query(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b' ' => out.push('+'),
            b'-' | b'_' | b'.' | b'~' => out.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(*byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn escape(text: &str, plain: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric()
            || b"-_.~".contains(&byte)
            || plain.as_bytes().contains(&byte)
        {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Undoes escapes; what is left of one that is none is the error.
fn unescape(text: &str) -> std::result::Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        if *byte != b'%' {
            out.push(*byte);
            rest = after;
            continue;
        }
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &after[2..];
            }
            None => {
                let bad = String::from_utf8_lossy(&rest[..rest.len().min(3)]).into_owned();
                return Err(format!(
                    "invalid URL escape {}",
                    crate::quote::quote(bad.as_bytes())
                ));
            }
        }
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

struct Url {
    scheme: String,
    userinfo: String,
    host: String,
    path: String,
    query: String,
    opaque: String,
    fragment: String,
}

fn read(text: &str) -> std::result::Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let fragment = unescape(fragment)?;
    let (scheme, rest) = scheme(rest)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url {
        scheme: scheme.to_ascii_lowercase(),
        userinfo: String::new(),
        host: String::new(),
        path: String::new(),
        query: query.to_owned(),
        opaque: String::new(),
        fragment,
    };
    let mut path = rest;
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        let first = rest.split('/').next().unwrap_or_default();
        if first.contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    if let Some(after) = rest.strip_prefix("//")
        && (!scheme.is_empty() || !rest.starts_with("///"))
    {
        let end = after.find('/').unwrap_or(after.len());
        let authority;
        (authority, path) = after.split_at(end);
        let host = match authority.rsplit_once('@') {
            Some((userinfo, host)) => {
                url.userinfo = userinfo_text(userinfo)?;
                host
            }
            None => authority,
        };
        check_port(host)?;
        url.host = unescape(host)?;
    }
    url.path = unescape(path)?;
    Ok(url)
}

fn scheme(text: &str) -> std::result::Result<(&str, &str), String> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn check_port(host: &str) -> std::result::Result<(), String> {
    let port = match host.rsplit_once(']') {
        Some((_, after)) => after,
        None => host.find(':').map_or("", |at| &host[at..]),
    };
    let is_valid = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    if is_valid {
        Ok(())
    } else {
        let port = crate::quote::quote(port.as_bytes());
        Err(format!("invalid port {port} after host"))
    }
}

/// Who is named in front of a host, escaped again as a URL shows it.
fn userinfo_text(text: &str) -> std::result::Result<String, String> {
    const PLAIN: &str = "&=+$,;";
    match text.split_once(':') {
        Some((name, password)) => Ok(format!(
            "{}:{}",
            escape(&unescape(name)?, PLAIN),
            escape(&unescape(password)?, PLAIN)
        )),
        None => Ok(escape(&unescape(text)?, PLAIN)),
    }
}

fn parse(text: &str) -> Result {
    let url = match read(text) {
        Ok(url) => url,
        Err(why) => {
            let shown = crate::quote::quote(text.as_bytes());
            return fail(format!("unable to parse url: parse {shown}: {why}"));
        }
    };
    let hostname = match url.host.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => url.host.split(':').next().unwrap_or_default(),
    };
    let entries: BTreeMap<_, _> = [
        ("hostname", hostname),
        ("scheme", &url.scheme),
        ("host", &url.host),
        ("path", &url.path),
        ("query", &url.query),
        ("opaque", &url.opaque),
        ("fragment", &url.fragment),
        ("userinfo", &url.userinfo),
    ]
    .into_iter()
    .map(|(key, value)| (key.into(), Value::str(value)))
    .collect();
    Ok(Value::map(entries))
}

fn join(parts: &Value) -> Result {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in entries(parts) {
        let known = [
            "scheme", "host", "path", "query", "opaque", "fragment", "userinfo",
        ];
        if !known.contains(&&*key) {
            continue;
        }
        match &value {
            Value::Str(_) => found.insert(key.to_string(), value.text().into_owned()),
            other => {
                return fail(format!(
                    "unable to parse {key} key, must be of type string, but {} found",
                    other.kind()
                ));
            }
        };
    }
    let part = |name: &str| found.get(name).map_or("", String::as_str);
    let mut out = String::new();
    if !part("scheme").is_empty() {
        out.push_str(part("scheme"));
        out.push(':');
    }
    if part("opaque").is_empty() {
        let (host, path) = (part("host"), part("path"));
        if !part("scheme").is_empty() || !host.is_empty() || !part("userinfo").is_empty() {
            if !host.is_empty() || !path.is_empty() || !part("userinfo").is_empty() {
                out.push_str("//");
            }
            if !part("userinfo").is_empty() {
                match userinfo_text(part("userinfo")) {
                    Ok(text) => out.push_str(&text),
                    Err(why) => return fail(format!("unable to parse userinfo in dict: {why}")),
                }
                out.push('@');
            }
            out.push_str(&escape(host, "!$&'()*+,;=:[]<>\""));
        }
        let escaped = escape(path, "$&+,/:;=@!'()*");
        if !escaped.is_empty() && !escaped.starts_with('/') && !host.is_empty() {
            out.push('/');
        }
        if out.is_empty()
            && escaped
                .split('/')
                .next()
                .is_some_and(|first| first.contains(':'))
        {
            out.push_str("./");
        }
        out.push_str(&escaped);
    } else {
        out.push_str(part("opaque"));
    }
    if !part("query").is_empty() {
        out.push('?');
        out.push_str(part("query"));
    }
    if !part("fragment").is_empty() {
        out.push('#');
        out.push_str(&escape(part("fragment"), "$&+,/:;=?@!'()*"));
    }
    Ok(Value::str(out))
}
