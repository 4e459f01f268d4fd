//! `init --plugins=helm` and `create api` in such a project: the layout of operator-sdk's Helm
//! projects, with everything that a chart says derived from it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windlass_charts::{Chart, File, from_yaml, to_yaml};
use windlass_declarative::helm::rights::plural_of;

use super::{WATCHES, name_of};
use crate::error::{Error, Result, at};
use crate::project::{FILE, check_label};
use crate::scaffold::{Plan, Written};

/// The layout that operator-sdk's projects of charts have.
const LAYOUT: &str = "helm.sdk.operatorframework.io/v1";
/// What is below it is added by `create api`.
const MARK: &str = "# +kubebuilder:scaffold:watch";

const DOCKERFILE: &str = "\
# The operator: the windlass program, the charts, and which kind each is for.
FROM scratch
ENV HOME=/opt/helm
WORKDIR /opt/helm
COPY bin/windlass /usr/local/bin/helm-operator
COPY watches.yaml watches.yaml
COPY helm-charts helm-charts
USER 65532:65532
ENTRYPOINT [\"/usr/local/bin/helm-operator\"]
CMD [\"run\", \"--watches-file=./watches.yaml\"]
";

const MAKEFILE: &str = "\
IMG ?= controller:latest

.PHONY: run install uninstall manifests deploy undeploy docker-build

run: ## Run against the cluster of the current kubeconfig
\twindlass run

install: ## Install the CRDs
\twindlass install

uninstall: ## Remove the CRDs
\twindlass uninstall

manifests: ## Write config/ and dist/install.yaml from watches.yaml and the charts
\twindlass manifests

deploy: ## Install the operator into the cluster
\twindlass deploy --image $(IMG)

undeploy: ## Remove the operator from the cluster
\twindlass undeploy

docker-build: ## Build the image; bin/windlass has to be a static build of windlass
\tdocker build -t $(IMG) .
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: {{ .Values.replicaCount }}
  selector:
    matchLabels:
      app.kubernetes.io/instance: {{ .Release.Name }}
  template:
    metadata:
      labels:
        app.kubernetes.io/instance: {{ .Release.Name }}
    spec:
      containers:
      - name: {{ .Chart.Name }}
        image: \"{{ .Values.image.repository }}:{{ .Values.image.tag }}\"
        ports:
        - name: http
          containerPort: 80
";

const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  selector:
    app.kubernetes.io/instance: {{ .Release.Name }}
  ports:
  - name: http
    port: {{ .Values.service.port }}
    targetPort: http
";

const VALUES: &str = "\
# How many pods there are.
replicaCount: 1
image:
  # The image, without its tag.
  repository: nginx
  # The image's tag.
  tag: stable
service:
  # The port of the Service.
  port: 80
";

/// What a new project is to be.
pub(crate) struct NewHelmProject {
    pub(crate) folder: PathBuf,
    pub(crate) domain: String,
    pub(crate) name: Option<String>,
}

/// A kind and its chart.
pub(crate) struct NewHelmApi {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    /// A folder or an archive; a small chart is made if there is none.
    pub(crate) chart: Option<PathBuf>,
}

/// Writes a project without kinds.
pub(crate) fn init(new: &NewHelmProject) -> Result<(PathBuf, String, Vec<Written>)> {
    for label in new.domain.split('.') {
        check_label("domain", label)?;
    }
    let root = std::path::absolute(&new.folder).map_err(at(&new.folder))?;
    let name = if let Some(name) = &new.name {
        name.clone()
    } else {
        let folder = root
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        folder.to_lowercase().replace(['_', '.', ' '], "-")
    };
    check_label("name", &name)?;
    let project = json!({
        "domain": new.domain,
        "layout": [LAYOUT],
        "projectName": name,
        "version": "3",
    });
    let path = root.join(FILE);
    if path.is_file() {
        let found = read_project(&root)?;
        if found["domain"] != project["domain"] || found["projectName"] != project["projectName"] {
            return Err(Error::Other(format!(
                "{} is a project already; add to it with `windlass create api`",
                root.display()
            )));
        }
        return Ok((root, name, Vec::new()));
    }
    let mut plan = Plan::new(&root);
    plan.create("Dockerfile", DOCKERFILE.to_owned())?;
    plan.create("Makefile", MAKEFILE.to_owned())?;
    plan.create(".gitignore", "/bin\n".to_owned())?;
    plan.create(".dockerignore", ".windlass\nconfig\ndist\n".to_owned())?;
    plan.create("helm-charts/.gitkeep", String::new())?;
    let head = "# Use the 'create api' subcommand to add watches to this file.\n";
    plan.create(WATCHES, format!("{head}{MARK}\n"))?;
    plan.create(FILE, project_text(&project))?;
    let written = plan.write()?;
    Ok((root, name, written))
}

/// Adds a kind and its chart to the project of a folder.
pub(crate) fn create_api(root: &Path, new: &NewHelmApi) -> Result<(Value, Vec<Written>)> {
    let mut project = read_project(root)?;
    let domain = project["domain"].as_str().unwrap_or_default().to_owned();
    let group = match (new.group.as_str(), domain.as_str()) {
        ("", domain) => domain.to_owned(),
        (group, "") => group.to_owned(),
        (group, domain) => format!("{group}.{domain}"),
    };
    for label in group.split('.') {
        check_label("group", label)?;
    }
    check_label("version", &new.version)?;
    check_kind(&new.kind)?;
    let resource = json!({
        "api": {"crdVersion": "v1", "namespaced": true},
        "domain": domain,
        "group": new.group,
        "kind": new.kind,
        "version": new.version,
    });
    let (name, files, chart) = chart(new)?;
    let folder = format!("helm-charts/{name}");
    let mut plan = Plan::new(root);
    for file in files {
        let text = String::from_utf8(file.data)
            .map_err(|_| Error::Other(format!("{} of chart {name} is not text", file.name)))?;
        plan.create(format!("{folder}/{}", file.name), text)?;
    }
    let resources = project["resources"].as_array().cloned().unwrap_or_default();
    let is_same = |one: &Value| {
        ["group", "version", "kind"]
            .iter()
            .all(|field| one[*field] == resource[*field])
    };
    if !resources.iter().any(is_same) {
        project["resources"] = resources.into_iter().chain([resource]).collect();
        plan.keep(FILE, project_text(&project))?;
        let entry = format!(
            "- group: {group}\n  version: {}\n  kind: {}\n  chart: {folder}\n",
            new.version, new.kind
        );
        plan.edit(WATCHES, |text| Ok(with_entry(text, &entry)))?;
    }
    let sample = format!(
        "apiVersion: {group}/{}\nkind: {}\nmetadata:\n  name: {}-sample\nspec:\n  # Default values copied from <project_dir>/{folder}/values.yaml\n{}",
        new.version,
        new.kind,
        new.kind.to_lowercase(),
        spec(&chart)
    );
    let path = format!(
        "config/samples/{}_{}_{}.yaml",
        if new.group.is_empty() {
            &group
        } else {
            &new.group
        },
        new.version,
        new.kind.to_lowercase()
    );
    plan.create(path, sample)?;
    let written = plan.write()?;
    let facts = json!({
        "group": group,
        "version": new.version,
        "kind": new.kind,
        "plural": plural_of(&new.kind),
        "chart": folder,
    });
    Ok((facts, written))
}

/// Whether a folder is a project of charts.
pub(crate) fn is_project(root: &Path) -> bool {
    root.join(WATCHES).is_file()
}

fn read_project(root: &Path) -> Result<Value> {
    let path = root.join(FILE);
    let text = std::fs::read(&path).map_err(at(&path))?;
    let project = from_yaml(&text)
        .map_err(|why| Error::Other(format!("cannot read {}: {why}", path.display())))?;
    let layouts = project["layout"].as_array();
    let is_helm = layouts
        .into_iter()
        .flatten()
        .any(|layout| *layout == LAYOUT);
    if !is_helm {
        return Err(Error::Other(format!(
            "{} is not a project of Helm charts: its layout is not {LAYOUT}",
            path.display()
        )));
    }
    Ok(project)
}

fn project_text(project: &Value) -> String {
    format!(
        "# What `windlass` created here. It reads this file to go on from there.\n{}",
        to_yaml(project)
    )
}

/// A file of watches with another entry, above the mark if there is one.
fn with_entry(text: &str, entry: &str) -> String {
    match text.find(MARK) {
        Some(at) => format!("{}{entry}{}", &text[..at], &text[at..]),
        None => format!("{}\n{entry}", text.trim_end()),
    }
}

fn check_kind(kind: &str) -> Result<()> {
    let is_camel = kind.starts_with(|c: char| c.is_ascii_uppercase())
        && kind.chars().all(|c| c.is_ascii_alphanumeric());
    if is_camel {
        return Ok(());
    }
    Err(Error::Other(format!(
        "invalid kind {kind:?}: it must be in CamelCase, such as Memcached"
    )))
}

/// The chart of a kind: its name, its files, and what they are.
fn chart(new: &NewHelmApi) -> Result<(String, Vec<File>, Chart)> {
    let wrong = |error: windlass_charts::Error| Error::Other(error.to_string());
    let files = if let Some(path) = &new.chart {
        windlass_charts::chart::files(path).map_err(wrong)?
    } else {
        let name = new.kind.to_lowercase();
        let file = |name: &str, text: &str| File {
            name: name.to_owned(),
            data: text.into(),
        };
        vec![
            file(
                "Chart.yaml",
                &format!(
                    "apiVersion: v2\nname: {name}\ndescription: A chart of {}.\ntype: application\nversion: 0.1.0\nappVersion: stable\n",
                    new.kind
                ),
            ),
            file("values.yaml", VALUES),
            file("templates/deployment.yaml", DEPLOYMENT),
            file("templates/service.yaml", SERVICE),
        ]
    };
    let chart = Chart::from_files(files.clone()).map_err(wrong)?;
    Ok((chart.name().to_owned(), files, chart))
}

/// The values of a chart as a spec.
fn spec(chart: &Chart) -> String {
    if chart.values.is_empty() {
        return "  {}\n".to_owned();
    }
    let text = to_yaml(&Value::Object(chart.values.clone()));
    let indented: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
    indented.join("\n") + "\n"
}

/// The project's name, for those that ask its program.
pub(crate) fn project_name(root: &Path) -> String {
    name_of(root)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let new = NewHelmProject {
            folder: folder.path().to_owned(),
            domain: "example.com".to_owned(),
            name: Some("webs".to_owned()),
        };
        assert!(!init(&new).unwrap().2.is_empty());
        assert!(init(&new).unwrap().2.is_empty(), "again nothing is written");
        folder
    }

    fn api(kind: &str) -> NewHelmApi {
        NewHelmApi {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            chart: None,
        }
    }

    #[test]
    fn kinds_are_added_above_the_mark_once() {
        let folder = project();
        create_api(folder.path(), &api("Web")).unwrap();
        create_api(folder.path(), &api("Cache")).unwrap();
        let (_, written) = create_api(folder.path(), &api("Cache")).unwrap();
        assert_eq!(written, []);
        assert_eq!(
            fs::read_to_string(folder.path().join(WATCHES)).unwrap(),
            "# Use the 'create api' subcommand to add watches to this file.\n- group: apps.example.com\n  version: v1\n  kind: Web\n  chart: helm-charts/web\n- group: apps.example.com\n  version: v1\n  kind: Cache\n  chart: helm-charts/cache\n# +kubebuilder:scaffold:watch\n"
        );
        let sample =
            fs::read_to_string(folder.path().join("config/samples/apps_v1_web.yaml")).unwrap();
        assert!(
            sample.contains("kind: Web\n") && sample.contains("  replicaCount: 1\n"),
            "{sample}"
        );
        let project = read_project(folder.path()).unwrap();
        assert_eq!(project["resources"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn what_is_wrong_is_refused_and_nothing_is_written() {
        let folder = project();
        for (new, wanted) in [
            (
                NewHelmApi {
                    kind: "web".to_owned(),
                    ..api("Web")
                },
                "CamelCase",
            ),
            (
                NewHelmApi {
                    group: "A_b".to_owned(),
                    ..api("Web")
                },
                "group",
            ),
            (
                NewHelmApi {
                    chart: Some("missing".into()),
                    ..api("Web")
                },
                "missing",
            ),
        ] {
            let error = create_api(folder.path(), &new).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        assert!(!folder.path().join("helm-charts/web").exists());
    }
}
