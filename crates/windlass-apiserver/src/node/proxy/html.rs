//! Links in pages: those that are absolute paths would lead past the proxy.
//!
//! Only the values of attributes that are known to be links are replaced; everything else of a page
//! stays as it is. A page that is too large, or is compressed in a way that is not read here, stays
//! as it is as well.

use std::io::Read as _;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use futures::{StreamExt as _, stream};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::send::as_body;
use crate::http::{Body, BodyError};

/// The largest page whose links are looked at.
const LARGEST: usize = 8 * 1024 * 1024;
/// Which attributes of which elements are links.
const LINKS: &[(&str, &[&str])] = &[
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["formaction", "src", "usemap"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];
/// Elements in which there are no others.
const TEXT: &[&str] = &[
    "iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp",
];

/// Whether an answer is a page.
pub(super) fn is_html(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim() == "text/html"
}

/// A page with its links led through `through`, and its length where it is known.
pub(super) async fn rewrite(
    mut page: Incoming,
    headers: &HeaderMap,
    through: impl Fn(&str) -> String,
) -> (Body, Option<usize>) {
    let packed = match headers
        .get(CONTENT_ENCODING)
        .map(http::HeaderValue::as_bytes)
    {
        None | Some(b"") => false,
        Some(b"gzip") => true,
        Some(_) => return (as_body(page), None),
    };
    let mut read = BytesMut::new();
    while let Some(frame) = page.frame().await {
        match frame {
            Ok(frame) => read.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Err(error) => {
                let broken = Err(BodyError(error.to_string()));
                return (
                    Body::stream(stream::iter([Ok(read.freeze()), broken])),
                    None,
                );
            }
        }
        if read.len() > LARGEST {
            let begun = stream::iter([Ok(read.freeze())]);
            let rest = page.into_data_stream();
            let rest = rest.map(|chunk| chunk.map_err(|error| BodyError(error.to_string())));
            return (Body::stream(begun.chain(rest)), None);
        }
    }
    let read = read.freeze();
    let rewritten = if packed {
        unpack(&read).map_or_else(|| read.clone(), |page| pack(&rewritten(&page, through)))
    } else {
        rewritten(&read, through).into()
    };
    let length = rewritten.len();
    (Body::whole(rewritten), Some(length))
}

/// What was compressed; none when it is too large, or broken.
fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut page = Vec::new();
    let limit = u64::try_from(LARGEST).unwrap_or(u64::MAX);
    let read = GzDecoder::new(packed).take(limit).read_to_end(&mut page);
    read.is_ok_and(|length| length < LARGEST).then_some(page)
}

fn pack(page: &[u8]) -> Bytes {
    let mut packed = Vec::new();
    // Reading from memory cannot fail.
    let _ = GzEncoder::new(page, Compression::default()).read_to_end(&mut packed);
    packed.into()
}

/// A page with other links.
fn rewritten(page: &[u8], through: impl Fn(&str) -> String) -> Vec<u8> {
    let mut out = Vec::with_capacity(page.len());
    let (mut copied, mut at) = (0, 0);
    while let Some(open) = find(page, at, b"<") {
        let after = page.get(open + 1).copied().unwrap_or_default();
        at = if page[open..].starts_with(b"<!--") {
            behind(page, open + 4, b"-->")
        } else if after.is_ascii_alphabetic() {
            let tag = Tag::read(page, open + 1);
            for value in tag.links {
                let Ok(link) = std::str::from_utf8(&page[value.clone()]) else {
                    continue;
                };
                let link = unescaped(link);
                let led = through(&link);
                if led != link {
                    out.extend_from_slice(&page[copied..value.start]);
                    out.extend_from_slice(escaped(&led).as_bytes());
                    copied = value.end;
                }
            }
            match tag.name.as_str() {
                name if TEXT.contains(&name) => end_of_text(page, tag.end, name),
                _ => tag.end,
            }
        } else if matches!(after, b'/' | b'!' | b'?') {
            behind(page, open + 1, b">")
        } else {
            open + 1
        };
    }
    out.extend_from_slice(&page[copied..]);
    out
}

/// The beginning of an element.
struct Tag {
    name: String,
    /// Where the values are that are links.
    links: Vec<Range<usize>>,
    /// Where what follows it begins.
    end: usize,
}

impl Tag {
    /// Reads one whose name begins at `at`.
    fn read(page: &[u8], at: usize) -> Self {
        let mut at = at;
        let name = word(page, &mut at, b"/>");
        let known = LINKS.iter().find(|(element, _)| *element == name);
        let known = known.map_or(&[] as &[&str], |(_, attributes)| attributes);
        let mut links = Vec::new();
        loop {
            skip(page, &mut at, |byte| {
                byte.is_ascii_whitespace() || byte == b'/'
            });
            match page.get(at) {
                None => break,
                Some(b'>') => {
                    at += 1;
                    break;
                }
                Some(_) => {}
            }
            let before = at;
            let attribute = word(page, &mut at, b"/>=");
            skip(page, &mut at, |byte| byte.is_ascii_whitespace());
            if page.get(at) == Some(&b'=') {
                at += 1;
                let value = value(page, &mut at);
                if known.contains(&attribute.as_str()) {
                    links.push(value);
                }
            }
            // A sign that belongs to nothing.
            if at == before {
                at += 1;
            }
        }
        Self {
            name,
            links,
            end: at,
        }
    }
}

