use k8s_openapi::ByteString;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn container(value: serde_json::Value) -> Container {
    serde_json::from_value(value).expect("a container")
}

fn pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app.kubernetes.io/name": "web"}},
        "spec": {"containers": [], "nodeName": "here"},
    }))
    .expect("a pod")
}

fn resolved(container: &Container, sources: &Sources) -> Result<Environment, EnvError> {
    let pod = pod();
    let facts = Facts {
        pod: &pod,
        pod_ip: "127.64.0.9",
        host_ip: "127.0.0.1",
        node: Capacity::default(),
    };
    resolve(container, &facts, sources, Environment::default())
}

#[test]
fn a_variable_sees_those_before_it() {
    let environment = resolved(
        &container(json!({"name": "c", "env": [
            {"name": "LATER", "value": "$(PORT)"},
            {"name": "PORT", "value": "80"},
            {"name": "URL", "value": "http://host:$(PORT)/$$(PORT)/$(NOWHERE)/$x"},
        ]})),
        &Sources::default(),
    )
    .expect("an environment");
    assert_eq!(environment.get("LATER"), Some("$(PORT)"));
    assert_eq!(
        environment.get("URL"),
        Some("http://host:80/$(PORT)/$(NOWHERE)/$x")
    );
}

#[test]
fn fields_of_the_pod() {
    let field = |path: &str| {
        let environment = resolved(
            &container(json!({"name": "c", "env": [
                {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": path}}},
            ]})),
            &Sources::default(),
        );
        environment.map(|environment| environment.get("F").unwrap_or_default().to_owned())
    };
    assert_eq!(field("status.podIP").as_deref(), Ok("127.64.0.9"));
    assert_eq!(field("metadata.namespace").as_deref(), Ok("shop"));
    assert_eq!(field("spec.nodeName").as_deref(), Ok("here"));
    assert_eq!(
        field("metadata.labels['app.kubernetes.io/name']").as_deref(),
        Ok("web")
    );
    assert_eq!(
        field("status.phase"),
        Err(DownwardError::Field("status.phase".to_owned()).into())
    );
}

#[test]
fn config_maps_and_secrets() {
    let wanted = container(json!({"name": "c",
    "envFrom": [{"prefix": "P_", "configMapRef": {"name": "settings"}}],
    "env": [
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "password"}}},
        {"name": "MAYBE", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k", "optional": true}}},
    ]}));
    let mut sources = Sources::default();
    let missing = resolved(&wanted, &sources).expect_err("settings is missing");
    assert_eq!(missing.to_string(), "configmap \"settings\" not found");

    let data = [("COLOUR".to_owned(), "red".to_owned())].into();
    sources.config_maps.insert(
        "settings".to_owned(),
        ConfigMap {
            data: Some(data),
            ..ConfigMap::default()
        },
    );
    sources.secrets.insert("keys".to_owned(), Secret::default());
    let missing = resolved(&wanted, &sources).expect_err("the key is missing");
    assert_eq!(
        missing.to_string(),
        "couldn't find key password in Secret shop/keys"
    );

    let data = [("password".to_owned(), ByteString(b"open".to_vec()))].into();
    sources.secrets.insert(
        "keys".to_owned(),
        Secret {
            data: Some(data),
            ..Secret::default()
        },
    );
    let environment = resolved(&wanted, &sources).expect("an environment");
    let all: Vec<_> = environment.iter().collect();
    assert_eq!(all, [("P_COLOUR", "red"), ("PASSWORD", "open")]);
}

#[test]
fn references_are_sorted_and_unique() {
    let mut pod = pod();
    let one = container(json!({"name": "c",
        "envFrom": [{"configMapRef": {"name": "b"}}, {"secretRef": {"name": "s"}}],
        "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}}]}));
    if let Some(spec) = &mut pod.spec {
        spec.containers = vec![one.clone()];
        spec.init_containers = Some(vec![one]);
    }
    let (config_maps, secrets) = references(&pod);
    assert_eq!(
        (config_maps, secrets),
        (vec!["a".into(), "b".into()], vec!["s".into()])
    );
}

proptest! {
    #[test]
    fn text_without_a_dollar_sign_stays(text in "[^$]*") {
        prop_assert_eq!(expand(&text, |_| Some("x")), text);
    }

    #[test]
    fn escaping_every_dollar_sign_gives_the_text_back(text in ".*") {
        prop_assert_eq!(expand(&text.replace('$', "$$"), |_| Some("x")), text);
    }

    #[test]
    fn what_is_defined_is_replaced(name in "[A-Z_]{1,8}", before in "[^$]*", after in "[^$]*") {
        let expanded = expand(&format!("{before}$({name}){after}"), |n| (n == name).then_some("v"));
        prop_assert_eq!(expanded, format!("{before}v{after}"));
    }
}
