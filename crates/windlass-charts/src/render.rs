//! A chart and values to objects.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use jiff::Zoned;

use crate::chart::{Chart, File, Metadata};
use crate::functions::helm::{MESSAGE_END, MESSAGE_START, add, without_no_value};
use crate::limits::Limits;
use crate::manifest::{self, Hook, Manifest};
use crate::semver::Version;
use crate::template::env::Env;
use crate::template::error;
use crate::template::exec::{self, Templates};
use crate::template::object::{self, KubeVersion, Object};
use crate::template::parse;
use crate::template::value::{MapType, Value};
use crate::values::coalesce::{Nulls, coalesce};
use crate::values::{Values, dependencies};
use crate::{Error, Lookup, functions, schema};

/// How much stack templates have that include one another.
const STACK: usize = 512 << 20;
const NOTES: &str = "NOTES.txt";

/// What the cluster can do that charts are rendered for.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// Its version, such as `v1.37.0`.
    pub kube_version: String,
    /// Its API versions: `apps/v1`, and `apps/v1/Deployment` as well if that is known.
    pub api_versions: Vec<String>,
}

impl Default for Capabilities {
    /// Those that Helm assumes without a cluster.
    fn default() -> Self {
        Self {
            kube_version: "v1.37.0".to_owned(),
            api_versions: include_str!("api_versions.txt")
                .lines()
                .map(str::to_owned)
                .collect(),
        }
    }
}

/// How a chart is rendered.
#[derive(Clone)]
pub struct Options {
    /// The name of the release.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its revision.
    pub revision: i64,
    /// Whether it is an upgrade and not an installation.
    pub is_upgrade: bool,
    /// The cluster's capabilities.
    pub capabilities: Capabilities,
    /// What all random values come from: with the same seed a chart renders the same.
    pub seed: [u8; 32],
    /// What time it is, and where.
    pub now: Zoned,
    /// Whether a value that is missing is an error.
    pub strict: bool,
    /// Whether values are not held against the schemas.
    pub skip_schema: bool,
    /// Where `lookup` looks; without one it finds nothing.
    pub lookup: Option<Arc<dyn Lookup>>,
    /// How much the chart may ask for.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "release-name".to_owned(),
            namespace: "default".to_owned(),
            revision: 1,
            is_upgrade: false,
            capabilities: Capabilities::default(),
            seed: [0; 32],
            now: Zoned::new(jiff::Timestamp::UNIX_EPOCH, jiff::tz::TimeZone::UTC),
            strict: false,
            skip_schema: false,
            lookup: None,
            limits: Limits::default(),
        }
    }
}

/// What a chart became.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The objects in the order of installation.
    pub manifests: Vec<Manifest>,
    /// The objects that are made at certain times only.
    pub hooks: Vec<Hook>,
    /// The files of `crds/`.
    pub crds: Vec<File>,
    /// What `NOTES.txt` says.
    pub notes: String,
    /// The values that the templates saw.
    pub values: Values,
}

impl Rendered {
    /// The objects as one text.
    #[must_use]
    pub fn manifest(&self) -> String {
        self.manifests
            .iter()
            .map(|manifest| format!("---\n# Source: {}\n{}\n", manifest.source, manifest.text))
            .collect()
    }

    /// What `helm template` prints.
    #[must_use]
    pub fn template_output(&self, include_crds: bool) -> String {
        let mut out = String::new();
        if include_crds {
            for crd in &self.crds {
                let text = String::from_utf8_lossy(&crd.data);
                out.push_str(&format!("---\n# Source: {}\n{text}\n", crd.name));
            }
        }
        out.push_str(&self.manifest());
        let mut out = format!("{}\n", out.trim());
        for hook in &self.hooks {
            let manifest = &hook.manifest;
            out.push_str(&format!(
                "---\n# Source: {}\n{}\n",
                manifest.source, manifest.text
            ));
        }
        out
    }
}

/// Renders a chart with values given by the user.
pub fn render(chart: &Chart, given: &Values, options: &Options) -> Result<Rendered, Error> {
    let shared = &options;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("render".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, move || render_here(chart, given, shared));
        match thread {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|_| Err(Error::Template("rendering template failed".to_owned()))),
            Err(error) => Err(Error::Limit(format!("cannot start a thread: {error}"))),
        }
    })
}

