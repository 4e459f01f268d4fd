//! The objects of a release, as they are applied.

use serde_json::{Value, json};

use super::{PlanError, Planner};
use crate::helm::annotations::CHART_LABEL;
use crate::helm::stages::{Object, is_kept, objects_of, objects_of_manifest};
use crate::{Check, Method, Ready, Wanted};

impl Planner<'_> {
    /// The objects of a release as Helm would apply them: those first that others may live in.
    pub(super) fn objects(&self, manifest: &str) -> Result<Vec<Vec<Wanted>>, PlanError> {
        let objects =
            objects_of_manifest(manifest).map_err(|error| PlanError::Render(error.to_string()))?;
        let is_place = |one: &Object| one.object["kind"] == "Namespace";
        let (places, others): (Vec<Object>, Vec<Object>) = objects.into_iter().partition(is_place);
        let wanted = |all: Vec<Object>| all.into_iter().map(|one| self.wanted(one)).collect();
        Ok(vec![wanted(places), wanted(others)])
    }

    fn wanted(&self, one: Object) -> Wanted {
        let is_kept = is_kept(&one.object);
        let object = labelled(one.object, self.name, self.namespace, self.at.chart.name());
        let wanted = Wanted::new(object).ready(Ready::Exists);
        // What stayed of an earlier release is there already.
        if is_kept {
            wanted.keep().adopt()
        } else {
            wanted
        }
    }

    /// The definitions of `crds/`: made if they are not there, and never touched again.
    pub(super) fn definitions(&self) -> Result<Option<Vec<Wanted>>, PlanError> {
        let mut found = Vec::new();
        for file in self.at.chart.crds() {
            let text = String::from_utf8_lossy(&file.data).into_owned();
            for document in windlass_charts::documents(&text) {
                let objects = objects_of(&file.name, document)
                    .map_err(|error| PlanError::Render(error.to_string()))?;
                let ready = Ready::Conditions(vec![established()]);
                let is_served = |object: &Value| {
                    (self.at.live)(object).is_some_and(|live| established().holds(&live))
                };
                let missing = objects.into_iter().filter(|one| !is_served(&one.object));
                found.extend(missing.map(|one| {
                    let wanted = Wanted::new(one.object).method(Method::OnDelete);
                    wanted.ready(ready.clone()).keep()
                }));
            }
        }
        Ok((!found.is_empty()).then_some(found))
    }
}

/// What a definition says once its kind is served.
fn established() -> Check {
    Check {
        kind: "Established".to_owned(),
        status: Some("True".to_owned()),
        reason: None,
    }
}

/// An object with what Helm and the operator mark all objects of a release with.
pub(super) fn labelled(mut object: Value, name: &str, namespace: &str, chart: &str) -> Value {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let metadata = &mut object["metadata"];
    for (field, marks) in [
        (
            "labels",
            [
                ("app.kubernetes.io/managed-by", "Helm"),
                (CHART_LABEL, chart),
            ],
        ),
        (
            "annotations",
            [
                ("meta.helm.sh/release-name", name),
                ("meta.helm.sh/release-namespace", namespace),
            ],
        ),
    ] {
        if !metadata[field].is_object() {
            metadata[field] = json!({});
        }
        for (key, value) in marks {
            metadata[field][key] = json!(value);
        }
    }
    object
}
