//! `APIServices`.

use serde_json::Value;

use crate::names;
use crate::object::meta;
use crate::status::{Cause, field};
use crate::validation::at::{At, PORT_RANGE};

pub(crate) fn check(service: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(service, "").then("spec");
    let (group, version) = (spec.child("group"), spec.child("version"));
    let name = meta(service, "name");
    let wanted = format!("{}.{}", version.as_text(), group.as_text());
    if name != wanted {
        let why = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        causes.push(field::invalid("metadata.name", &name.into(), &why));
    }
    if !group.as_text().is_empty() {
        group.each(names::subdomain_errors, causes);
    } else if version.as_text() != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        causes.push(group.required(why));
    }
    version.each(names::old_label_errors, causes);
    for (part, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let part = spec.child(part);
        if part.as_int() <= 0 || part.as_int() > most {
            let why = format!("must be positive and less than {most}");
            causes.push(part.invalid_int(&why));
        }
    }
    let target = spec.child("service");
    let (bundle, skip) = (spec.child("caBundle"), spec.child("insecureSkipTLSVerify"));
    if !target.is_set() {
        if !bundle.as_text().is_empty() {
            let bytes = bundle.len() / 4 * 3;
            let shown = format!("\"{bytes} bytes\"");
            let why = "local APIServices may not have a caBundle";
            causes.push(field::invalid_shown(bundle.path(), &shown, why));
        }
        if skip.value == true {
            causes.push(skip.invalid("local APIServices may not have insecureSkipTLSVerify"));
        }
        return;
    }
    for part in ["namespace", "name"] {
        let part = target.child(part);
        if part.as_text().is_empty() {
            causes.push(part.required(""));
        }
    }
    let port = target.child("port");
    if port.is_set() && !(1..=65535).contains(&port.as_int()) {
        causes.push(port.invalid(&format!("port is not valid: {PORT_RANGE}")));
    }
    if skip.value == true && !bundle.as_text().is_empty() {
        causes.push(skip.invalid("may not be true if caBundle is present"));
    }
}