fn render_here(chart: &Chart, given: &Values, options: &Options) -> Result<Rendered, Error> {
    if !matches!(chart.metadata.kind.as_str(), "" | "application") {
        let kind = &chart.metadata.kind;
        return Err(Error::Chart(format!("{kind} charts are not installable")));
    }
    check_dependencies(chart)?;
    // Helm reads charts of the coming version, but does not install them. It minds only the chart
    // itself, not those it depends on.
    if chart.metadata.api_version == "v3" {
        return Err(Error::Chart("invalid chart apiVersion".to_owned()));
    }
    let mut chart = chart.clone();
    dependencies::process(&mut chart, given)?;
    let values = coalesce(&chart, given.clone(), Nulls::Remove)?;
    if !options.skip_schema {
        schema::validate(&chart, &values).map_err(Error::Schema)?;
    }
    let kube = kube_version(&options.capabilities.kube_version)?;
    manifest::check(&chart, &kube.normalized, &kube.version)?;
    let mut files = templates(&chart, &values, kube, options)?;
    let notes_path = format!("{}/templates/{NOTES}", chart.name());
    let mut notes = String::new();
    files.retain(|(name, text)| {
        if *name == notes_path {
            notes.clone_from(text);
        }
        !name.ends_with(NOTES)
    });
    files.sort();
    let (manifests, hooks) = manifest::sort(&files)?;
    Ok(Rendered {
        manifests,
        hooks,
        crds: chart.crds(),
        notes,
        values,
    })
}

