//! How a pod finds names.

use std::net::IpAddr;

use crate::names;
use crate::validation::at::{At, Causes};

const MAX_SERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_LENGTH: usize = 2048;

pub(super) fn check(spec: &At<'_, '_>, causes: &mut Causes) {
    let at = spec.child("dnsConfig");
    let servers = at.list("nameservers");
    if spec.text("dnsPolicy") == "None" {
        if at.value.is_null() {
            causes.push(at.required("must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            causes.push(at.child("nameservers").required(why));
            return;
        }
    }
    if servers.len() > MAX_SERVERS {
        let why = format!("must not have more than {MAX_SERVERS} nameservers");
        causes.push(at.child("nameservers").invalid(&why));
    }
    for server in at.items("nameservers") {
        address(&server, causes);
    }
    let searches: Vec<&str> = at
        .list("searches")
        .iter()
        .map(|one| one.as_str().unwrap_or_default())
        .collect();
    if searches.len() > MAX_SEARCHES {
        let why = format!("must not have more than {MAX_SEARCHES} search paths");
        causes.push(at.child("searches").invalid(&why));
    }
    if searches.join(" ").len() > MAX_SEARCH_LENGTH {
        let why = format!(
            "must not have more than {MAX_SEARCH_LENGTH} characters (including spaces) in the search list"
        );
        causes.push(at.child("searches").invalid(&why));
    }
    for search in at.items("searches") {
        let text = search.value.as_str().unwrap_or_default();
        if text != "." {
            let text = text.strip_suffix('.').unwrap_or(text);
            for why in names::search_errors(text) {
                causes.push(search.invalid_value(text, &why));
            }
        }
    }
    for option in at.items("options") {
        if option.text("name").is_empty() {
            causes.push(option.required("must not be empty"));
        }
    }
}

/// An address of either family.
pub(super) fn address(at: &At<'_, '_>, causes: &mut Causes) {
    let text = at.value.as_str().unwrap_or_default();
    if text.parse::<IpAddr>().is_err() {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        causes.push(at.invalid_value(text, why));
    }
}
