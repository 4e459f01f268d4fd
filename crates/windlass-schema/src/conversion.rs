//! How a definition says that objects of one version become objects of another: not at all but
//! for the name of the version (`None`), or by a webhook (see `webhook::conversion`).

use serde_json::Value;

use super::path::{child, index};
use windlass_apimachinery::field::{self, Cause};
use windlass_apimachinery::names;

const AT: &str = "spec.conversion";
const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];

/// What is wrong with the conversion a definition asks for.
pub(super) fn check(conversion: &Value, causes: &mut Vec<Cause>) {
    let strategy = &conversion["strategy"];
    let config = conversion["webhook"]
        .get("clientConfig")
        .filter(|config| config.is_object());
    let reviews = conversion["webhook"]["conversionReviewVersions"].as_array();
    let reviews = reviews.map_or(&[][..], Vec::as_slice);
    let at_config = child(AT, "webhookClientConfig");
    let at_reviews = child(AT, "conversionReviewVersions");
    match strategy.as_str() {
        None | Some("") => causes.push(field::required(child(AT, "strategy"), "")),
        Some("None") => {}
        Some("Webhook") => {
            match config {
                None => causes.push(field::required(
                    at_config,
                    "required when strategy is set to Webhook",
                )),
                Some(config) => check_client(config, &at_config, causes),
            }
            check_reviews(reviews, &at_reviews, causes);
            return;
        }
        Some(_) => {
            let allowed = ["\"None\"".to_owned(), "\"Webhook\"".to_owned()];
            causes.push(field::not_supported(
                child(AT, "strategy"),
                strategy,
                &allowed,
            ));
        }
    }
    let why = "should not be set when strategy is not set to Webhook";
    if config.is_some() {
        causes.push(field::forbidden(at_config, why));
    }
    if !reviews.is_empty() {
        causes.push(field::forbidden(at_reviews, why));
    }
}

fn check_client(config: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (url, service) = (config["url"].as_str(), &config["service"]);
    match (url, service.is_object()) {
        (Some(_), true) | (None, false) => {
            causes.push(field::required(
                at,
                "exactly one of url or service is required",
            ));
        }
        (Some(url), false) => {
            let scheme = url.split("://").next().unwrap_or_default();
            if scheme != "https" {
                causes.push(field::invalid(
                    child(at, "url"),
                    &scheme.into(),
                    "'https' is the only allowed URL scheme; desired format: https://host[/path]",
                ));
            }
        }
        (None, true) => {
            let at = child(at, "service");
            // The name is asked for under the path of the namespace, as Kubernetes does it.
            for part in ["name", "namespace"] {
                if service[part].as_str().is_none_or(str::is_empty) {
                    let part = if part == "name" { "namespace" } else { part };
                    causes.push(field::required(child(&at, part), ""));
                }
            }
        }
    }
}

fn check_reviews(versions: &[Value], at: &str, causes: &mut Vec<Cause>) {
    if versions.is_empty() {
        causes.push(field::required(at, ""));
        return;
    }
    for (place, version) in versions.iter().enumerate() {
        if versions[..place].contains(version) {
            causes.push(field::invalid(
                index(at, place),
                version,
                "duplicate version",
            ));
            continue;
        }
        let name = version.as_str().unwrap_or_default();
        for why in names::label_1035_errors(name) {
            causes.push(field::invalid(index(at, place), version, &why));
        }
    }
    let known = |version: &Value| {
        version
            .as_str()
            .is_some_and(|version| REVIEW_VERSIONS.contains(&version))
    };
    if !versions.iter().any(known) {
        let shown = serde_json::json!(versions);
        let why = format!(
            "must include at least one of {}",
            REVIEW_VERSIONS.join(", ")
        );
        causes.push(field::invalid(at, &shown, &why));
    }
}
