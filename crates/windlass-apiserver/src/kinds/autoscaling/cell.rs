//! What the columns of autoscalers show, with the metrics they follow.

use serde_json::Value;

use crate::table::text::text;

const SHOWN: usize = 2;

pub(super) fn cell(scaler: &Value, column: &str) -> Option<Value> {
    let (spec, status) = (&scaler["spec"], &scaler["status"]);
    Some(match column {
        "Reference" => {
            let target = &spec["scaleTargetRef"];
            format!("{}/{}", text(&target["kind"]), text(&target["name"])).into()
        }
        "Targets" => targets(spec, status).into(),
        "MinPods" => match spec["minReplicas"].as_i64() {
            Some(least) => least.to_string().into(),
            None => "<unset>".into(),
        },
        "MaxPods" => spec["maxReplicas"].as_i64().unwrap_or_default().into(),
        "Replicas" => status["currentReplicas"]
            .as_i64()
            .unwrap_or_default()
            .into(),
        _ => return None,
    })
}

/// In both versions of the kind.
fn targets(spec: &Value, status: &Value) -> String {
    if let Some(percent) = spec["targetCPUUtilizationPercentage"].as_i64() {
        let current = status["currentCPUUtilizationPercentage"].as_i64();
        let current = current.map_or("<unknown>".to_owned(), |current| format!("{current}%"));
        return format!("cpu: {current}/{percent}%");
    }
    let metrics = spec["metrics"].as_array().map_or(&[][..], Vec::as_slice);
    if metrics.is_empty() {
        return "<none>".to_owned();
    }
    let shown: Vec<String> = metrics
        .iter()
        .take(SHOWN)
        .enumerate()
        .map(|(index, metric)| target(metric, &status["currentMetrics"][index]))
        .collect();
    let shown = shown.join(", ");
    match metrics.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn target(metric: &Value, current: &Value) -> String {
    let (part, by_name, averages) = match metric["type"].as_str().unwrap_or_default() {
        "Resource" => ("resource", true, false),
        "ContainerResource" => ("containerResource", true, false),
        "Pods" => ("pods", false, false),
        "Object" => ("object", false, true),
        _ => ("external", false, true),
    };
    let wanted = &metric[part]["target"];
    let found = &current[part]["current"];
    let shown = |value: &Value| match value {
        Value::Null => "<unknown>".to_owned(),
        value => text(value),
    };
    let percent = |value: &Value, nothing: &str| match value.as_i64() {
        Some(number) => format!("{number}%"),
        None => nothing.to_owned(),
    };
    let pair = if !wanted["averageValue"].is_null() {
        let average = if averages { " (avg)" } else { "" };
        let now = shown(&found["averageValue"]);
        format!("{now}/{}{average}", text(&wanted["averageValue"]))
    } else if by_name {
        let now = percent(&found["averageUtilization"], "<unknown>");
        format!("{now}/{}", percent(&wanted["averageUtilization"], "<auto>"))
    } else {
        format!("{}/{}", shown(&found["value"]), text(&wanted["value"]))
    };
    if by_name {
        format!("{}: {pair}", text(&metric[part]["name"]))
    } else {
        pair
    }
}
