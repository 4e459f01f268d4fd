//! `Chart.yaml`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Error;
use crate::yaml::{self, Yaml, float_text};

/// Who looks after a chart.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Maintainer {
    pub name: String,
    pub email: String,
    pub url: String,
}

/// A chart that another depends on.
#[derive(Clone, Debug, Default)]
pub struct Dependency {
    /// The chart's name; its alias once dependencies were processed.
    pub name: String,
    /// The versions that will do.
    pub version: String,
    /// Where the chart comes from.
    pub repository: String,
    /// Paths of values, the first of which that is set says whether the chart is used.
    pub condition: String,
    /// Tags that switch the chart on or off.
    pub tags: Vec<String>,
    /// Whether the chart is used.
    pub enabled: bool,
    /// The values that are taken over from the chart.
    pub import_values: Vec<Value>,
    /// Another name for the chart.
    pub alias: String,
}

/// What `Chart.yaml` says.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Metadata {
    pub name: String,
    pub home: String,
    pub sources: Vec<String>,
    pub version: String,
    pub description: String,
    pub keywords: Vec<String>,
    pub maintainers: Vec<Maintainer>,
    pub icon: String,
    pub api_version: String,
    pub condition: String,
    pub tags: String,
    pub app_version: String,
    pub deprecated: bool,
    pub annotations: BTreeMap<String, String>,
    pub kube_version: String,
    /// `None` if the file has no list of them.
    pub dependencies: Option<Vec<Dependency>>,
    /// `application` or `library`; empty means the former.
    pub kind: String,
}

/// A field of a mapping, by its name in any case.
fn field<'a>(map: &'a BTreeMap<String, Yaml>, name: &str) -> Option<&'a Yaml> {
    map.get(name).or_else(|| {
        map.iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    })
}

/// Reads fields, and says what one is that should be another.
struct Reader<'a> {
    map: &'a BTreeMap<String, Yaml>,
    path: &'static str,
}

fn kind(value: &Yaml) -> &'static str {
    match value {
        Yaml::Null => "null",
        Yaml::Bool(_) => "bool",
        Yaml::Int(_) | Yaml::Uint(_) | Yaml::Float(_) => "number",
        Yaml::Str(_) => "string",
        Yaml::List(_) => "array",
        Yaml::Map(_) => "object",
    }
}

/// A scalar where a text is wanted.
pub(crate) fn scalar_text(value: &Yaml) -> Option<String> {
    Some(match value {
        Yaml::Null => String::new(),
        Yaml::Str(text) => text.clone(),
        Yaml::Int(int) => int.to_string(),
        Yaml::Uint(int) => int.to_string(),
        Yaml::Float(float) => float_text(*float),
        Yaml::Bool(flag) => flag.to_string(),
        Yaml::List(_) | Yaml::Map(_) => return None,
    })
}

type Read<T> = Result<T, String>;

impl Reader<'_> {
    fn wrong<T>(&self, name: &str, value: &Yaml, wanted: &str) -> Read<T> {
        Err(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go struct field {}.{name} of type {wanted}",
            kind(value),
            self.path
        ))
    }

    fn text(&self, name: &str) -> Read<String> {
        match field(self.map, name) {
            None => Ok(String::new()),
            Some(value) => match scalar_text(value) {
                Some(text) => Ok(sanitize(&text)),
                None => self.wrong(name, value, "string"),
            },
        }
    }

    fn texts(&self, name: &str) -> Read<Vec<String>> {
        match field(self.map, name) {
            None | Some(Yaml::Null) => Ok(Vec::new()),
            Some(Yaml::List(items)) => items
                .iter()
                .map(|item| match scalar_text(item) {
                    Some(text) => Ok(sanitize(&text)),
                    None => self.wrong(name, item, "string"),
                })
                .collect(),
            Some(other) => self.wrong(name, other, "[]string"),
        }
    }

    fn flag(&self, name: &str) -> Read<bool> {
        match field(self.map, name) {
            None | Some(Yaml::Null) => Ok(false),
            Some(Yaml::Bool(flag)) => Ok(*flag),
            Some(other) => self.wrong(name, other, "bool"),
        }
    }
}

/// Blanks become spaces, and what cannot be seen goes.
fn sanitize(text: &str) -> String {
    text.chars()
        .filter_map(|c| {
            if c.is_whitespace() {
                Some(' ')
            } else {
                crate::quote::is_print(c).then_some(c)
            }
        })
        .collect()
}

fn maintainers(reader: &Reader<'_>) -> Read<Vec<Maintainer>> {
    let Some(Yaml::List(items)) = field(reader.map, "maintainers") else {
        return Ok(Vec::new());
    };
    items
        .iter()
        .map(|item| match item {
            Yaml::Map(map) => {
                let path = "Maintainer.maintainers";
                let reader = Reader { map, path };
                Ok(Maintainer {
                    name: reader.text("name")?,
                    email: reader.text("email")?,
                    url: reader.text("url")?,
                })
            }
            Yaml::Null => Err("maintainers must not contain empty or null nodes".to_owned()),
            other => reader.wrong("maintainers", other, "v2.Maintainer"),
        })
        .collect()
}

