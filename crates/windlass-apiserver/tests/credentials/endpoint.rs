//! Everything that discovery says can be asked for.

use serde_json::Value;

use crate::scene::Scene;

/// One way to ask for something.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    /// As authorization calls it.
    pub(crate) verb: String,
}

/// Every resource with every verb it has, and every other path with every method.
pub(crate) async fn all(scene: &Scene) -> Vec<Endpoint> {
    let admin = scene.admin().await;
    let paths = admin.json("/").await;
    let listed = paths["paths"].as_array().into_iter().flatten();
    let listed: Vec<String> = listed
        .filter_map(|path| path.as_str().map(str::to_owned))
        .collect();
    let mut endpoints = Vec::new();
    let unlisted = [
        "/",
        "/metrics",
        "/version/",
        "/healthz/ping",
        "/logs",
        "/debug/pprof",
        "/nowhere",
    ];
    for path in listed.iter().map(String::as_str).chain(unlisted) {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            endpoints.push(Endpoint {
                method,
                path: path.to_owned(),
                verb: method.to_lowercase(),
            });
        }
    }
    for path in listed.iter().filter(|path| is_version(path)) {
        let resources = admin.json(path).await;
        let resources = resources["resources"].as_array().into_iter().flatten();
        for resource in resources {
            of_resource(path, resource, &mut endpoints);
        }
    }
    endpoints
}

fn is_version(path: &str) -> bool {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    matches!(parts.as_slice(), ["api", _] | ["apis", _, _])
}

fn of_resource(version: &str, resource: &Value, endpoints: &mut Vec<Endpoint>) {
    let name = resource["name"].as_str().expect("a resource has a name");
    let (plural, sub) = name.split_once('/').unwrap_or((name, ""));
    let place = if resource["namespaced"] == true {
        "namespaces/default/"
    } else {
        ""
    };
    let collection = format!("{version}/{place}{plural}");
    let one = match sub {
        "" => format!("{collection}/a"),
        sub => format!("{collection}/a/{sub}"),
    };
    let verbs = resource["verbs"].as_array().into_iter().flatten();
    for verb in verbs.filter_map(Value::as_str) {
        let (method, path) = match verb {
            "get" => ("GET", one.clone()),
            "list" => ("GET", collection.clone()),
            "watch" => ("GET", format!("{collection}?watch=1")),
            "create" if sub.is_empty() => ("POST", collection.clone()),
            "create" => ("POST", one.clone()),
            "update" => ("PUT", one.clone()),
            "patch" => ("PATCH", one.clone()),
            "delete" => ("DELETE", one.clone()),
            "deletecollection" => ("DELETE", collection.clone()),
            other => panic!("{name} has a verb {other}"),
        };
        endpoints.push(Endpoint {
            method,
            path,
            verb: verb.to_owned(),
        });
    }
}
