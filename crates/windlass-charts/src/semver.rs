//! Semantic versions and their constraints, as lenient as Helm reads them: parts may be missing.

use std::cmp::Ordering;
use std::fmt;
use std::sync::OnceLock;

use regex::Regex;

/// A version.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
    pub(crate) prerelease: String,
    pub(crate) metadata: String,
    pub(crate) original: String,
}

const MAX_VERSION: usize = 256;
const MAX_CONSTRAINT: usize = 512;
const MAX_GROUPS: usize = 32;
const VERSION: &str = r"v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
const LOOSE: &str = r"v?([0-9|xX\*]+)(\.[0-9|xX\*]+)?(\.[0-9|xX\*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";

/// The patterns, each compiled once.
struct Patterns {
    version: Regex,
    range: Regex,
    find: Regex,
    valid: Regex,
    one: Regex,
}

fn patterns() -> Option<&'static Patterns> {
    static PATTERNS: OnceLock<Option<Patterns>> = OnceLock::new();
    PATTERNS
        .get_or_init(|| {
            let compile = |pattern: &str| windlass_regexp::compile(pattern).ok();
            Some(Patterns {
                version: compile(&format!("^{VERSION}$"))?,
                range: compile(&format!(r"\s*({LOOSE})\s+-\s+({LOOSE})\s*"))?,
                find: compile(&format!(r"({OPERATORS})\s*({LOOSE})"))?,
                valid: compile(&format!(
                    r"^(\s*({OPERATORS})\s*({LOOSE})\s*)((?:\s+|,\s*)({OPERATORS})\s*({LOOSE})\s*)*$"
                ))?,
                one: compile(&format!(r"^\s*({OPERATORS})\s*({LOOSE})\s*$"))?,
            })
        })
        .as_ref()
}