fn check_dependencies(chart: &Chart) -> Result<(), Error> {
    let missing: Vec<&str> = (chart.metadata.dependencies.iter().flatten())
        .map(|dependency| dependency.name.as_str())
        .filter(|name| !chart.dependencies.iter().any(|chart| chart.name() == *name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::Chart(format!(
        "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {}",
        missing.join(", ")
    )))
}

/// Reads a version of a cluster, whose suffixes do not count for constraints.
fn kube_version(text: &str) -> Result<KubeVersion, Error> {
    let numbers = text.trim_start_matches('v');
    let end = numbers
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(numbers.len());
    let version = Version::parse(numbers[..end].trim_end_matches('.')).map_err(|_| {
        Error::Chart(format!(
            "invalid kube version '{text}': could not parse {} as version",
            crate::quote::quote(text.as_bytes())
        ))
    })?;
    Ok(KubeVersion {
        version: format!("v{numbers}"),
        normalized: format!("v{}.{}.{}", version.major, version.minor, version.patch),
        major: version.major.to_string(),
        minor: version.minor.to_string(),
    })
}

/// A template and what it sees.
struct Renderable {
    text: String,
    base: String,
    /// One map for all templates of a chart: what one sets in it, those after it see.
    root: Value,
}

type Root = BTreeMap<Rc<str>, Value>;

fn strings(items: &[String]) -> Value {
    Value::list(items.iter().map(Value::str).collect())
}

/// `Chart.yaml` as templates see it.
fn metadata(chart: &Metadata, is_root: bool) -> Value {
    let map = |entries: Vec<(&str, Value)>| {
        Value::map(
            entries
                .into_iter()
                .map(|(key, value)| (Rc::from(key), value))
                .collect(),
        )
    };
    let maintainers = chart.maintainers.iter().map(|one| {
        map(vec![
            ("Name", Value::str(&one.name)),
            ("Email", Value::str(&one.email)),
            ("URL", Value::str(&one.url)),
        ])
    });
    let dependencies = chart.dependencies.iter().flatten().map(|one| {
        map(vec![
            ("Name", Value::str(&one.name)),
            ("Version", Value::str(&one.version)),
            ("Repository", Value::str(&one.repository)),
            ("Condition", Value::str(&one.condition)),
            ("Tags", strings(&one.tags)),
            ("Enabled", Value::Bool(one.enabled)),
            (
                "ImportValues",
                Value::list(one.import_values.iter().map(Value::from).collect()),
            ),
            ("Alias", Value::str(&one.alias)),
        ])
    });
    let annotations = chart
        .annotations
        .iter()
        .map(|(key, value)| (Rc::from(key.as_str()), Value::str(value)))
        .collect();
    map(vec![
        ("Name", Value::str(&chart.name)),
        ("Home", Value::str(&chart.home)),
        ("Sources", strings(&chart.sources)),
        ("Version", Value::str(&chart.version)),
        ("Description", Value::str(&chart.description)),
        ("Keywords", strings(&chart.keywords)),
        ("Maintainers", Value::list(maintainers.collect())),
        ("Icon", Value::str(&chart.icon)),
        ("APIVersion", Value::str(&chart.api_version)),
        ("Condition", Value::str(&chart.condition)),
        ("Tags", Value::str(&chart.tags)),
        ("AppVersion", Value::str(&chart.app_version)),
        ("Deprecated", Value::Bool(chart.deprecated)),
        (
            "Annotations",
            Value::typed_map(annotations, MapType::Strings),
        ),
        ("KubeVersion", Value::str(&chart.kube_version)),
        ("Dependencies", Value::list(dependencies.collect())),
        ("Type", Value::str(&chart.kind)),
        ("IsRoot", Value::Bool(is_root)),
    ])
}

/// What all charts of a release see alike.
struct Shared {
    release: Value,
    capabilities: Value,
}

/// Collects the templates of a chart and its dependencies, with what each of them sees.
fn collect(
    chart: &Chart,
    values: Value,
    shared: &Shared,
    path: &str,
    is_root: bool,
    found: &mut BTreeMap<String, Renderable>,
) -> Value {
    let files = chart
        .files
        .iter()
        .map(|file| {
            (
                Rc::from(file.name.as_str()),
                Value::Bytes(Rc::from(file.data.as_slice())),
            )
        })
        .collect();
    let subcharts = Value::map(BTreeMap::new());
    let root: Root = [
        ("Chart", metadata(&chart.metadata, is_root)),
        ("Files", Value::typed_map(files, MapType::Files)),
        ("Release", shared.release.clone()),
        ("Capabilities", shared.capabilities.clone()),
        ("Values", values.clone()),
        ("Subcharts", subcharts.clone()),
    ]
    .into_iter()
    .map(|(key, value)| (Rc::from(key), value))
    .collect();
    for dependency in &chart.dependencies {
        let inner = match &values {
            Value::Map(map) => match map.get(dependency.name()) {
                // They are the same map, under another type.
                Some(Value::Map(inner)) => inner.as_type(MapType::Values),
                _ => Value::typed_map(BTreeMap::new(), MapType::Values),
            },
            _ => Value::typed_map(BTreeMap::new(), MapType::Values),
        };
        let path = format!("{path}/charts/{}", dependency.name());
        let seen = collect(dependency, inner, shared, &path, false, found);
        if let Value::Map(map) = &subcharts {
            map.entries
                .borrow_mut()
                .insert(Rc::from(dependency.name()), seen);
        }
    }
    let base = format!("{path}/templates");
    let root = Value::typed_map(root, MapType::Values);
    for template in &chart.templates {
        let name = template.name.rsplit('/').next().unwrap_or_default();
        if chart.is_library() && !name.starts_with('_') {
            continue;
        }
        found.insert(
            crate::functions::paths::clean(&format!("{path}/{}", template.name)),
            Renderable {
                text: String::from_utf8_lossy(&template.data).into_owned(),
                base: base.clone(),
                root: root.clone(),
            },
        );
    }
    root
}

fn templates(
    chart: &Chart,
    values: &Values,
    kube: KubeVersion,
    options: &Options,
) -> Result<Vec<(String, String)>, Error> {
    let release: Root = [
        ("Name", Value::str(&options.name)),
        ("Namespace", Value::str(&options.namespace)),
        ("IsUpgrade", Value::Bool(options.is_upgrade)),
        ("IsInstall", Value::Bool(!options.is_upgrade)),
        ("Revision", Value::Int(options.revision)),
        ("Service", Value::str("Helm")),
    ]
    .into_iter()
    .map(|(key, value)| (Rc::from(key), value))
    .collect();
    let shared = Shared {
        release: Value::map(release),
        capabilities: Value::object(Object::Capabilities(object::Capabilities {
            kube,
            api_versions: options.capabilities.api_versions.clone(),
        })),
    };
    let top = values
        .iter()
        .map(|(key, value)| (Rc::from(key.as_str()), Value::from(value)))
        .collect();
    let top = Value::typed_map(top, MapType::Values);
    let mut found = BTreeMap::new();
    collect(chart, top, &shared, chart.name(), true, &mut found);
    // Deeper templates come first, so that those further up can replace what they define.
    let mut names: Vec<&String> = found.keys().collect();
    names.sort_by(|a, b| {
        let depth = |name: &str| name.matches('/').count();
        depth(b).cmp(&depth(a)).then_with(|| b.cmp(a))
    });
    let mut templates = Templates::new();
    for name in &names {
        let text = &found[*name].text;
        let trees = parse::parse(name, text, &|name| functions::find(name).is_some())
            .map_err(|why| Error::Template(parse_error(name, &why)))?;
        add(&mut templates, trees);
    }
    let templates = Rc::new(templates);
    let env = Env::new(
        options.strict,
        options.now.clone(),
        options.seed,
        options.lookup.clone(),
        options.limits,
    );
    let mut rendered = Vec::new();
    for name in names {
        if name
            .rsplit('/')
            .next()
            .is_some_and(|base| base.starts_with('_'))
        {
            continue;
        }
        let one = &found[name];
        let own: Root = [
            ("Name", Value::str(name)),
            ("BasePath", Value::str(&one.base)),
        ]
        .into_iter()
        .map(|(key, value)| (Rc::from(key), value))
        .collect();
        if let Value::Map(root) = &one.root {
            let own = Value::typed_map(own, MapType::Values);
            root.entries.borrow_mut().insert(Rc::from("Template"), own);
        }
        match exec::execute(&env, &templates, name, one.root.clone()) {
            Ok(bytes) => {
                let bytes = without_no_value(bytes);
                rendered.push((name.clone(), String::from_utf8_lossy(&bytes).into_owned()));
            }
            Err(error) if error.limit => return Err(Error::Limit(error.message())),
            Err(error) => return Err(Error::Template(exec_error(name, &error))),
        }
    }
    Ok(rendered)
}

/// The error of a template that cannot be read, as Helm shows it.
fn parse_error(name: &str, why: &str) -> String {
    let parts: Vec<&str> = why.split(": ").collect();
    match parts.as_slice() {
        [_, location, .., message] => format!("parse error at ({location}): {message}"),
        [_, message] => format!("parse error at ({message}): {message}"),
        _ => format!("parse error in ({name}): {why}"),
    }
}

/// The error of a template that cannot be executed, as Helm shows it.
fn exec_error(name: &str, error: &error::Error) -> String {
    let message = error.message();
    if !error.located {
        return message;
    }
    let mut parts = message.splitn(3, ": ");
    let (Some(_), Some(location), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return format!("execution error in ({name}): {message}");
    };
    if let (Some(from), Some(to)) = (rest.find(MESSAGE_START), rest.rfind(MESSAGE_END))
        && from + MESSAGE_START.len() <= to
    {
        let own = &rest[from + MESSAGE_START.len()..to];
        return format!("execution error at ({location}): {own}");
    }
    let mut shown: Vec<String> = Vec::new();
    for one in error.chain() {
        let Some(text) = trace(&one) else {
            return message;
        };
        if shown.last() != Some(&text) {
            shown.push(text);
        }
    }
    shown.concat().trim().to_owned()
}

/// One step of an error on lines of its own, if it is one of a template.
fn trace(message: &str) -> Option<String> {
    let rest = message.strip_prefix("template: ")?;
    if rest.starts_with("no template ") {
        return Some(format!("{message}\n"));
    }
    let cut = |text: &str| match text.find(" template:") {
        Some(at) => text[..at].to_owned(),
        None => text.to_owned(),
    };
    if let Some((location, after)) = rest.split_once(": executing ") {
        let inner = after.strip_prefix('"')?;
        let (function, after) = inner.split_once('"')?;
        let after = after.strip_prefix(" at <")?;
        let (place, problem) = after.split_once(">: ")?;
        return Some(format!(
            "{location}\n  executing \"{function}\" at <{place}>:\n    {}\n",
            cut(problem)
        ));
    }
    let (location, problem) = rest.rsplit_once(": ")?;
    Some(format!("{location}\n  {}\n", cut(problem)))
}
