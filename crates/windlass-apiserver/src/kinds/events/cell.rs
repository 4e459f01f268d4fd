//! What the columns of events show, of either group.

use jiff::Timestamp;
use serde_json::Value;

use crate::table::age;
use crate::table::text::text;

pub(in crate::kinds) fn cell(event: &Value, column: &str, now: Timestamp) -> Option<Value> {
    let first = |fields: &[&str]| {
        let mut found = fields.iter().map(|field| text(&event[*field]));
        found.find(|text| !text.is_empty())
    };
    let when =
        |fields: &[&str]| first(fields).map_or_else(|| "<unknown>".to_owned(), |at| age(&at, now));
    let about = if event["involvedObject"].is_object() {
        &event["involvedObject"]
    } else {
        &event["regarding"]
    };
    Some(match column {
        "Last Seen" => when(&["lastTimestamp", "deprecatedLastTimestamp", "eventTime"]).into(),
        "First Seen" => when(&["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"]).into(),
        "Type" => text(&event["type"]).into(),
        "Reason" => text(&event["reason"]).into(),
        "Object" => format!(
            "{}/{}",
            text(&about["kind"]).to_lowercase(),
            text(&about["name"])
        )
        .into(),
        "Subobject" => text(&about["fieldPath"]).into(),
        "Source" => {
            let source = &event[if event["source"].is_object() {
                "source"
            } else {
                "deprecatedSource"
            }];
            let component = text(&source["component"]);
            let component = if component.is_empty() {
                first(&["reportingComponent", "reportingController"]).unwrap_or_default()
            } else {
                component
            };
            match text(&source["host"]).as_str() {
                "" => component.into(),
                host => format!("{component}, {host}").into(),
            }
        }
        "Message" => first(&["message", "note"])
            .unwrap_or_default()
            .trim()
            .into(),
        "Count" => {
            let counted = event["count"]
                .as_i64()
                .or(event["deprecatedCount"].as_i64());
            counted.unwrap_or(1).max(1).into()
        }
        _ => return None,
    })
}
