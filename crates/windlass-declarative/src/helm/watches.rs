//! `watches.yaml`: which kinds an operator has, and the chart of each.
//!
//! The file is operator-sdk's, field by field. Paths of charts are relative to where the operator
//! runs. A field that is not known is an error, because it would have no effect.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Map, Value};
use windlass_charts::{Chart, values};

use super::duration;

/// One entry of the file.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The group of the kind.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its name.
    pub kind: String,
    /// Where the chart is, as the file says it.
    pub chart_path: PathBuf,
    /// The chart.
    pub chart: Chart,
    /// Whether a release is repaired as soon as one of its objects changes.
    pub watch_dependent_resources: bool,
    /// Values that win over those of the objects, by their path, expanded.
    pub override_values: BTreeMap<String, String>,
    /// Which objects of the kind are reconciled.
    pub selector: LabelSelector,
    /// How often a release is reconciled although nothing changed.
    pub reconcile_period: Option<Duration>,
    /// `dryRunOption`: whether the original rendered with access to the cluster. Rendering sees the
    /// cluster through watches here, whatever it says.
    pub dry_run_option: String,
}

/// Why a file of watches cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WatchesError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file is not a list of watches.
    #[error("cannot parse {}: {reason}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// One entry is wrong.
    #[error("invalid watch {number} of {}: {reason}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// Which entry, from 1.
        number: usize,
        /// What is wrong.
        reason: String,
    },
}

const FIELDS: &[&str] = &[
    "group",
    "version",
    "kind",
    "chart",
    "watchDependentResources",
    "overrideValues",
    "selector",
    "reconcilePeriod",
    "dryRunOption",
];

/// The variables of the environment.
pub type Environment = BTreeMap<String, String>;

/// Reads a file of watches and the charts it names. Override values may refer to the variables of
/// the environment.
pub fn load(path: &Path, environment: &Environment) -> Result<Vec<Watch>, WatchesError> {
    let text = std::fs::read(path).map_err(|source| WatchesError::Read {
        path: path.to_owned(),
        source,
    })?;
    let parse = |reason: String| WatchesError::Parse {
        path: path.to_owned(),
        reason,
    };
    let entries = match windlass_charts::from_yaml(&text).map_err(parse)? {
        Value::Array(entries) => entries,
        Value::Null => Vec::new(),
        _ => return Err(parse("it must be a list of watches".to_owned())),
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut watches: Vec<Watch> = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let failed = |reason: String| WatchesError::Entry {
            path: path.to_owned(),
            number: index + 1,
            reason,
        };
        let Value::Object(fields) = entry else {
            return Err(failed("it must be a map".to_owned()));
        };
        let watch = read(fields, folder, environment).map_err(failed)?;
        let is_same = |other: &Watch| {
            (&other.group, &other.version, &other.kind)
                == (&watch.group, &watch.version, &watch.kind)
        };
        if watches.iter().any(is_same) {
            return Err(failed(format!(
                "{}/{} {} is watched twice",
                watch.group, watch.version, watch.kind
            )));
        }
        watches.push(watch);
    }
    Ok(watches)
}

fn read(
    mut fields: Map<String, Value>,
    folder: &Path,
    environment: &Environment,
) -> Result<Watch, String> {
    if let Some(name) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(format!("unknown field {name:?}"));
    }
    let mut text = |name: &str| match fields.remove(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!("{name} must be a string, not {other}")),
    };
    let (group, version, kind) = (text("group")?, text("version")?, text("kind")?);
    let (chart, dry_run_option) = (text("chart")?, text("dryRunOption")?);
    let period = match text("reconcilePeriod")?.as_str() {
        "" => None,
        period => {
            Some(duration::parse(period).map_err(|why| format!("invalid reconcilePeriod: {why}"))?)
        }
    };
    for (name, value) in [("version", &version), ("kind", &kind), ("chart", &chart)] {
        if value.is_empty() {
            return Err(format!("{name} must not be empty"));
        }
    }
    let watch_dependent_resources = match fields.remove("watchDependentResources") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(value)) => value,
        Some(other) => {
            return Err(format!(
                "watchDependentResources must be true or false, not {other}"
            ));
        }
    };
    let selector = match fields.remove("selector") {
        None | Some(Value::Null) => LabelSelector::default(),
        Some(value) => {
            serde_json::from_value(value).map_err(|why| format!("invalid selector: {why}"))?
        }
    };
    let mut override_values = BTreeMap::new();
    match fields.remove("overrideValues") {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) => {
            for (name, value) in map {
                let given = match value {
                    Value::String(text) => text,
                    Value::Null => String::new(),
                    other @ (Value::Bool(_) | Value::Number(_)) => other.to_string(),
                    other => {
                        return Err(format!(
                            "overrideValues.{name} must be a string, not {other}"
                        ));
                    }
                };
                let expanded =
                    windlass_charts::expand(&expand(&given, environment), environment)
                        .map_err(|why| format!("cannot expand overrideValues.{name}: {why}"))?;
                override_values.insert(name, expanded);
            }
        }
        Some(other) => return Err(format!("overrideValues must be a map, not {other}")),
    }
    overrides(&override_values).map_err(|why| format!("invalid overrideValues: {why}"))?;
    let chart_path = PathBuf::from(chart);
    let at = folder.join(&chart_path);
    let chart = Chart::load(&at).map_err(|why| format!("invalid chart {}: {why}", at.display()))?;
    Ok(Watch {
        group,
        version,
        kind,
        chart_path,
        chart,
        watch_dependent_resources,
        override_values,
        selector,
        reconcile_period: period,
        dry_run_option,
    })
}

