//! The templates, and how they are filled in.

use minijinja::{Environment, Value};

use crate::error::{Error, Result};

macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../templates/", $name)))),*]
    };
}

const TEMPLATES: &[(&str, &str)] = templates![
    "project/Cargo.toml.j2",
    "project/Dockerfile.j2",
    "project/Makefile.j2",
    "project/README.md.j2",
    "project/ci.yml.j2",
    "project/dockerignore",
    "project/gitignore",
    "project/lib.rs.j2",
    "project/main.rs.j2",
    "project/operator_test.rs.j2",
    "kind/controller.rs.j2",
    "kind/conversion.rs.j2",
    "kind/conversion_pair.rs.j2",
    "kind/conversion_test.rs.j2",
    "kind/kind.rs.j2",
    "kind/test.rs.j2",
    "kind/version.rs.j2",
    "kind/webhook.rs.j2",
];

/// A template with its places filled in; one that is left empty is an error.
pub(super) fn render(template: &str, values: Value) -> Result<String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    let text = TEMPLATES
        .iter()
        .find(|(name, _)| *name == template)
        .map(|(_, text)| *text)
        .unwrap_or_default();
    environment
        .render_str(text, values)
        // The last line's end is not part of a template.
        .map(|text| text + "\n")
        .map_err(|error| Error::Other(format!("cannot fill in {template}: {error:#}")))
}

/// `A Memcached`, `An EtcdCluster`.
pub(super) fn article(kind: &str) -> &'static str {
    match kind.chars().next() {
        Some('A' | 'E' | 'I' | 'O') => "an",
        _ => "a",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_there() {
        assert!(TEMPLATES.iter().all(|(_, text)| !text.is_empty()));
    }

    #[test]
    fn no_kind_can_have_a_name_that_the_templates_import() {
        let mut checked = 0;
        for (path, text) in TEMPLATES
            .iter()
            .filter(|(path, _)| path.starts_with("kind/"))
        {
            // A statement may take several lines.
            for line in text.split("\nuse ").skip(1) {
                let line = line.split(';').next().unwrap_or_default();
                // What is filled in is the kind itself.
                let line = line.replace("}}", "}}of_a_kind");
                let line = line.replace("{%", "\n{%").replace("%}", "%}\n");
                let names = line
                    .lines()
                    .filter(|part| !part.starts_with("{%"))
                    .flat_map(|part| part.split([' ', ',', ':', '{', '}', ';']))
                    .filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase()));
                for name in names {
                    assert!(crate::project::is_taken(name), "{path} imports {name}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 30, "{checked}");
    }
}