fn dependencies(reader: &Reader<'_>) -> Read<Option<Vec<Dependency>>> {
    let items = match field(reader.map, "dependencies") {
        None | Some(Yaml::Null) => return Ok(None),
        Some(Yaml::List(items)) => items,
        Some(other) => return reader.wrong("dependencies", other, "[]*v2.Dependency"),
    };
    let mut found = Vec::new();
    for item in items {
        let map = match item {
            Yaml::Map(map) => map,
            Yaml::Null => {
                return Err("dependencies must not contain empty or null nodes".to_owned());
            }
            other => return reader.wrong("dependencies", other, "v2.Dependency"),
        };
        let path = "Dependency.dependencies";
        let reader = Reader { map, path };
        let import_values = match field(map, "import-values") {
            Some(Yaml::List(items)) => items
                .iter()
                .map(|item| yaml::to_json(item.clone()))
                .collect::<Read<_>>()?,
            _ => Vec::new(),
        };
        found.push(Dependency {
            name: reader.text("name")?,
            version: reader.text("version")?,
            repository: reader.text("repository")?,
            condition: reader.text("condition")?,
            tags: reader.texts("tags")?,
            enabled: reader.flag("enabled")?,
            import_values,
            alias: reader.text("alias")?,
        });
    }
    Ok(Some(found))
}

fn annotations(reader: &Reader<'_>) -> Read<BTreeMap<String, String>> {
    let Some(Yaml::Map(map)) = field(reader.map, "annotations") else {
        return Ok(BTreeMap::new());
    };
    map.iter()
        .map(|(key, value)| match scalar_text(value) {
            Some(text) => Ok((key.clone(), text)),
            None => reader.wrong("annotations", value, "string"),
        })
        .collect()
}

impl Metadata {
    /// Reads `Chart.yaml`.
    pub(super) fn parse(data: &[u8]) -> Result<Self, String> {
        let empty = BTreeMap::new();
        let document = yaml::read(data)?;
        let map = match &document {
            Yaml::Map(map) => map,
            Yaml::Null => &empty,
            other => {
                return Err(format!(
                    "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type v2.Metadata",
                    kind(other)
                ));
            }
        };
        let path = "Metadata";
        let reader = Reader { map, path };
        Ok(Self {
            name: reader.text("name")?,
            home: reader.text("home")?,
            sources: reader.texts("sources")?,
            version: reader.text("version")?,
            description: reader.text("description")?,
            keywords: reader.texts("keywords")?,
            maintainers: maintainers(&reader)?,
            icon: reader.text("icon")?,
            api_version: reader.text("apiVersion")?,
            condition: reader.text("condition")?,
            tags: reader.text("tags")?,
            app_version: reader.text("appVersion")?,
            deprecated: reader.flag("deprecated")?,
            annotations: annotations(&reader)?,
            kube_version: reader.text("kubeVersion")?,
            dependencies: dependencies(&reader)?,
            kind: reader.text("type")?,
        })
    }

    /// Reads the dependencies of `requirements.yaml`.
    pub(super) fn add_requirements(&mut self, data: &[u8]) -> Result<(), String> {
        if let Yaml::Map(map) = yaml::read(data)? {
            let path = "Metadata";
            if let Some(found) = dependencies(&Reader { map: &map, path })? {
                self.dependencies = Some(found);
            }
        }
        Ok(())
    }

    /// Says what is wrong with it.
    pub(super) fn validate(&self) -> Result<(), Error> {
        let fail = |message: String| Err(Error::Chart(format!("validation: {message}")));
        let shown = |text: &str| crate::quote::quote(text.as_bytes());
        if self.api_version.is_empty() {
            return fail("chart.metadata.apiVersion is required".to_owned());
        }
        if self.name.is_empty() {
            return fail("chart.metadata.name is required".to_owned());
        }
        if matches!(self.name.as_str(), "." | "..") {
            return fail(format!(
                "chart.metadata.name {} is not allowed",
                shown(&self.name)
            ));
        }
        if self.name.contains('/') {
            return fail(format!(
                "chart.metadata.name {} is invalid",
                shown(&self.name)
            ));
        }
        if self.version.is_empty() {
            return fail("chart.metadata.version is required".to_owned());
        }
        if crate::semver::Version::parse(&self.version).is_err() {
            return fail(format!(
                "chart.metadata.version {} is invalid",
                shown(&self.version)
            ));
        }
        if !matches!(self.kind.as_str(), "" | "application" | "library") {
            return fail("chart.metadata.type must be application or library".to_owned());
        }
        let mut seen = Vec::new();
        for dependency in self.dependencies.iter().flatten() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if !dependency.alias.chars().all(is_word) {
                return fail(format!(
                    "dependency {} has disallowed characters in the alias",
                    shown(&dependency.name)
                ));
            }
            let key = if dependency.alias.is_empty() {
                &dependency.name
            } else {
                &dependency.alias
            };
            if seen.contains(&key) {
                return fail(format!(
                    "more than one dependency with name or alias {}",
                    shown(key)
                ));
            }
            seen.push(key);
        }
        Ok(())
    }
}