/// A name up to a space or one of `ends`, in lower case.
fn word(page: &[u8], at: &mut usize, ends: &[u8]) -> String {
    let from = *at;
    skip(page, at, |byte| {
        !byte.is_ascii_whitespace() && !ends.contains(&byte)
    });
    String::from_utf8_lossy(&page[from..*at]).to_ascii_lowercase()
}

/// The place of a value, without its quotes.
fn value(page: &[u8], at: &mut usize) -> Range<usize> {
    skip(page, at, |byte| byte.is_ascii_whitespace());
    let quote = page
        .get(*at)
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\''));
    let Some(quote) = quote else {
        let from = *at;
        skip(page, at, |byte| !byte.is_ascii_whitespace() && byte != b'>');
        return from..*at;
    };
    let from = *at + 1;
    let end = find(page, from, &[quote]).unwrap_or(page.len());
    *at = (end + 1).min(page.len());
    from.min(end)..end
}

fn skip(page: &[u8], at: &mut usize, goes_on: impl Fn(u8) -> bool) {
    while page.get(*at).is_some_and(|byte| goes_on(*byte)) {
        *at += 1;
    }
}

/// Where the end tag of an element without others begins.
fn end_of_text(page: &[u8], from: usize, name: &str) -> usize {
    let mut at = from;
    while let Some(open) = find(page, at, b"</") {
        let ends = page.get(open + 2..open + 2 + name.len());
        if ends.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes())) {
            return open;
        }
        at = open + 2;
    }
    page.len()
}

fn find(page: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let rest = page.get(from..)?;
    let found = rest.windows(wanted.len()).position(|part| part == wanted)?;
    Some(from + found)
}

/// Where what follows `wanted` begins.
fn behind(page: &[u8], from: usize, wanted: &[u8]) -> usize {
    find(page, from, wanted).map_or(page.len(), |at| at + wanted.len())
}

/// The signs that stand for others in a link.
const SIGNS: [(&str, &str); 5] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#39;", "'"),
    // The last to be read and the first to be written.
    ("&amp;", "&"),
];

fn unescaped(text: &str) -> String {
    let signs = SIGNS.iter();
    signs.fold(text.to_owned(), |text, (written, sign)| {
        text.replace(written, sign)
    })
}

fn escaped(text: &str) -> String {
    let signs = SIGNS.iter().rev();
    signs.fold(text.to_owned(), |text, (written, sign)| {
        text.replace(sign, written)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn led(page: &str) -> String {
        let through = |link: &str| match link.strip_prefix('/') {
            Some(rest) => format!("/p/{rest}"),
            None => link.to_owned(),
        };
        String::from_utf8(rewritten(page.as_bytes(), through)).expect("text")
    }

    #[test]
    fn links_are_replaced_and_nothing_else() {
        let page = "<!DOCTYPE html><A class='/x' HREF = \"/a?b=1&amp;c=2\">/a</A><img src=/i.png>\
                    <a href='rel'>x</a><p title=\"/t\">1 < 2</p><form action=/f method=post>";
        let expected = "<!DOCTYPE html><A class='/x' HREF = \"/p/a?b=1&amp;c=2\">/a</A><img src=/p/i.png>\
                        <a href='rel'>x</a><p title=\"/t\">1 < 2</p><form action=/p/f method=post>";
        assert_eq!(led(page), expected);
    }

    #[test]
    fn scripts_and_comments_stay_as_they_are() {
        let page = "<!-- <a href=\"/a\"> --><script src=\"/s.js\">'<a href=\"/b\">'</script>\
                    <title><a href=\"/c\"></title><a href=\"/d\">";
        let expected = "<!-- <a href=\"/a\"> --><script src=\"/p/s.js\">'<a href=\"/b\">'</script>\
                        <title><a href=\"/c\"></title><a href=\"/p/d\">";
        assert_eq!(led(page), expected);
    }

    #[test]
    fn page_that_breaks_off_stays_as_it_is() {
        for page in [
            "<a",
            "<a href",
            "<a href=",
            "<a href='",
            "<!--",
            "</",
            "<script>",
            "<",
        ] {
            assert_eq!(led(page), page);
        }
    }

    #[test]
    fn compressed_page_is_read_and_written() {
        assert_eq!(unpack(&pack(b"<a>")).as_deref(), Some(&b"<a>"[..]));
        assert_eq!(unpack(b"no gzip"), None);
        assert_eq!(unpack(&pack(&vec![0; LARGEST])), None);
    }

    proptest! {
        #[test]
        fn no_page_panics_or_changes_without_other_links(page in "[a-z<>/='\"! -]{0,80}") {
            let same = rewritten(page.as_bytes(), str::to_owned);
            prop_assert_eq!(same, page.as_bytes());
        }
    }
}