/// Override values as values: every one of them is a string.
pub fn overrides(given: &BTreeMap<String, String>) -> Result<values::Values, String> {
    let mut found = values::Values::new();
    for (name, value) in given {
        values::set_string(&mut found, &format!("{name}={value}"))?;
    }
    Ok(found)
}

/// Replaces `$NAME` and `${NAME}` by the variables of the environment, as Go's `os.ExpandEnv`.
fn expand(text: &str, environment: &Environment) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if after.is_empty() {
            out.push('$');
            rest = after;
            continue;
        }
        let (name, length) = shell_name(after);
        match (name, length) {
            // Not the name of anything.
            ("", 0) => out.push('$'),
            // Braces with nothing in them, or that are not closed.
            ("", _) => {}
            (name, _) => out.push_str(environment.get(name).map_or("", String::as_str)),
        }
        rest = &after[length..];
    }
    out.push_str(rest);
    out
}

/// The name at the start of a text, and how many bytes it takes with its braces.
fn shell_name(text: &str) -> (&str, usize) {
    let is_special = |c: char| "*#$@!?-0123456789".contains(c);
    let mut chars = text.chars();
    match chars.next() {
        Some('{') => match text.find('}') {
            Some(1) => ("", 2),
            Some(end) => (&text[1..end], end + 1),
            None => ("", 1),
        },
        Some(c) if is_special(c) => (&text[..1], 1),
        _ => {
            let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
            let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
            (&text[..end], end)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn environment() -> Environment {
        [("IMAGE".to_owned(), "registry/app:1".to_owned())].into()
    }

    fn folder(watches: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let chart = folder.path().join("helm-charts/web");
        fs::create_dir_all(&chart).unwrap();
        fs::write(
            chart.join("Chart.yaml"),
            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        )
        .unwrap();
        fs::write(folder.path().join("watches.yaml"), watches).unwrap();
        folder
    }

    fn loaded(watches: &str) -> Result<Vec<Watch>, String> {
        let folder = folder(watches);
        load(&folder.path().join("watches.yaml"), &environment()).map_err(|error| {
            error
                .to_string()
                .replace(&folder.path().display().to_string(), "")
        })
    }

    #[test]
    fn all_fields_are_read() {
        let watches = loaded(
            "# Use the 'create api' subcommand to add watches to this file.
- group: example.com
  version: v1
  kind: Web
  chart: helm-charts/web
  watchDependentResources: false
  reconcilePeriod: 1m30s
  dryRunOption: server
  selector:
    matchLabels: {team: a}
  overrideValues:
    image: $IMAGE
    quoted: '{{ \"x,y\" | upper | quote }}'
    other: '${NONE}-{{ env \"IMAGE\" }}'
#+kubebuilder:scaffold:watch
",
        );
        let error = watches.unwrap_err();
        assert!(
            error.contains("overrideValues"),
            "a comma begins another value: {error}"
        );
        let watches = loaded(
            "- {group: example.com, version: v1, kind: Web, chart: helm-charts/web, watchDependentResources: false, reconcilePeriod: 1m30s, selector: {matchLabels: {team: a}}, overrideValues: {image.name: $IMAGE, b: '{{ \"x\" | upper }}', c: 'a${NONE}-{{ env \"IMAGE\" }}'}}\n",
        )
        .unwrap();
        let watch = &watches[0];
        assert_eq!(watch.chart.name(), "web");
        assert!(!watch.watch_dependent_resources);
        assert_eq!(watch.reconcile_period, Some(Duration::from_secs(90)));
        assert_eq!(watch.selector.match_labels.as_ref().unwrap()["team"], "a");
        assert_eq!(
            Value::Object(overrides(&watch.override_values).unwrap()),
            serde_json::json!({"image": {"name": "registry/app:1"}, "b": "X", "c": "a-registry/app:1"})
        );
    }

    #[test]
    fn wrong_entry_names_field_and_number() {
        let base = "group: example.com, version: v1, kind: Web, chart: helm-charts/web";
        for (entry, wanted) in [
            (
                format!("- {{{base}, role: x}}"),
                "watch 1 of /watches.yaml: unknown field \"role\"",
            ),
            (
                format!("- {{{base}}}\n- {{{base}}}"),
                "watch 2 of /watches.yaml: example.com/v1 Web is watched twice",
            ),
            (
                "- {version: v1, kind: A, chart: none}".to_owned(),
                "invalid chart /none: cannot read",
            ),
            (
                "- {version: v1, chart: x}".to_owned(),
                "kind must not be empty",
            ),
            (
                format!("- {{{base}, reconcilePeriod: soon}}"),
                "invalid reconcilePeriod",
            ),
            (
                format!("- {{{base}, overrideValues: {{a: '{{{{ nope }}}}'}}}}"),
                "cannot expand overrideValues.a",
            ),
            ("a: 1".to_owned(), "it must be a list"),
        ] {
            let error = loaded(&entry).unwrap_err();
            assert!(error.contains(wanted), "{entry}: {error}");
        }
    }

    #[test]
    fn variables_are_expanded_as_go_does() {
        for (text, wanted) in [
            ("$IMAGE", "registry/app:1"),
            ("a${IMAGE}b", "aregistry/app:1b"),
            ("$NONE!", "!"),
            ("100$", "100$"),
            ("a$ b", "a$ b"),
            ("${}x", "x"),
            ("${IMAGE", "IMAGE"),
            ("$$", ""),
            ("$5x", "x"),
        ] {
            assert_eq!(expand(text, &environment()), wanted, "{text}");
        }
    }
}
