//! Requests, as the API server counts them.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    ops::Sub,
};

const SERIES: &str = "apiserver_request_total{";

/// Writes to Deployments and to the status of widgets: what only the operator sends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(BTreeMap<(&'static str, String, String), f64>);

impl Requests {
    /// Reads what the server's metrics say.
    pub(crate) fn read(metrics: &str) -> Self {
        let mut requests = BTreeMap::new();
        for line in metrics.lines() {
            let Some((labels, value)) = line
                .strip_prefix(SERIES)
                .and_then(|rest| rest.rsplit_once("} "))
            else {
                continue;
            };
            let label = |name: &str| {
                let (_, rest) = labels.split_once(&format!("{name}=\""))?;
                rest.split('"').next()
            };
            let what = match (label("resource"), label("subresource")) {
                (Some("deployments"), Some("")) => "Deployment",
                (Some("widgets"), Some("status")) => "status",
                _ => continue,
            };
            let verb = label("verb").unwrap_or_default();
            if !["POST", "PUT", "PATCH", "APPLY", "DELETE"].contains(&verb) {
                continue;
            }
            let conflict = if label("code") == Some("409") {
                " 409"
            } else {
                ""
            };
            let name = (what, verb.to_owned(), conflict.to_owned());
            *requests.entry(name).or_default() += value.parse().unwrap_or(0.0);
        }
        Self(requests)
    }

    /// All of them together.
    pub(crate) fn total(&self) -> f64 {
        self.0.values().sum()
    }
}

impl Sub for Requests {
    type Output = Self;

    fn sub(mut self, earlier: Self) -> Self {
        for (name, count) in earlier.0 {
            if let Some(now) = self.0.get_mut(&name) {
                *now -= count;
            }
        }
        self.0.retain(|_, count| *count > 0.5);
        self
    }
}

impl Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (nth, ((what, verb, conflict), count)) in self.0.iter().enumerate() {
            let comma = if nth == 0 { "" } else { ", " };
            write!(f, "{comma}{count:.0} {what} {verb}{conflict}")?;
        }
        Ok(())
    }
}
