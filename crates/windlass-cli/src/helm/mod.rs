//! Operators of Helm charts: a folder with `watches.yaml` is one, and this program runs it.
//!
//! Under the name `helm-operator`, or with it as first argument, this program is the operator that
//! operator-sdk's Helm projects run, with its flags.

mod flags;
mod scaffold;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use windlass::Operator;
use windlass_declarative::helm::definition::{Names, definition};
use windlass_declarative::helm::operator::{Kind, Settings, operator};
use windlass_declarative::helm::rights::plural_of;
use windlass_declarative::helm::watches::{self, Watch};

pub(crate) use scaffold::{NewHelmApi, NewHelmProject, create_api, init, is_project, project_name};

use flags::Flags;

/// The name of the program that this is in operators of charts.
pub(crate) const PROGRAM: &str = "helm-operator";
/// The file that makes a folder an operator of charts.
pub(crate) const WATCHES: &str = "watches.yaml";

/// Becomes the operator of the charts of `watches.yaml`, if the program is called so.
pub(crate) fn become_one() -> Option<ExitCode> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let is_it = |argument: &OsString| {
        Path::new(argument)
            .file_name()
            .is_some_and(|name| name == PROGRAM)
    };
    if !arguments.first().is_some_and(is_it) {
        if arguments.get(1).is_none_or(|first| first != PROGRAM) {
            return None;
        }
        arguments.remove(0);
    }
    let (flags, rest) = match Flags::of(arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("error: {error}");
            return Some(ExitCode::from(2));
        }
    };
    match load(&flags) {
        Ok(operator) => Some(windlass::run::main_from(|| operator, rest)),
        Err(error) => {
            eprintln!("error: {error}");
            Some(ExitCode::FAILURE)
        }
    }
}

/// The operator that a file of watches describes.
fn load(flags: &Flags) -> Result<Operator, String> {
    let path = flags
        .watches_file
        .clone()
        .unwrap_or_else(|| PathBuf::from(WATCHES));
    let watches = watches::load(&path, &environment()).map_err(|error| error.to_string())?;
    for warning in flags
        .warnings
        .iter()
        .cloned()
        .chain(without_effect(&watches))
    {
        eprintln!("warning: {warning}");
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let kinds: Vec<Kind> = watches
        .into_iter()
        .map(|watch| kind(folder, watch))
        .collect::<Result<_, _>>()?;
    let settings = Settings {
        reconcile_period: flags.reconcile_period,
        max_concurrent_reconciles: flags.max_concurrent_reconciles,
        suppress_override_values: flags.suppress_override_values,
        namespaces: namespaces(),
    };
    let name = match &flags.leader_election_id {
        Some(name) => name.clone(),
        None => name_of(folder),
    };
    let mut operator = operator(&name, &kinds, &settings).map_err(|error| error.to_string())?;
    operator = operator
        .version(env!("CARGO_PKG_VERSION"))
        .field_manager("helm");
    for sample in samples(folder)? {
        operator = operator.sample_value(sample);
    }
    Ok(operator)
}

/// What a file of watches asks for that this operator does otherwise.
fn without_effect(watches: &[Watch]) -> Vec<String> {
    let mut found = Vec::new();
    for watch in watches {
        if !watch.watch_dependent_resources {
            found.push(format!(
                "watchDependentResources: false of {} has no effect: what a release consists of is always watched",
                watch.kind
            ));
        }
        if !matches!(watch.dry_run_option.as_str(), "" | "server") {
            found.push(format!(
                "dryRunOption: {} of {} has no effect: lookup always sees the cluster",
                watch.dry_run_option, watch.kind
            ));
        }
    }
    found
}

/// A kind with its definition: the project's own file, or one made from the chart.
fn kind(folder: &Path, watch: Watch) -> Result<Kind, String> {
    let own = definitions(folder)?.into_iter().find(|crd| {
        crd["spec"]["group"] == *watch.group && crd["spec"]["names"]["kind"] == *watch.kind
    });
    let plural = own
        .as_ref()
        .and_then(|crd| crd["spec"]["names"]["plural"].as_str());
    let plural = plural.map_or_else(|| plural_of(&watch.kind), str::to_owned);
    let crd = definition(
        &Names {
            group: watch.group.clone(),
            version: watch.version.clone(),
            kind: watch.kind.clone(),
            plural: plural.clone(),
        },
        &watch.chart,
    );
    // A definition that says more than one made from the chart is a person's.
    let crd = match own {
        Some(own) if is_written_by_hand(&own) => own,
        _ => crd,
    };
    let definition = serde_json::from_value(crd)
        .map_err(|error| format!("cannot read the definition of {}: {error}", watch.kind))?;
    Ok(Kind {
        watch,
        plural,
        definition: Some(definition),
    })
}

/// Whether a definition has a schema of its own. That of operator-sdk says only that there is a spec.
fn is_written_by_hand(crd: &serde_json::Value) -> bool {
    let versions = crd["spec"]["versions"].as_array();
    let several = versions.is_some_and(|versions| versions.len() > 1);
    several || !crd["metadata"]["annotations"]["core.windlass.dev/keep"].is_null()
}

/// The definitions of `config/crd/bases`.
fn definitions(folder: &Path) -> Result<Vec<serde_json::Value>, String> {
    objects_in(&folder.join("config/crd/bases"))
}

/// The samples of `config/samples`.
fn samples(folder: &Path) -> Result<Vec<serde_json::Value>, String> {
    let objects = objects_in(&folder.join("config/samples"))?;
    Ok(objects
        .into_iter()
        .filter(|object| object["kind"] != "Kustomization")
        .collect())
}

fn objects_in(folder: &Path) -> Result<Vec<serde_json::Value>, String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "yaml")
    });
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let failed = |why: String| format!("cannot read {}: {why}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        for document in windlass_charts::documents(&text) {
            let object = windlass_charts::object_from_yaml(document.as_bytes()).map_err(failed)?;
            if object.is_object() {
                found.push(object);
            }
        }
    }
    Ok(found)
}

/// The project's name: of its `PROJECT` file, or of its folder.
fn name_of(folder: &Path) -> String {
    let text = std::fs::read(folder.join(crate::project::FILE)).unwrap_or_default();
    let project = windlass_charts::from_yaml(&text).unwrap_or_default();
    if let Some(name) = project["projectName"].as_str() {
        return name.to_owned();
    }
    let folder = std::fs::canonicalize(folder).ok();
    let name = folder.as_ref().and_then(|folder| folder.file_name());
    let name = name.map(|name| name.to_string_lossy().to_lowercase());
    name.filter(|name| crate::project::check_label("name", name).is_ok())
        .unwrap_or_else(|| PROGRAM.to_owned())
}

/// The namespaces of `WATCH_NAMESPACE`.
fn namespaces() -> Vec<String> {
    let given = std::env::var("WATCH_NAMESPACE").unwrap_or_default();
    let names = given
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// The variables of the environment that are text.
fn environment() -> BTreeMap<String, String> {
    let variables = std::env::vars_os();
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
