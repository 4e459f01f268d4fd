//! What requests, events and objects are called, so that the same thing has the same name in every
//! run: random parts of names are taken out.

use windlass_apiserver::hooks::{EventKind, Watch, WatchEvent};
use windlass_apiserver::http::ResourceRequest;

/// What the API server makes suffixes of generated names from.
const ALPHABET: &str = "bcdfghjklmnpqrstvwxz2456789";
/// How long they are.
const SUFFIX: usize = 5;

/// `deployments.apps`, with `/status` for a subresource.
pub fn resource_of(request: &ResourceRequest) -> String {
    let mut resource = request.resource.clone();
    if !request.group.is_empty() {
        resource = format!("{resource}.{}", request.group);
    }
    if let Some(sub) = &request.subresource {
        resource = format!("{resource}/{sub}");
    }
    resource
}

/// A request as a person would name it: `patch deployments.apps web in default`.
pub fn request(request: &ResourceRequest) -> String {
    let name = request.name.as_deref().unwrap_or_default();
    let namespace = request.namespace.as_deref().unwrap_or_default();
    let verb = request.verb.as_str();
    place(&format!("{verb} {}", resource_of(request)), namespace, name)
}

/// The same with random parts of names taken out.
pub(crate) fn steady_request(asked: &ResourceRequest) -> String {
    let steady = ResourceRequest {
        name: asked.name.as_deref().map(steady),
        ..asked.clone()
    };
    request(&steady)
}

/// An object as a person would name it: `deployments.apps web in default`.
pub fn object(resource: &str, namespace: &str, name: &str) -> String {
    place(resource, namespace, name)
}

/// An event and the watch that it goes to, for a person.
pub fn event(watch: &Watch, event: &WatchEvent<'_>) -> String {
    described(watch, event, event.name)
}

/// The same with random parts of names taken out.
pub(crate) fn steady_event(watch: &Watch, event: &WatchEvent<'_>) -> String {
    described(watch, event, &steady(event.name))
}

fn described(watch: &Watch, event: &WatchEvent<'_>, name: &str) -> String {
    let mut what = format!("{} {}", event.kind.as_str(), resource_of(&watch.request));
    if event.kind == EventKind::Modified && is_marked(event.object) {
        what = format!("DELETING {}", resource_of(&watch.request));
    }
    let mut text = place(&what, event.namespace, name);
    text.push_str(&selected(watch));
    text
}

/// What a watch is of.
pub(crate) fn watched(watch: &Watch) -> String {
    let namespace = watch.request.namespace.as_deref().unwrap_or_default();
    let text = place(&resource_of(&watch.request), namespace, "");
    format!("{text}{}", selected(watch))
}

/// Which objects a watch is of, and how it sees them.
fn selected(watch: &Watch) -> String {
    let mut text = String::new();
    for selector in [&watch.label_selector, &watch.field_selector] {
        if !selector.is_empty() {
            text.push_str(" by ");
            text.push_str(selector);
        }
    }
    if watch.metadata_only {
        text.push_str(" (metadata)");
    }
    text
}

/// Whether the object is marked for deletion: looked for in its JSON, which is not parsed for each
/// event.
fn is_marked(json: &[u8]) -> bool {
    let field = b"\"deletionTimestamp\":\"";
    json.windows(field.len()).any(|part| part == field)
}

fn place(what: &str, namespace: &str, name: &str) -> String {
    let mut text = what.to_owned();
    if !name.is_empty() {
        text = format!("{text} {name}");
    }
    if !namespace.is_empty() {
        text = format!("{text} in {namespace}");
    }
    text
}

/// A name without its random end: `web-*` for `web-x7k2p`. A suffix is taken for random when it is of
/// the API server's alphabet and has both letters and digits: `web-0` and `web-config` are not.
pub(crate) fn steady(name: &str) -> String {
    let Some((base, suffix)) = name.rsplit_once('-') else {
        return name.to_owned();
    };
    let of_alphabet = suffix.len() == SUFFIX && suffix.chars().all(|one| ALPHABET.contains(one));
    let digits = suffix.bytes().filter(u8::is_ascii_digit).count();
    if of_alphabet && digits > 0 && digits < SUFFIX {
        format!("{base}-*")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_suffix_is_taken_out_of_a_name_and_an_ordinal_is_not() {
        for (name, expected) in [
            ("web-x7k2p", "web-*"),
            ("web-0", "web-0"),
            ("web-nodes", "web-nodes"),
            ("web-45678", "web-45678"),
            ("web", "web"),
            ("a-b4x2d-c", "a-b4x2d-c"),
        ] {
            assert_eq!(steady(name), expected);
        }
    }
}
