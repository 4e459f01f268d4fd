//! The kind: which pods and volumes are counted, by what, and over which time.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[kube(
    group = "usage.example.com",
    version = "v1alpha1",
    kind = "Report",
    derive = "Default",
    status = "ReportStatus",
    printcolumn = r#"{"name":"Schedule","type":"string","jsonPath":".spec.schedule"}"#,
    printcolumn = r#"{"name":"Until","type":"string","jsonPath":".status.end"}"#,
    printcolumn = r#"{"name":"Source","type":"string","jsonPath":".status.source"}"#,
    printcolumn = r#"{"name":"Last","type":"string","jsonPath":".status.results[0]"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.schedule) || has(self.reportingEnd)",
      "message": "a report needs a schedule or a reportingEnd" },
    { "rule": "self == oldSelf",
      "message": "a report cannot be changed: create another" },
]))]
pub struct ReportSpec {
    /// What the rows are: Namespace, Owner, Pod or Label.
    pub group_by: GroupBy,
    /// The label whose values are the rows, where groupBy is Label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only pods and claims of these namespaces; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Only pods and claims with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector")]
    pub selector: Option<LabelSelector>,
    /// A report for each hour, day, week (from Monday) or month, in UTC. Without it there is one report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// When counting begins; when the report was created, if that is later or this is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub reporting_start: Option<Time>,
    /// When counting ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub reporting_end: Option<Time>,
    /// How often use is looked at, in seconds, where metrics.k8s.io is served.
    /// 60 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 15))]
    pub sample_seconds: Option<u32>,
    /// The namespace of the `ConfigMaps`; default by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_namespace: Option<String>,
    /// How many results are kept; 7 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub keep: Option<u32>,
}

/// What the rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GroupBy {
    /// Namespaces.
    #[default]
    Namespace,
    /// What controls pods, such as Deployment/web.
    Owner,
    /// Pods.
    Pod,
    /// Values of a label.
    Label,
}

/// How long the time of one result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Schedule {
    /// From hour to hour.
    Hourly,
    /// From midnight to midnight.
    Daily,
    /// From Monday to Monday.
    Weekly,
    /// From the first of a month to that of the next.
    Monthly,
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportStatus {
    /// The generation that this status is about, kept by the framework.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the present time of counting began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub start: Option<Time>,
    /// When it ends; none once the last result is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub end: Option<Time>,
    /// What numbers are computed from: requests, or requests and use.
    pub source: String,
    /// The `ConfigMaps` with results, the last one first.
    pub results: Vec<String>,
    /// Available, Progressing and Degraded, kept by the framework.
    pub conditions: Vec<Condition>,
}

impl ReportSpec {
    /// Where results go.
    pub(crate) fn namespace(&self) -> &str {
        self.result_namespace.as_deref().unwrap_or("default")
    }

    /// How many results are kept.
    pub(crate) fn kept(&self) -> usize {
        self.keep.unwrap_or(7) as usize
    }

    /// How often use is looked at, in milliseconds.
    pub(crate) fn sample(&self) -> i64 {
        i64::from(self.sample_seconds.unwrap_or(60)) * 1000
    }

    /// When counting for the time that contains or begins at `from` ends.
    pub(crate) fn end_after(&self, from: Timestamp) -> Timestamp {
        let end = self.reporting_end.as_ref().map(|end| end.0);
        let next = self.schedule.map(|schedule| schedule.next(from));
        match (next, end) {
            (Some(next), Some(end)) => next.min(end),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => Timestamp::MAX,
        }
    }
}

impl Schedule {
    /// The first boundary after a time.
    fn next(self, after: Timestamp) -> Timestamp {
        use jiff::{ToSpan as _, tz::TimeZone};
        let now = after.to_zoned(TimeZone::UTC).datetime();
        let (day, midnight) = (now.date(), jiff::civil::Time::midnight());
        let next = match self {
            Self::Hourly => {
                let hour = day.at(now.hour(), 0, 0, 0);
                hour.checked_add(1.hour())
            }
            Self::Daily => day.to_datetime(midnight).checked_add(1.day()),
            Self::Weekly => {
                let since = i64::from(now.weekday().to_monday_zero_offset());
                day.to_datetime(midnight).checked_add((7 - since).days())
            }
            Self::Monthly => day
                .first_of_month()
                .to_datetime(midnight)
                .checked_add(1.month()),
        };
        let next = next.ok().and_then(|next| next.to_zoned(TimeZone::UTC).ok());
        next.map_or(Timestamp::MAX, |next| next.timestamp())
    }
}

fn time(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "format": "date-time" })
}

fn selector(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_end_at_the_next_boundary_in_utc() {
        let from: Timestamp = "2028-02-29T10:30:00Z".parse().unwrap(); // a Tuesday
        for (schedule, end) in [
            (Schedule::Hourly, "2028-02-29T11:00:00Z"),
            (Schedule::Daily, "2028-03-01T00:00:00Z"),
            (Schedule::Weekly, "2028-03-06T00:00:00Z"),
            (Schedule::Monthly, "2028-03-01T00:00:00Z"),
        ] {
            assert_eq!(schedule.next(from).to_string(), end, "{schedule:?}");
        }
        let boundary: Timestamp = "2028-03-06T00:00:00Z".parse().unwrap();
        assert_eq!(
            Schedule::Weekly.next(boundary).to_string(),
            "2028-03-13T00:00:00Z"
        );
    }
}
