//! The flags of operator-sdk's `helm-operator run`, as those of operators of Windlass.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use windlass_declarative::helm::duration;

/// What the flags say that the operator itself does not know.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Flags {
    pub(super) watches_file: Option<PathBuf>,
    pub(super) reconcile_period: Option<Duration>,
    pub(super) max_concurrent_reconciles: Option<usize>,
    pub(super) suppress_override_values: bool,
    pub(super) leader_election_id: Option<String>,
    /// What was given and has no effect.
    pub(super) warnings: Vec<String>,
}

/// Flags that are a matter of taste, of which the operator has its own: they are accepted with a
/// warning, and followed by a value or not.
const IGNORED: &[(&str, bool)] = &[
    ("enable-http2", false),
    ("zap-devel", false),
    ("zap-log-level", true),
    ("zap-stacktrace-level", true),
    ("zap-time-encoding", true),
];
/// Flags that protect the metrics, which are served without TLS and authorization here.
const GUARDS: &[&str] = &["metrics-secure", "metrics-require-rbac"];

impl Flags {
    /// Takes the flags of charts out of a command line; what is left is for the operator.
    pub(super) fn of(arguments: Vec<OsString>) -> Result<(Self, Vec<OsString>), String> {
        let mut flags = Self::default();
        let mut rest = Vec::new();
        let (mut metrics, mut guarded) = (None, None);
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let Some((name, inline)) = flag(&argument) else {
                rest.push(argument);
                continue;
            };
            let mut value = || match inline.clone() {
                Some(value) => Ok(value),
                None => arguments
                    .next()
                    .and_then(|value| value.into_string().ok())
                    .ok_or_else(|| format!("--{name} needs a value")),
            };
            match name.as_str() {
                "watches-file" => flags.watches_file = Some(value()?.into()),
                "leader-election-id" => flags.leader_election_id = Some(value()?),
                "reconcile-period" => {
                    let period = duration::parse(&value()?)
                        .map_err(|why| format!("invalid --reconcile-period: {why}"))?;
                    flags.reconcile_period = Some(period).filter(|period| !period.is_zero());
                }
                "max-concurrent-reconciles" => {
                    let given = value()?;
                    let limit = given.parse().map_err(|_| {
                        format!("invalid --max-concurrent-reconciles {given:?}: not a number")
                    })?;
                    flags.max_concurrent_reconciles = Some(limit);
                }
                "suppress-override-values" => {
                    flags.suppress_override_values = inline.as_deref() != Some("false");
                }
                "enable-leader-election" => {
                    rest.push(format!("--leader-elect={}", inline.unwrap_or("true".into())).into());
                }
                "metrics-addr" | "metrics-bind-address" => metrics = Some(value()?),
                "zap-encoder" => {
                    if value()? == "json" {
                        rest.push("--log-json".into());
                    }
                }
                "kubeconfig" => return Err("set KUBECONFIG instead of --kubeconfig".to_owned()),
                guard if GUARDS.contains(&guard) => {
                    if inline.as_deref() != Some("false") {
                        guarded.get_or_insert(name);
                    }
                }
                other => match IGNORED.iter().find(|(name, _)| *name == other) {
                    Some((_, has_value)) => {
                        if *has_value {
                            value()?;
                        }
                        flags.warnings.push(format!("--{other} has no effect"));
                    }
                    None => rest.push(argument),
                },
            }
        }
        if let Some(guard) = guarded {
            flags.warnings.push(format!(
                "--{guard} is not supported, so no metrics are served: they would be open to everyone"
            ));
            metrics = Some("0".to_owned());
        }
        rest.extend(metrics.map(|address| format!("--metrics-bind-address={address}").into()));
        Ok((flags, rest))
    }
}

/// The name of a flag, and its value if it follows a `=`.
fn flag(argument: &OsString) -> Option<(String, Option<String>)> {
    let text = argument.to_str()?.strip_prefix("--")?;
    Some(match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (text.to_owned(), None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Flags, Vec<OsString>), String> {
        Flags::of(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn flags_of_the_original_are_taken_or_translated() {
        let line = "helm-operator run --watches-file=w.yaml --reconcile-period 2m --max-concurrent-reconciles=4 --suppress-override-values --enable-leader-election --metrics-addr :8080 --leader-election-id=x --enable-http2 --zap-log-level debug --health-probe-bind-address=:8081";
        let (flags, rest) = parsed(line).unwrap();
        assert_eq!(
            flags,
            Flags {
                watches_file: Some("w.yaml".into()),
                reconcile_period: Some(Duration::from_mins(2)),
                max_concurrent_reconciles: Some(4),
                suppress_override_values: true,
                leader_election_id: Some("x".to_owned()),
                warnings: vec![
                    "--enable-http2 has no effect".to_owned(),
                    "--zap-log-level has no effect".to_owned(),
                ],
            }
        );
        assert_eq!(
            rest,
            [
                "helm-operator",
                "run",
                "--leader-elect=true",
                "--health-probe-bind-address=:8081",
                "--metrics-bind-address=:8080",
            ]
        );
    }

    #[test]
    fn metrics_that_must_be_guarded_are_not_served() {
        let line = "helm-operator run --metrics-bind-address=:8443 --metrics-secure --metrics-require-rbac";
        let (flags, rest) = parsed(line).unwrap();
        assert_eq!(rest, ["helm-operator", "run", "--metrics-bind-address=0"]);
        assert_eq!(flags.warnings.len(), 1);
        assert!(flags.warnings[0].contains("no metrics are served"));
        let (flags, rest) = parsed("helm-operator run --metrics-secure=false").unwrap();
        assert_eq!(rest, ["helm-operator", "run"]);
        assert!(flags.warnings.is_empty());
    }

    #[test]
    fn wrong_flag_is_an_error() {
        for (line, wanted) in [
            ("x run --reconcile-period soon", "--reconcile-period"),
            ("x run --max-concurrent-reconciles=many", "not a number"),
            ("x run --watches-file", "needs a value"),
            ("x run --kubeconfig=a", "set KUBECONFIG"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(wanted), "{line}: {error}");
        }
    }
}
