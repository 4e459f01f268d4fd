//! How the cells of built-in kinds are filled, by kind and column.

use jiff::Timestamp;
use serde_json::Value;

use super::text::{first_of, joined, labels, modes, or, selector, text};
use super::{age, duration, event, metric, network, node, pod};
use crate::object::{is_terminating, meta};

fn number(value: &Value) -> Value {
    value.as_i64().unwrap_or_default().into()
}

fn truth(value: &Value) -> Value {
    value.as_bool().unwrap_or_default().into()
}

fn count(list: &Value) -> Value {
    list.as_array().map_or(0, Vec::len).into()
}

fn none(value: &Value) -> Value {
    or(text(value), "<none>").into()
}

fn unset(value: &Value) -> Value {
    or(text(value), "<unset>").into()
}

/// A number or a text, as text; `N/A` for neither.
fn either(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.to_string().into(),
        Value::String(text) => text.as_str().into(),
        _ => "N/A".into(),
    }
}

fn phase(object: &Value) -> Value {
    if is_terminating(object) {
        "Terminating".into()
    } else {
        text(&object["status"]["phase"]).into()
    }
}

fn template(kind: &str, object: &Value) -> Value {
    match kind {
        "podtemplates" => object["template"].clone(),
        "cronjobs" => object["spec"]["jobTemplate"]["spec"]["template"].clone(),
        _ => object["spec"]["template"].clone(),
    }
}

fn containers(kind: &str, object: &Value, part: &str) -> String {
    let template = template(kind, object);
    let containers = template["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten();
    containers
        .filter_map(|container| container[part].as_str())
        .collect::<Vec<_>>()
        .join(",")
}

fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == kind && one["status"] == "True")
}

