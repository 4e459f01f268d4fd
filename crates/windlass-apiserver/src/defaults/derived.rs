//! Defaults that follow from other fields.

use base64::Engine as _;
use serde_json::{Map, Value, json};

use crate::quantity::Quantity;

type Fields = Map<String, Value>;

/// The annotation that tells the generation of a `DaemonSet`'s template.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn set(fields: &mut Fields, key: &str, value: impl Into<Value>) {
    if !fields.contains_key(key) {
        fields.insert(key.to_owned(), value.into());
    }
}

fn object<'a>(fields: &'a mut Fields, key: &str) -> Option<&'a mut Fields> {
    fields.get_mut(key).and_then(Value::as_object_mut)
}

fn is_empty(fields: &Fields, key: &str) -> bool {
    match fields.get(key) {
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Null) | None => true,
        Some(_) => false,
    }
}

/// The generation is kept as an annotation, for whoever still reads it.
pub(super) fn template_generation(daemon_set: &mut Fields) {
    let metadata = daemon_set.entry("metadata").or_insert_with(|| json!({}));
    if let Some(annotations) = metadata
        .as_object_mut()
        .map(|metadata| metadata.entry("annotations").or_insert_with(|| json!({})))
        .and_then(Value::as_object_mut)
    {
        set(annotations, TEMPLATE_GENERATION, "0");
    }
}

/// A claim template is a whole claim, and says so.
pub(super) fn claim_templates(spec: &mut Fields) {
    let templates = spec
        .get_mut("volumeClaimTemplates")
        .and_then(Value::as_array_mut);
    for template in templates
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        set(template, "apiVersion", "v1");
        set(template, "kind", "PersistentVolumeClaim");
    }
}

/// Only a strategy that names no type gets the parameters of a rolling update.
pub(super) fn stateful_set_strategy(strategy: &mut Fields) {
    if !strategy.contains_key("type") {
        strategy.insert("type".into(), "RollingUpdate".into());
        set(strategy, "rollingUpdate", json!({}));
    }
}

/// A Job's own defaults; the template inside a `CronJob` has none until it becomes a Job.
pub(super) fn job(job: &mut Fields) {
    let labels = job
        .get("spec")
        .map(|spec| &spec["template"]["metadata"]["labels"])
        .filter(|labels| labels.is_object())
        .cloned();
    if let Some(labels) = labels {
        let metadata = job.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut()
            && is_empty(metadata, "labels")
        {
            metadata.insert("labels".into(), labels);
        }
    }
    let Some(spec) = object(job, "spec") else {
        return;
    };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        set(spec, "completions", 1);
    }
    set(spec, "parallelism", 1);
    let per_index = spec.contains_key("backoffLimitPerIndex");
    set(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
    let failure_policy = spec.contains_key("podFailurePolicy");
    let replaced = if failure_policy {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    set(spec, "podReplacementPolicy", replaced);
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    set(spec, "manualSelector", false);
}

/// The moving tag is always pulled.
pub(super) fn pull_policy(container: &mut Fields) {
    let image = container
        .get("image")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let policy = policy_of(image);
    set(container, "imagePullPolicy", policy);
}

fn policy_of(image: &str) -> &'static str {
    let (name, digest) = image
        .split_once('@')
        .map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rsplit('/').next().unwrap_or_default();
    let moving = match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => digest.is_none(),
    };
    // What is no name of an image has no tag that could move.
    let path = name.split_once('/').map_or(last, |(_, path)| path);
    let is_name = !image.is_empty()
        && !path
            .split(':')
            .next()
            .unwrap_or_default()
            .chars()
            .any(|c| c.is_ascii_uppercase());
    if moving && is_name {
        "Always"
    } else {
        "IfNotPresent"
    }
}

/// The limits of containers: what is not said follows from what is.
pub(super) fn limit_range_item(item: &mut Fields) {
    if item.get("type").and_then(Value::as_str) != Some("Container") {
        return;
    }
    for (from, to) in [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ] {
        fill_from(item, from, to);
    }
}

/// Every namespace can be selected by its name.
pub(super) fn namespace_label(namespace: &mut Fields) {
    let Some(metadata) = object(namespace, "metadata") else {
        return;
    };
    let name = metadata.get("name").and_then(Value::as_str);
    if let Some(name) = name.filter(|name| !name.is_empty()).map(str::to_owned) {
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("kubernetes.io/metadata.name".into(), name.into());
        }
    }
}

