//! Some of an operator's controllers: one program that can be deployed as several.

use kube::ResourceExt;

use super::Operator;
use crate::{Error, Result};

impl Operator {
    /// Adds a program: under this name, the operator has only these of its controllers. It has a
    /// name, a role and a lease of its own, so it can be deployed beside the others.
    ///
    /// The program is chosen by the name it is called by (`argv[0]`), and by
    /// `run --controllers`.
    #[must_use]
    pub fn program<'a>(
        mut self,
        name: &str,
        controllers: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let controllers = controllers.into_iter().map(str::to_owned).collect();
        self.programs.insert(name.to_owned(), controllers);
        self
    }

    /// The operator as the program of that name; unchanged if there is none.
    pub fn as_program(self, name: &str) -> Result<Self> {
        let Some(controllers) = self.programs.get(name).cloned() else {
            return Ok(self);
        };
        let mut chosen = self.with_controllers(&controllers)?;
        chosen.name = name.into();
        Ok(chosen)
    }

    /// The names of the programs that it can be.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.programs.keys().map(String::as_str)
    }

    /// The operator with only the controllers of these names, and the webhooks, samples and
    /// definitions of their kinds.
    pub fn with_controllers(mut self, names: &[String]) -> Result<Self> {
        let known: Vec<&str> = self
            .controllers
            .iter()
            .map(|one| one.describe().name.as_str())
            .collect();
        if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(Error::terminal(format!(
                "there is no controller {unknown:?}: {} has {}",
                self.name,
                known.join(", ")
            )));
        }
        let defined = |operator: &Self| -> Vec<(String, String)> {
            let crds = operator.controllers.iter().filter_map(|one| one.crd());
            crds.map(|crd| (crd.name_any(), crd.spec.names.kind.clone()))
                .collect()
        };
        let before = defined(&self);
        self.controllers
            .retain(|one| names.contains(&one.describe().name));
        let after = defined(&self);
        let gone = before.into_iter().filter(|one| !after.contains(one));
        let (definitions, kinds): (Vec<String>, Vec<String>) = gone.unzip();
        self.webhooks.remove_those_of(&definitions);
        self.samples.retain(|sample| {
            let kind = sample["kind"].as_str().unwrap_or_default();
            !kinds.iter().any(|one| one == kind)
        });
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    use super::*;
    use crate::Controller;

    fn operator() -> Operator {
        fn copy(secret: &Secret) -> ConfigMap {
            crate::object!(ConfigMap { metadata: { name: secret.metadata.name.clone() } })
        }
        Operator::new("all")
            .controller(
                Controller::of_existing::<Secret>()
                    .dependent(copy)
                    .named("copies"),
            )
            .controller(Controller::of_existing::<ConfigMap>().named("maps"))
            .program("map-operator", ["maps"])
    }

    #[test]
    fn program_has_only_its_controllers_and_their_rights() {
        let maps = operator().as_program("map-operator").unwrap();
        assert_eq!(maps.name(), "map-operator");
        let description = maps.description();
        assert!(!description.rules().any(|rule| rule.resource == "secrets"));
        let all = operator().as_program("all").unwrap();
        assert!(
            all.description()
                .rules()
                .any(|rule| rule.resource == "secrets")
        );
    }

    #[test]
    fn unknown_controller_is_named_with_those_there_are() {
        let error = operator()
            .with_controllers(&["x".to_owned()])
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("\"x\": all has copies, maps"),
            "{error}"
        );
    }
}