/// One cell.
#[allow(clippy::too_many_lines, reason = "a table of columns, one line each")]
pub(super) fn of(kind: &str, object: &Value, column: &str, now: Timestamp) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    match (kind, column) {
        ("storageclasses", "Name") => storage_class_name(object).into(),
        ("events", _) => event::cell(object, column, now),
        (_, "Name") => meta(object, "name").into(),
        (_, "Age") => age(meta(object, "creationTimestamp"), now).into(),
        (_, "Created At") => meta(object, "creationTimestamp").into(),
        ("pods", "Ready" | "Status" | "Restarts") => pod::Summary::of(object).cell(column, now),
        ("pods", "IP") => {
            let listed = text(&status["podIPs"][0]["ip"]);
            let address = if listed.is_empty() {
                text(&status["podIP"])
            } else {
                listed
            };
            or(address, "<none>").into()
        }
        ("pods", "Node") => none(&spec["nodeName"]),
        ("pods", "Nominated Node") => none(&status["nominatedNodeName"]),
        ("pods", "Readiness Gates") => pod::gates(object).into(),
        ("deployments" | "statefulsets", "Ready") => format!(
            "{}/{}",
            number(&status["readyReplicas"]),
            number(&spec["replicas"])
        )
        .into(),
        ("deployments", "Up-to-date") => number(&status["updatedReplicas"]),
        ("deployments", "Available") => number(&status["availableReplicas"]),
        ("replicasets" | "replicationcontrollers", "Desired") => number(&spec["replicas"]),
        ("replicasets" | "replicationcontrollers", "Current") => number(&status["replicas"]),
        ("replicasets" | "replicationcontrollers", "Ready") => number(&status["readyReplicas"]),
        ("daemonsets", "Desired") => number(&status["desiredNumberScheduled"]),
        ("daemonsets", "Current") => number(&status["currentNumberScheduled"]),
        ("daemonsets", "Ready") => number(&status["numberReady"]),
        ("daemonsets", "Up-to-date") => number(&status["updatedNumberScheduled"]),
        ("daemonsets", "Available") => number(&status["numberAvailable"]),
        ("daemonsets", "Node Selector") => {
            or(labels(&spec["template"]["spec"]["nodeSelector"]), "<none>").into()
        }
        ("controllerrevisions", "Controller") => controller(object).into(),
        ("controllerrevisions", "Revision") => number(&object["revision"]),
        ("jobs", "Status") => job_status(object).into(),
        ("jobs", "Completions") => job_completions(object).into(),
        ("jobs", "Duration") => job_duration(status, now).into(),
        ("cronjobs", "Schedule") => text(&spec["schedule"]).into(),
        ("cronjobs", "Timezone") => none(&spec["timeZone"]),
        ("cronjobs", "Suspend") => if spec["suspend"] == true {
            "True"
        } else {
            "False"
        }
        .into(),
        ("cronjobs", "Active") => count(&status["active"]),
        ("cronjobs", "Last Schedule") => match status["lastScheduleTime"].as_str() {
            Some(at) => age(at, now).into(),
            None => "<none>".into(),
        },
        ("horizontalpodautoscalers", _) => metric::cell(object, column),
        ("poddisruptionbudgets", "Min Available") => either(&spec["minAvailable"]),
        ("poddisruptionbudgets", "Max Unavailable") => either(&spec["maxUnavailable"]),
        ("poddisruptionbudgets", "Allowed Disruptions") => number(&status["disruptionsAllowed"]),
        ("podtemplates", "Pod Labels") => {
            or(labels(&object["template"]["metadata"]["labels"]), "<none>").into()
        }
        ("resourcequotas", "Request" | "Limit") => quota(status, column == "Limit").into(),
        (_, "Containers") => containers(kind, object, "name").into(),
        (_, "Images") => containers(kind, object, "image").into(),
        (
            "services" | "endpoints" | "endpointslices" | "ingresses" | "ingressclasses"
            | "ipaddresses" | "servicecidrs",
            _,
        ) => network::cell(kind, object, column),
        ("networkpolicies", _) => selector(&spec["podSelector"]).into(),
        ("replicationcontrollers", "Selector") => or(labels(&spec["selector"]), "<none>").into(),
        (_, "Selector") => selector(&spec["selector"]).into(),
        ("configmaps" | "secrets", "Data") => {
            let size = |part: &str| object[part].as_object().map_or(0, serde_json::Map::len);
            (size("data") + size("binaryData")).into()
        }
        ("secrets", "Type") => text(&object["type"]).into(),
        ("namespaces", "Status") => text(&status["phase"]).into(),
        ("nodes", _) => node::cell(object, column),
        ("leases", "Holder") => text(&spec["holderIdentity"]).into(),
        ("priorityclasses", "Value") => number(&object["value"]),
        ("priorityclasses", "Global-Default") => truth(&object["globalDefault"]),
        ("priorityclasses", "PreemptionPolicy") => text(&object["preemptionPolicy"]).into(),
        ("runtimeclasses", "Handler") => text(&object["handler"]).into(),
        ("persistentvolumes" | "persistentvolumeclaims", _) => volume(kind, object, column),
        ("rolebindings" | "clusterrolebindings", _) => binding(object, column),
        ("csidrivers", "AttachRequired") => truth(&spec["attachRequired"]),
        ("csidrivers", "PodInfoOnMount") => truth(&spec["podInfoOnMount"]),
        ("csidrivers", "StorageCapacity") => truth(&spec["storageCapacity"]),
        ("csidrivers", "RequiresRepublish") => truth(&spec["requiresRepublish"]),
        ("csidrivers", "TokenRequests") => {
            let requests = spec["tokenRequests"].as_array().into_iter().flatten();
            let audiences: Vec<String> = requests.map(|one| text(&one["audience"])).collect();
            or(audiences.join(","), "<unset>").into()
        }
        ("csidrivers", "Modes") => or(joined(&spec["volumeLifecycleModes"], ","), "<none>").into(),
        ("csinodes", "Drivers") => count(&spec["drivers"]),
        ("storageclasses", "Provisioner") => text(&object["provisioner"]).into(),
        ("storageclasses", "ReclaimPolicy") => text(&object["reclaimPolicy"]).into(),
        ("storageclasses", "VolumeBindingMode") => text(&object["volumeBindingMode"]).into(),
        ("storageclasses", "AllowVolumeExpansion") => truth(&object["allowVolumeExpansion"]),
        ("volumeattachments", "Attacher") => text(&spec["attacher"]).into(),
        ("volumeattachments", "PV") => text(&spec["source"]["persistentVolumeName"]).into(),
        ("volumeattachments", "Attached") => truth(&status["attached"]),
        ("volumeattributesclasses", "DriverName") => text(&object["driverName"]).into(),
        (_, "Webhooks") => count(&object["webhooks"]),
        (_, "Validations") => count(&spec["validations"]),
        (_, "Mutations") => count(&spec["mutations"]),
        (_, "ParamKind") => match &spec["paramKind"] {
            Value::Null => "<unset>".into(),
            kind => format!("{}/{}", text(&kind["apiVersion"]), text(&kind["kind"])).into(),
        },
        (_, "PolicyName") => text(&spec["policyName"]).into(),
        (_, "ParamRef") => parameters(&spec["paramRef"]).into(),
        ("resourceclaims", "State") => claim_state(object).into(),
        ("volumeattachments" | "resourceslices", "Node") => text(&spec["nodeName"]).into(),
        ("resourceslices", "Driver") => text(&spec["driver"]).into(),
        ("resourceslices", "Pool") => text(&spec["pool"]["name"]).into(),
        ("flowschemas" | "prioritylevelconfigurations", _) => flow(object, column),
        ("certificatesigningrequests", "SignerName") => text(&spec["signerName"]).into(),
        ("certificatesigningrequests", "Requestor") => text(&spec["username"]).into(),
        ("certificatesigningrequests", "RequestedDuration") => {
            match spec["expirationSeconds"].as_i64() {
                Some(seconds) => duration(seconds).into(),
                None => "<none>".into(),
            }
        }
        ("certificatesigningrequests", "Condition") => certificate(object).into(),
        ("apiservices", "Service") => match &spec["service"] {
            Value::Null => "Local".into(),
            service => format!("{}/{}", text(&service["namespace"]), text(&service["name"])).into(),
        },
        ("apiservices", "Available") => available(status).into(),
        _ => "<none>".into(),
    }
}