impl Version {
    /// Reads a version.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_VERSION {
            return Err(format!(
                "version string is too long (max {MAX_VERSION} bytes)"
            ));
        }
        let found = patterns()
            .and_then(|patterns| patterns.version.captures(text))
            .ok_or("invalid semantic version")?;
        let group = |index: usize| found.get(index).map_or("", |found| found.as_str());
        let number = |index: usize| {
            let digits = group(index).trim_start_matches('.');
            if digits.is_empty() {
                return Ok(0);
            }
            digits.parse::<u64>().map_err(|_| {
                format!(
                    "error parsing version segment: strconv.ParseUint: parsing {}: value out of range",
                    crate::quote::quote(digits.as_bytes())
                )
            })
        };
        let prerelease = group(5).to_owned();
        let starts_with_zero = |part: &str| {
            part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit())
        };
        let version = Self {
            major: number(1)?,
            minor: number(2)?,
            patch: number(3)?,
            metadata: group(8).to_owned(),
            original: text.to_owned(),
            prerelease,
        };
        if version.prerelease.split('.').any(starts_with_zero) {
            return Err("version segment starts with 0".to_owned());
        }
        Ok(version)
    }

    /// The order of versions, which metadata has no part in.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| compare_prerelease(&self.prerelease, &other.prerelease))
    }

    /// The same with other numbers.
    fn with(&self, major: u64, minor: u64, patch: u64) -> Self {
        let mut next = Self {
            major,
            minor,
            patch,
            prerelease: String::new(),
            metadata: String::new(),
            original: String::new(),
        };
        let prefix = if self.original.starts_with('v') {
            "v"
        } else {
            ""
        };
        next.original = format!("{prefix}{next}");
        next
    }

    pub(crate) fn next_major(&self) -> Self {
        self.with(self.major.saturating_add(1), 0, 0)
    }

    pub(crate) fn next_minor(&self) -> Self {
        self.with(self.major, self.minor.saturating_add(1), 0)
    }

    pub(crate) fn next_patch(&self) -> Self {
        let step = u64::from(self.prerelease.is_empty());
        self.with(self.major, self.minor, self.patch.saturating_add(step))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn compare_prerelease(a: &str, b: &str) -> Ordering {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Alternatives, each of which asks several things of a version.
pub(crate) struct Constraints(Vec<Vec<Constraint>>);

struct Constraint {
    operator: String,
    version: Version,
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

impl Constraints {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_CONSTRAINT {
            return Err(format!(
                "constraint string is too long (max {MAX_CONSTRAINT} bytes)"
            ));
        }
        let Some(patterns) = patterns() else {
            return Err("constraint parser error".to_owned());
        };
        let mut rewritten = text.to_owned();
        for range in patterns.range.captures_iter(text) {
            let group = |index: usize| range.get(index).map_or("", |found| found.as_str());
            let both = format!(">= {}, <= {} ", group(1), group(11));
            rewritten = rewritten.replacen(group(0), &both, 1);
        }
        let groups: Vec<&str> = rewritten.split("||").collect();
        if groups.len() > MAX_GROUPS {
            return Err(format!("too many constraint groups (max {MAX_GROUPS})"));
        }
        let mut alternatives = Vec::new();
        for group in groups {
            if !patterns.valid.is_match(group) {
                return Err(format!(
                    "improper constraint: {}",
                    crate::quote::quote(group.as_bytes())
                ));
            }
            alternatives.push(
                patterns
                    .find
                    .find_iter(group)
                    .map(|found| Constraint::parse(found.as_str(), patterns))
                    .collect::<Result<Vec<_>, _>>()?,
            );
        }
        Ok(Self(alternatives))
    }

    pub(crate) fn allow(&self, version: &Version) -> bool {
        self.0.iter().any(|all| {
            let has_prerelease = all.iter().any(|one| !one.version.prerelease.is_empty());
            all.iter().all(|one| one.allows(version, has_prerelease))
        })
    }
}

impl Constraint {
    fn parse(text: &str, patterns: &Patterns) -> Result<Self, String> {
        let improper = || {
            format!(
                "improper constraint: {}",
                crate::quote::quote(text.as_bytes())
            )
        };
        let found = patterns.one.captures(text).ok_or_else(improper)?;
        let group = |index: usize| found.get(index).map_or("", |found| found.as_str());
        let is_open = |part: &str| matches!(part.trim_start_matches('.'), "" | "x" | "X" | "*");
        let (major, minor, patch, pre) = (group(3), group(4), group(5), group(6));
        let (mut minor_dirty, mut patch_dirty) = (false, false);
        let version = if is_open(major) {
            format!("0.0.0{pre}")
        } else if is_open(minor) {
            minor_dirty = true;
            format!("{major}.0.0{pre}")
        } else if is_open(patch) {
            patch_dirty = true;
            format!("{major}{minor}.0{pre}")
        } else {
            group(2).to_owned()
        };
        let dirty = is_open(major) || minor_dirty || patch_dirty;
        Ok(Self {
            operator: group(1).to_owned(),
            version: Version::parse(&version).map_err(|_| "constraint parser error".to_owned())?,
            dirty,
            minor_dirty,
            patch_dirty,
        })
    }

    fn allows(&self, version: &Version, has_prerelease: bool) -> bool {
        if !version.prerelease.is_empty() && !has_prerelease {
            return false;
        }
        let wanted = &self.version;
        let order = version.compare(wanted);
        match self.operator.as_str() {
            "!=" => self.differs(version),
            ">" if !self.dirty => order == Ordering::Greater,
            ">" if version.major != wanted.major => version.major > wanted.major,
            ">" if self.minor_dirty => false,
            ">" if self.patch_dirty => version.minor > wanted.minor,
            ">" => order == Ordering::Greater,
            "<" => order == Ordering::Less,
            ">=" | "=>" => order != Ordering::Less,
            "<=" | "=<" if !self.dirty => order != Ordering::Greater,
            "<=" | "=<" => {
                version.major < wanted.major
                    || (version.major == wanted.major
                        && (version.minor <= wanted.minor || self.minor_dirty))
            }
            "~" | "~>" => self.tilde(version),
            "^" => self.caret(version),
            _ if self.dirty => self.tilde(version),
            _ => order == Ordering::Equal,
        }
    }

    fn differs(&self, version: &Version) -> bool {
        let wanted = &self.version;
        if self.dirty {
            if version.major != wanted.major {
                return true;
            }
            if self.minor_dirty {
                return false;
            }
            if version.minor != wanted.minor {
                return true;
            }
            if self.patch_dirty {
                return version.prerelease != wanted.prerelease;
            }
        }
        version.compare(wanted) != Ordering::Equal
    }

    fn tilde(&self, version: &Version) -> bool {
        let wanted = &self.version;
        if version.compare(wanted) == Ordering::Less {
            return false;
        }
        let is_anything = (wanted.major, wanted.minor, wanted.patch) == (0, 0, 0)
            && !self.minor_dirty
            && !self.patch_dirty;
        is_anything
            || (version.major == wanted.major
                && (version.minor == wanted.minor || self.minor_dirty))
    }

    fn caret(&self, version: &Version) -> bool {
        let wanted = &self.version;
        if version.compare(wanted) == Ordering::Less {
            return false;
        }
        if wanted.major > 0 || self.minor_dirty {
            return version.major == wanted.major;
        }
        if version.major > 0 {
            return false;
        }
        if wanted.minor > 0 || self.patch_dirty {
            return version.minor == wanted.minor;
        }
        version.minor == 0 && version.patch == wanted.patch
    }
}

/// Whether a version is within constraints; what cannot be read is not.
pub(crate) fn is_compatible(constraints: &str, version: &str) -> bool {
    match (Constraints::parse(constraints), Version::parse(version)) {
        (Ok(constraints), Ok(version)) => constraints.allow(&version),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_allow_what_they_say() {
        for (constraint, version, allowed) in [
            (">=1.19-0", "v1.37.0", true),
            (">=1.19-0", "1.18.3", false),
            ("^1.2", "1.9.0", true),
            ("^0.2.3", "0.3.0", false),
            ("~1.2.x", "1.2.9", true),
            ("1.2 - 1.4", "1.3.0", true),
            ("1.2 - 1.4", "1.5.0", false),
            ("<1.0 || >2.0", "2.1.0", true),
            ("*", "3.1.4", true),
            (">1.0", "1.5.0-beta", false),
            ("!=1.2.3", "1.2.3", false),
        ] {
            assert_eq!(
                is_compatible(constraint, version),
                allowed,
                "{constraint} {version}"
            );
        }
        assert_eq!(Version::parse("x").unwrap_err(), "invalid semantic version");
    }
}