/// What pods get and pod templates do not.
pub(super) fn pod(pod: &mut Fields) {
    let Some(spec) = object(pod, "spec") else {
        return;
    };
    pod_requests(spec);
    set(spec, "enableServiceLinks", true);
    // A grace that is less than none is the shortest there is.
    if let Some(grace) = spec.get_mut("terminationGracePeriodSeconds")
        && grace.as_i64().is_some_and(|grace| grace < 0)
    {
        *grace = 1.into();
    }
    let on_host = spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            if let Some(resources) = object(container, "resources") {
                fill_from(resources, "limits", "requests");
            }
            if on_host {
                host_ports(container);
            }
        }
    }
}

/// A pod that is limited as a whole asks for what its containers do, or else for its limits.
fn pod_requests(spec: &mut Fields) {
    let whole = Value::Object(spec.clone());
    let Some(resources) = object(spec, "resources") else {
        return;
    };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
        return;
    };
    let requests = resources.entry("requests").or_insert_with(|| json!({}));
    let Some(requests) = requests.as_object_mut() else {
        return;
    };
    for (name, limit) in limits {
        if !matches!(name.as_str(), "cpu" | "memory") && !name.starts_with("hugepages-") {
            continue;
        }
        let asked = crate::kinds::core::pod::resources::requests(&whole, &name)
            .map(|all| Value::from(all.to_string()));
        requests.entry(name).or_insert(asked.unwrap_or(limit));
    }
}

fn host_ports(container: &mut Fields) {
    let ports = container.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(number) = port.get("containerPort").cloned() {
            set(port, "hostPort", number);
        }
    }
}

/// Entries of one map that another lacks.
fn fill_from(fields: &mut Fields, from: &str, to: &str) {
    let Some(Value::Object(source)) = fields.get(from).cloned() else {
        return;
    };
    let target = fields.entry(to).or_insert_with(|| json!({}));
    if let Some(target) = target.as_object_mut() {
        for (name, value) in source {
            target.entry(name).or_insert(value);
        }
    }
}

/// The deprecated name of the same field follows it.
pub(super) fn service_account(spec: &mut Fields) {
    match (
        spec.get("serviceAccountName").cloned(),
        spec.get("serviceAccount").cloned(),
    ) {
        (Some(name), _) => spec.insert("serviceAccount".into(), name),
        (None, Some(name)) => spec.insert("serviceAccountName".into(), name),
        (None, None) => None,
    };
}

/// A `ReplicationController` selects what it makes, unless told otherwise.
pub(super) fn selector_from_template(controller: &mut Fields) {
    let labels = controller
        .get("spec")
        .map(|spec| &spec["template"]["metadata"]["labels"])
        .filter(|labels| labels.is_object())
        .cloned();
    let Some(labels) = labels else { return };
    if let Some(spec) = object(controller, "spec")
        && is_empty(spec, "selector")
    {
        spec.insert("selector".into(), labels.clone());
    }
    let metadata = controller.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut()
        && is_empty(metadata, "labels")
    {
        metadata.insert("labels".into(), labels);
    }
}

/// `stringData` is written into `data` and not kept.
pub(super) fn string_data(secret: &mut Fields) {
    if let Some(Value::Object(plain)) = secret.remove("stringData") {
        let data = secret.entry("data").or_insert_with(|| json!({}));
        if let Some(data) = data.as_object_mut() {
            for (key, value) in plain {
                let encoded = base64::engine::general_purpose::STANDARD
                    .encode(value.as_str().unwrap_or_default());
                data.insert(key, encoded.into());
            }
        }
    }
}

/// Without a target of its own a port leads to the same number.
pub(super) fn target_port(port: &mut Fields) {
    let unset = match port.get("targetPort") {
        None => true,
        Some(target) => target == 0 || target == "",
    };
    if let (Some(number), true) = (port.get("port").cloned(), unset) {
        port.insert("targetPort".into(), number);
    }
}

/// A volume without a source is an empty directory; one of an image is pulled like a container's.
pub(super) fn volume(volume: &mut Fields) {
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir".into(), json!({}));
    }
    if let Some(image) = object(volume, "image") {
        let reference = image
            .get("reference")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let policy = policy_of(reference);
        set(image, "pullPolicy", policy);
    }
}

/// Nobody is given less than a thousandth.
pub(super) fn round_up(amounts: &mut Fields) {
    for value in amounts.values_mut() {
        let rounded = value
            .as_str()
            .and_then(Quantity::parse)
            .map(Quantity::rounded_to_milli);
        if let Some(rounded) = rounded
            .map(|rounded| rounded.to_string())
            .filter(|text| value != text)
        {
            *value = rounded.into();
        }
    }
}

/// Defaults of a volume that an attachment says within itself does not get.
pub(super) fn persistent_volume(volume: &mut Fields) {
    if let Some(spec) = volume.get_mut("spec").and_then(Value::as_object_mut) {
        for (field, value) in [
            ("persistentVolumeReclaimPolicy", "Retain"),
            ("volumeMode", "Filesystem"),
        ] {
            spec.entry(field).or_insert_with(|| value.into());
        }
    }
}