fn storage_class_name(class: &Value) -> String {
    let annotations = &class["metadata"]["annotations"];
    let marks = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ];
    let name = meta(class, "name");
    if marks.iter().any(|mark| annotations[*mark] == "true") {
        format!("{name} (default)")
    } else {
        name.to_owned()
    }
}

fn controller(object: &Value) -> String {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let owner = owners
        .into_iter()
        .flatten()
        .find(|one| one["controller"] == true);
    let Some(owner) = owner else {
        return "<none>".to_owned();
    };
    let version = text(&owner["apiVersion"]);
    let kind = text(&owner["kind"]).to_lowercase();
    let name = text(&owner["name"]);
    match version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

fn job_status(job: &Value) -> String {
    let states = [
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("", "Terminating"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ];
    let holds = |condition: &str| match condition {
        "" => is_terminating(job),
        condition => has_condition(job, condition),
    };
    let found = states.iter().find(|(condition, _)| holds(condition));
    found.map_or("Running", |(_, shown)| *shown).to_owned()
}

fn job_completions(job: &Value) -> String {
    let done = number(&job["status"]["succeeded"]);
    let parallel = job["spec"]["parallelism"].as_i64().unwrap_or_default();
    match job["spec"]["completions"].as_i64() {
        Some(wanted) => format!("{done}/{wanted}"),
        None if parallel > 1 => format!("{done}/1 of {parallel}"),
        None => format!("{done}/1"),
    }
}

fn job_duration(status: &Value, now: Timestamp) -> String {
    let at = |field: &str| status[field].as_str()?.parse::<Timestamp>().ok();
    match (at("startTime"), at("completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => {
            let end = end.unwrap_or(now);
            duration(end.as_second() - start.as_second())
        }
    }
}

fn quota(status: &Value, limits: bool) -> String {
    let hard = status["hard"].as_object().into_iter().flatten();
    hard.filter(|(name, _)| name.starts_with("limits") == limits)
        .map(|(name, most)| {
            let used = or(text(&status["used"][name.as_str()]), "0");
            format!("{name}: {used}/{}", text(most))
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn volume(kind: &str, object: &Value, column: &str) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    let is_claim = kind == "persistentvolumeclaims";
    let bound = !text(&spec["volumeName"]).is_empty();
    match column {
        "Capacity" | "Access Modes" if is_claim && !bound => "".into(),
        "Capacity" if is_claim => text(&status["capacity"]["storage"]).into(),
        "Capacity" => text(&spec["capacity"]["storage"]).into(),
        "Access Modes" if is_claim => modes(&status["accessModes"]).into(),
        "Access Modes" => modes(&spec["accessModes"]).into(),
        "Reclaim Policy" => text(&spec["persistentVolumeReclaimPolicy"]).into(),
        "Status" => phase(object),
        "Volume" => text(&spec["volumeName"]).into(),
        "Claim" => match &spec["claimRef"] {
            Value::Null => "".into(),
            claim => format!("{}/{}", text(&claim["namespace"]), text(&claim["name"])).into(),
        },
        "StorageClass" => {
            let annotation = "volume.beta.kubernetes.io/storage-class";
            let old = text(&object["metadata"]["annotations"][annotation]);
            or(old, &text(&spec["storageClassName"])).into()
        }
        "VolumeAttributesClass" => unset(&spec["volumeAttributesClassName"]),
        "Reason" => text(&status["reason"]).into(),
        _ => unset(&spec["volumeMode"]),
    }
}

fn binding(binding: &Value, column: &str) -> Value {
    let subjects = |kind: &str| {
        let all = binding["subjects"].as_array().into_iter().flatten();
        let named = all.filter(|one| one["kind"] == kind).map(|one| {
            let name = text(&one["name"]);
            match kind {
                "ServiceAccount" => format!("{}/{name}", text(&one["namespace"])),
                _ => name,
            }
        });
        named.collect::<Vec<_>>().join(", ").into()
    };
    match column {
        "Role" => {
            let role = &binding["roleRef"];
            format!("{}/{}", text(&role["kind"]), text(&role["name"])).into()
        }
        "Users" => subjects("User"),
        "Groups" => subjects("Group"),
        _ => subjects("ServiceAccount"),
    }
}

/// What parameters a policy is bound with; a selector is shown as Go prints it.
fn parameters(reference: &Value) -> String {
    let name = text(&reference["name"]);
    if !name.is_empty() {
        return format!("{}/{name}", or(text(&reference["namespace"]), "*"));
    }
    if reference["selector"].is_null() {
        return "<unset>".to_owned();
    }
    let labels = reference["selector"]["matchLabels"].as_object();
    let labels: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}: {},", text(value)))
        .collect();
    let expressions = reference["selector"]["matchExpressions"].as_array();
    let expressions: Vec<String> = expressions
        .into_iter()
        .flatten()
        .map(|one| {
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                text(&one["key"]),
                text(&one["operator"]),
                joined(&one["values"], " ")
            )
        })
        .collect();
    let (labels, expressions) = (labels.concat(), expressions.concat());
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

fn claim_state(claim: &Value) -> String {
    let mut states = Vec::new();
    if is_terminating(claim) {
        states.push("deleted");
    }
    let found = &claim["status"];
    if found["allocation"].is_null() {
        if states.is_empty() {
            states.push("pending");
        }
    } else {
        states.push("allocated");
        if found["reservedFor"]
            .as_array()
            .is_some_and(|users| !users.is_empty())
        {
            states.push("reserved");
        }
    }
    states.join(",")
}

fn flow(object: &Value, column: &str) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    let limited = &spec["limited"];
    let or_none = |value: &Value| {
        if value.is_null() {
            "<none>".into()
        } else {
            value.clone()
        }
    };
    match column {
        "PriorityLevel" => text(&spec["priorityLevelConfiguration"]["name"]).into(),
        "MatchingPrecedence" => number(&spec["matchingPrecedence"]),
        "DistinguisherMethod" => none(&spec["distinguisherMethod"]["type"]),
        "MissingPL" => {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let dangling = conditions.into_iter().find(|one| one["type"] == "Dangling");
            dangling.map_or("?".into(), |one| one["status"].clone())
        }
        "Type" => text(&spec["type"]).into(),
        "NominalConcurrencyShares" => or_none(&limited["nominalConcurrencyShares"]),
        "Queues" => or_none(&limited["limitResponse"]["queuing"]["queues"]),
        "HandSize" => or_none(&limited["limitResponse"]["queuing"]["handSize"]),
        _ => or_none(&limited["limitResponse"]["queuing"]["queueLengthLimit"]),
    }
}

fn certificate(request: &Value) -> String {
    let conditions = request["status"]["conditions"].as_array();
    let has = |kind: &str| conditions.is_some_and(|all| all.iter().any(|one| one["type"] == kind));
    let mut shown: Vec<&str> = ["Denied", "Approved"]
        .into_iter()
        .filter(|kind| has(kind))
        .take(1)
        .collect();
    if shown.is_empty() {
        shown.push("Pending");
    }
    if has("Failed") {
        shown.push("Failed");
    }
    if !text(&request["status"]["certificate"]).is_empty() {
        shown.push("Issued");
    }
    shown.join(",")
}

fn available(status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let found = conditions
        .into_iter()
        .find(|one| one["type"] == "Available");
    match found {
        None => "Unknown".to_owned(),
        Some(one) if one["status"] == "True" => "True".to_owned(),
        Some(one) => format!("{} ({})", text(&one["status"]), text(&one["reason"])),
    }
}

/// The ports of a list, the first three of them.
pub(super) fn three(all: &[String]) -> String {
    first_of(all, 3)
}
