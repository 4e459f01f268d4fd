//! Levels and versions, and the labels by which a namespace names them.

use std::fmt;

use crate::status::{Cause, field};
use crate::store::Labelled;

const PREFIX: &str = "pod-security.kubernetes.io/";

/// How strict the rules are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "privileged" => Some(Self::Privileged),
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }
}

/// A level as of a version of Kubernetes; no version is the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelVersion {
    pub(super) level: Level,
    pub(super) version: Option<u32>,
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        })?;
        match self.version {
            Some(minor) => write!(f, ":v1.{minor}"),
            None => f.write_str(":latest"),
        }
    }
}

/// What is enforced, and what is warned of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: LevelVersion,
    pub(super) warn: LevelVersion,
}

impl Policy {
    /// What the labels of a namespace say, and what is wrong with them. A level that is none
    /// counts as the strictest where it is enforced, as none elsewhere.
    pub(super) fn of(labels: &impl Labelled) -> (Self, Vec<Cause>) {
        let (mut modes, mut causes) = (Vec::new(), Vec::new());
        for mode in ["enforce", "audit", "warn"] {
            let mut found = Mode::default();
            let label = format!("{PREFIX}{mode}");
            if let Some(text) = labels.label(&label) {
                found.level = Level::parse(text);
                found.named = true;
                if found.level.is_none() {
                    let why = "must be one of privileged, baseline, restricted";
                    causes.push(wrong(&label, text, why));
                }
            }
            let label = format!("{PREFIX}{mode}-version");
            if let Some(text) = labels.label(&label) {
                found.versioned = true;
                match parse_version(text) {
                    Ok(version) => found.version = version,
                    Err(why) => causes.push(wrong(&label, text, why)),
                }
            }
            modes.push(found);
        }
        let (enforced, warned) = (modes[0], modes[2]);
        let enforce = LevelVersion {
            level: match (enforced.named, enforced.level) {
                (true, None) => Level::Restricted,
                (_, level) => level.unwrap_or(Level::Privileged),
            },
            version: enforced.version,
        };
        let mut warn = LevelVersion {
            level: warned.level.unwrap_or(Level::Privileged),
            version: warned.version,
        };
        let named = enforced.level.is_some();
        if !warned.named && named && enforce.level > warn.level {
            warn.level = enforce.level;
            if !warned.versioned {
                warn.version = enforce.version;
            }
        }
        (Self { enforce, warn }, causes)
    }
}

/// What the labels of one mode say.
#[derive(Clone, Copy, Default)]
struct Mode {
    named: bool,
    level: Option<Level>,
    versioned: bool,
    version: Option<u32>,
}

fn wrong(label: &str, text: &str, why: &str) -> Cause {
    field::invalid(format!("metadata.labels[{label}]"), &text.into(), why)
}

/// The minor of `v1.x`, none for the latest.
fn parse_version(text: &str) -> Result<Option<u32>, &'static str> {
    let wrong = "must be \"latest\" or \"v1.x\"";
    if text == "latest" {
        return Ok(None);
    }
    let digits = text.strip_prefix("v1.").ok_or(wrong)?;
    let plain = !digits.is_empty()
        && digits.bytes().all(|digit| digit.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    let minor = digits.parse().ok().filter(|_| plain);
    minor.map(Some).ok_or(wrong)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn policy(labels: &[(&str, &str)]) -> (String, String, usize) {
        let labels = labels.iter();
        let labels = labels.map(|(key, value)| (format!("{PREFIX}{key}"), (*value).to_owned()));
        let (policy, causes) = Policy::of(&labels.collect::<BTreeMap<_, _>>());
        let (enforce, warn) = (policy.enforce.to_string(), policy.warn.to_string());
        (enforce, warn, causes.len())
    }

    #[test]
    fn labels_say_what_is_enforced_and_warned_of() {
        let is = |labels: &[(&str, &str)], enforce: &str, warn: &str, wrong: usize| {
            let expected = (enforce.to_owned(), warn.to_owned(), wrong);
            assert_eq!(policy(labels), expected, "{labels:?}");
        };
        is(&[], "privileged:latest", "privileged:latest", 0);
        is(
            &[("enforce", "baseline"), ("enforce-version", "v1.20")],
            "baseline:v1.20",
            "baseline:v1.20",
            0,
        );
        is(
            &[("enforce", "restricted"), ("warn", "baseline")],
            "restricted:latest",
            "baseline:latest",
            0,
        );
        is(
            &[("enforce", "odd")],
            "restricted:latest",
            "privileged:latest",
            1,
        );
        is(
            &[("warn", "odd"), ("warn-version", "v1.01")],
            "privileged:latest",
            "privileged:latest",
            2,
        );
    }
}
