use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::json;

use super::*;

fn pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": "web",
            "labels": {"tier": "front", "app": "shop"},
            "annotations": {"note": "a \"quoted\"\nline"},
        },
        "spec": {"containers": [
            {"name": "main", "resources": {
                "limits": {"cpu": "1500m", "memory": "64Mi"},
                "requests": {"cpu": "250m"},
            }},
            {"name": "other"},
        ]},
    }))
    .expect("a pod")
}

fn facts(pod: &Pod) -> Facts<'_> {
    Facts {
        pod,
        pod_ip: "127.64.0.1",
        host_ip: "127.0.0.1",
        node: Capacity {
            cpus: 4,
            memory_kib: 2048,
        },
    }
}

fn ask(
    container: Option<&str>,
    name: &str,
    divisor: Option<&str>,
) -> Result<String, DownwardError> {
    let pod = pod();
    let selector = ResourceFieldSelector {
        container_name: container.map(str::to_owned),
        resource: name.to_owned(),
        divisor: divisor.map(|divisor| Quantity(divisor.to_owned())),
    };
    let asking = &pod.spec.as_ref().expect("a spec").containers[0];
    resource(&selector, Some(asking), &facts(&pod))
}

#[test]
fn amounts_are_divided_and_rounded_up() {
    let ok = |text: &str| Ok(text.to_owned());
    assert_eq!(ask(None, "limits.cpu", None), ok("2"));
    assert_eq!(ask(None, "limits.cpu", Some("1m")), ok("1500"));
    assert_eq!(ask(None, "limits.cpu", Some("0")), ok("2"));
    assert_eq!(ask(None, "requests.cpu", Some("1m")), ok("250"));
    assert_eq!(ask(None, "limits.memory", Some("1Mi")), ok("64"));
    assert_eq!(ask(None, "requests.memory", None), ok("0"));
}

#[test]
fn a_container_without_a_limit_has_the_nodes() {
    let ok = |text: &str| Ok(text.to_owned());
    assert_eq!(ask(Some("other"), "limits.cpu", None), ok("4"));
    assert_eq!(ask(Some("other"), "limits.memory", None), ok("2097152"));
    assert_eq!(
        ask(Some("nobody"), "limits.cpu", None),
        Err(DownwardError::Container("nobody".into()))
    );
    assert_eq!(
        ask(None, "limits.gpu", None),
        Err(DownwardError::Resource("limits.gpu".into()))
    );
}

#[test]
fn maps_are_lines_of_quoted_values() {
    let pod = pod();
    let labels = field("metadata.labels", &facts(&pod));
    assert_eq!(labels, Ok("app=\"shop\"\ntier=\"front\"".to_owned()));
    let annotations = field("metadata.annotations", &facts(&pod));
    assert_eq!(
        annotations,
        Ok("note=\"a \\\"quoted\\\"\\nline\"".to_owned())
    );
    let label = field("metadata.labels['app']", &facts(&pod));
    assert_eq!(label, Ok("shop".to_owned()));
    assert!(field("spec.priority", &facts(&pod)).is_err());
}
