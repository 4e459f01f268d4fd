//! Ingresses and their classes.

use serde_json::Value;

use crate::kinds::core::service::validation::check_hostname;
use crate::names;
use crate::status::{Cause, field};
use crate::validation::address::{ip_errors, is_ip};
use crate::validation::at::{At, IMMUTABLE};

/// The annotation that named the class before there was a field for it.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const PATH_TYPES: &[&str] = &["Exact", "ImplementationSpecific", "Prefix"];
const ODD_SEQUENCES: &[&str] = &["//", "/./", "/../", "%2f", "%2F"];
const ODD_ENDINGS: &[&str] = &["/..", "/."];
/// Characters a controller's path may have beside letters and digits.
const PATH_CHARACTERS: &str = "/-._~%!$&'()*+,;=:";

pub(crate) fn check(ingress: &Value, causes: &mut Vec<Cause>) {
    let root = At::root(ingress, "");
    let spec = root.child("spec");
    let annotation = root
        .child("metadata")
        .then("annotations")
        .then(CLASS_ANNOTATION);
    let class = spec.child("ingressClassName");
    if annotation.is_set() && class.is_set() && annotation.as_text() != class.as_text() {
        let why = "must match `ingressClassName` when both are specified";
        let path = format!("annotations.{CLASS_ANNOTATION}");
        causes.push(field::invalid(path, annotation.value, why));
    }
    let (backend, rules) = (spec.child("defaultBackend"), spec.child("rules"));
    if rules.len() == 0 && !backend.is_set() {
        let why = "either `defaultBackend` or `rules` must be specified";
        causes.push(field::invalid("spec", &Value::Null, why));
    }
    if backend.is_set() {
        check_backend(&backend, causes);
    }
    for rule in rules.elements() {
        check_host(&rule.child("host"), true, causes);
        let http = rule.child("http");
        let paths = http.child("paths");
        if http.is_set() && paths.len() == 0 {
            causes.push(paths.required(""));
        }
        for path in paths.elements() {
            check_path(&path, causes);
        }
    }
    for tls in spec.child("tls").elements() {
        for host in tls.child("hosts").elements() {
            check_host(&host, false, causes);
        }
        let secret = tls.child("secretName");
        if !secret.as_text().is_empty() {
            secret.each(names::subdomain_errors, causes);
        }
    }
    if class.is_set() {
        class.each(names::subdomain_errors, causes);
    }
}

fn check_host(host: &At<'_, '_>, of_rule: bool, causes: &mut Vec<Cause>) {
    if host.as_text().is_empty() {
        return;
    }
    if of_rule && is_ip(host.as_text()) {
        causes.push(host.invalid("must be a DNS name, not an IP address"));
    } else if host.as_text().contains('*') {
        host.each(names::wildcard_errors, causes);
    } else {
        host.each(names::subdomain_errors, causes);
    }
}

fn check_path(path: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let (text, kind) = (path.child("path"), path.child("pathType"));
    match kind.as_text() {
        "" => {
            causes.push(kind.required("pathType must be specified"));
            return;
        }
        "Exact" | "Prefix" => {
            if text.as_text().starts_with('/') {
                check_sequences(&text, causes);
            } else {
                causes.push(text.invalid_text("must be an absolute path"));
            }
        }
        "ImplementationSpecific" => {
            if !text.as_text().is_empty() && !text.as_text().starts_with('/') {
                causes.push(text.invalid("must be an absolute path"));
            }
        }
        _ => causes.push(kind.not_supported(PATH_TYPES)),
    }
    check_backend(&path.child("backend"), causes);
}

fn check_sequences(path: &At<'_, '_>, causes: &mut Vec<Cause>) {
    for odd in ODD_SEQUENCES
        .iter()
        .filter(|odd| path.as_text().contains(**odd))
    {
        causes.push(path.invalid(&format!("must not contain '{odd}'")));
    }
    for odd in ODD_ENDINGS
        .iter()
        .filter(|odd| path.as_text().ends_with(**odd))
    {
        causes.push(path.invalid(&format!("cannot end with '{odd}'")));
    }
}

fn check_backend(backend: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let wrong = |why: &str| field::invalid(backend.path(), &"".into(), why);
    let (service, resource) = (backend.child("service"), backend.child("resource"));
    match (service.is_set(), resource.is_set()) {
        (true, true) => causes.push(wrong("cannot set both resource and service backends")),
        (false, false) => causes.push(wrong("resource or service backend is required")),
        (false, true) => check_reference(&resource, causes),
        (true, false) => {
            service.child("name").name(names::label_errors, causes);
            let port = service.child("port");
            let (name, number) = (port.child("name"), port.child("number"));
            match (name.is_zero(), number.is_zero()) {
                (false, false) => causes.push(wrong("cannot set both port name & port number")),
                (true, true) => {
                    let why = "port name or number is required";
                    causes.push(backend.required(why));
                }
                (false, true) => name.each(names::port_name_errors, causes),
                (true, false) => number.port_number(causes),
            }
        }
    }
}

/// A reference to an object of any kind.
fn check_reference(reference: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let group = reference.child("apiGroup");
    if group.is_set() {
        group.each(names::subdomain_errors, causes);
    }
    for part in ["kind", "name"] {
        reference.child(part).name(names::segment_errors, causes);
    }
}

pub(crate) fn check_status(ingress: &Value, _: &Value, causes: &mut Vec<Cause>) {
    let status = At::root(ingress, "").then("status");
    for point in status.child("loadBalancer").then("ingress").elements() {
        let address = point.child("ip");
        if !address.as_text().is_empty() {
            address.each(ip_errors, causes);
        }
        check_hostname(&point.child("hostname"), causes);
    }
}

pub(crate) fn check_class(class: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(class, "").then("spec");
    let controller = spec.child("controller");
    if controller.as_text().len() > 250 {
        causes.push(field::too_long(controller.path(), 250));
    }
    check_controller(&controller, causes);
    let parameters = spec.child("parameters");
    if parameters.is_set() {
        check_parameters(&parameters, causes);
    }
}

fn check_controller(controller: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if controller.as_text().is_empty() {
        causes.push(controller.required(""));
        return;
    }
    let parts = controller.as_text().split_once('/');
    let Some((domain, path)) =
        parts.filter(|(domain, path)| !domain.is_empty() && !path.is_empty())
    else {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        causes.push(controller.invalid(why));
        return;
    };
    let wrong = |part: &str, why: &str| field::invalid(controller.path(), &part.into(), why);
    for why in names::subdomain_errors(domain) {
        causes.push(wrong(domain, &why));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || PATH_CHARACTERS.contains(c);
    if !path.chars().all(allowed) {
        let why = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        causes.push(wrong(path, why));
    }
}

fn check_parameters(parameters: &At<'_, '_>, causes: &mut Vec<Cause>) {
    check_reference(parameters, causes);
    let (scope, namespace) = (parameters.child("scope"), parameters.child("namespace"));
    scope.one_of(&["Cluster", "Namespace"], causes);
    match scope.as_text() {
        "Namespace" if !namespace.is_set() => {
            causes.push(namespace.required("`parameters.scope` is set to 'Namespace'"));
        }
        "Namespace" => namespace.each(names::label_errors, causes),
        "Cluster" if namespace.is_set() => {
            causes.push(namespace.forbidden("`parameters.scope` is set to 'Cluster'"));
        }
        _ => {}
    }
}

pub(crate) fn check_class_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let controller = |class| At::root(class, "").then("spec").then("controller");
    let (now, before) = (controller(new), controller(old));
    if now.value != before.value {
        causes.push(now.invalid_text(IMMUTABLE));
    }
}