/// The older name of the first range of a node's pods follows it, and the other way round.
pub(super) fn node_ranges(spec: &mut Fields) {
    let first = spec
        .get("podCIDRs")
        .and_then(|ranges| ranges.get(0))
        .cloned();
    match (spec.get("podCIDR").cloned(), first) {
        (None, Some(first)) => {
            spec.insert("podCIDR".into(), first);
        }
        // Of two that differ the older name counts: who writes it may not know the other.
        (Some(range), first) if first.as_ref() != Some(&range) => {
            spec.insert("podCIDRs".into(), json!([range]));
        }
        _ => {}
    }
}

/// A node gives all it has, unless it says less.
pub(super) fn allocatable(status: &mut Fields) {
    if let (Some(capacity), false) = (
        status.get("capacity").cloned(),
        status.contains_key("allocatable"),
    ) {
        status.insert("allocatable".into(), capacity);
    }
}

/// Whoever says anything about how to scale is told all of it.
pub(super) fn scaling(behavior: &mut Fields) {
    let policy =
        |kind: &str, value: i32| json!({"type": kind, "value": value, "periodSeconds": 15});
    for (direction, window, policies) in [
        (
            "scaleUp",
            Some(0),
            json!([policy("Pods", 4), policy("Percent", 100)]),
        ),
        ("scaleDown", None, json!([policy("Percent", 100)])),
    ] {
        let rules = behavior.entry(direction).or_insert_with(|| json!({}));
        let Some(rules) = rules.as_object_mut() else {
            continue;
        };
        set(rules, "selectPolicy", "Max");
        if let Some(window) = window {
            set(rules, "stabilizationWindowSeconds", window);
        }
        if is_empty(rules, "policies") {
            rules.insert("policies".into(), policies);
        }
    }
}

/// A policy is about ingress, and about egress when it has rules for it.
pub(super) fn policy_types(spec: &mut Fields) {
    if is_empty(spec, "policyTypes") {
        let types = if is_empty(spec, "egress") {
            json!(["Ingress"])
        } else {
            json!(["Ingress", "Egress"])
        };
        spec.insert("policyTypes".into(), types);
    }
}

/// An address that a load balancer has is its own unless it says otherwise. Filled in when a body is
/// read, and not again: one that does not say that the Service has a balancer must say it itself.
pub(crate) fn load_balancer_mode(service: &mut Value) {
    if service["spec"]["type"] != "LoadBalancer" {
        return;
    }
    let points = service
        .pointer_mut("/status/loadBalancer/ingress")
        .and_then(Value::as_array_mut);
    for point in points
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        let address = point.get("ip").and_then(Value::as_str);
        if address.is_some_and(|address| !address.is_empty()) {
            set(point, "ipMode", "VIP");
        }
    }
}

/// Seconds a client is sent to the same endpoint, and who is reached from outside.
pub(super) fn service(spec: &mut Fields) {
    match spec.get("sessionAffinity").and_then(Value::as_str) {
        Some("ClientIP") => {
            let config = spec
                .entry("sessionAffinityConfig")
                .or_insert_with(|| json!({}));
            if let Some(config) = config.as_object_mut() {
                let client = config.entry("clientIP").or_insert_with(|| json!({}));
                if let Some(client) = client.as_object_mut() {
                    set(client, "timeoutSeconds", 10_800);
                }
            }
        }
        Some("None") => {
            spec.remove("sessionAffinityConfig");
        }
        _ => {}
    }
    let inside = spec.get("type").and_then(Value::as_str) == Some("ClusterIP");
    if inside && !is_empty(spec, "externalIPs") {
        set(spec, "externalTrafficPolicy", "Cluster");
    }
}

/// The address of a pod is the first of its addresses. Where they differ, the one address counts:
/// who knows of one only would otherwise not be heard.
pub(super) fn pod_addresses(status: &mut Fields) {
    let first = status.get("podIPs").and_then(|all| all.get(0)?.get("ip"));
    let address = status.get("podIP").filter(|address| **address != "");
    match (address.cloned(), first.cloned()) {
        (Some(address), first) if first.as_ref() != Some(&address) => {
            status.insert("podIPs".into(), json!([{"ip": address}]));
        }
        (None, Some(first)) => {
            status.insert("podIP".into(), first);
        }
        _ => {}
    }
}

/// Only the versions of a daemon set know it, not its metadata by itself.
pub(crate) fn drop_template_generation(metadata: &mut Value) {
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
        && annotations.remove(TEMPLATE_GENERATION).is_some()
        && annotations.is_empty()
        && let Value::Object(metadata) = metadata
    {
        metadata.remove("annotations");
    }
}
