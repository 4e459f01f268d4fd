//! Another version of a kind: a type that begins as the first one was, and the way between them.

use std::fs;
use std::path::Path;

use minijinja::context;
use syn::{Fields, Item};

use super::edit::{add_item, append_call, before_tests, bytes_of};
use super::plan::Plan;
use super::render::render;
use crate::error::{Error, Result, at};
use crate::project::Resource;

/// Adds a version beside the first, which stays the one that objects are stored in.
pub(super) fn another_version(
    root: &Path,
    plan: &mut Plan,
    module: &str,
    first: &Resource,
    earlier: &[Resource],
    new: &Resource,
) -> Result<()> {
    let path = root.join(format!("src/{module}/{}.rs", first.version));
    let text = fs::read_to_string(&path).map_err(at(&path))?;
    let source = Source::read(&path, &text, &new.kind)?;
    let (hub, spoke) = (&first.version, &new.version);
    plan.create(
        format!("src/{module}/{spoke}.rs"),
        source.as_version(hub, spoke),
    )?;

    let pair = |from: &str, to: &str| {
        render(
            "kind/conversion_pair.rs.j2",
            context! { kind => &new.kind, from, to, spec => &source.spec, status => &source.status },
        )
    };
    let pairs = pair(hub, spoke)? + &pair(spoke, hub)?;
    let conversion = format!("src/{module}/conversion.rs");
    let values = context! { kind => &new.kind, hub, spoke };
    if earlier.len() == 1 {
        let text = render("kind/conversion.rs.j2", values.clone())?
            + &pairs
            + &render("kind/conversion_test.rs.j2", values)?;
        plan.create(conversion, text)?;
    } else {
        plan.edit(conversion, |text| {
            let call = format!(".spoke::<{spoke}::{}>()", new.kind);
            let text = append_call(text, "versions", &call)?;
            let text = add_item(&text, &format!("use super::{spoke};"))?;
            Ok(before_tests(&text, &pairs))
        })?;
    }
    plan.edit(format!("src/{module}.rs"), |text| {
        let text = add_item(text, "mod conversion;")?;
        let text = add_item(&text, &format!("pub mod {spoke};"))?;
        add_item(&text, "pub use self::conversion::versions;")
    })?;
    plan.edit("src/lib.rs", |text| {
        append_call(
            text,
            "operator",
            &format!(".versions({module}::versions())"),
        )
    })
}

/// The file of the first version, as far as another one begins like it.
struct Source {
    /// Everything that a version of its own needs, as text.
    parts: Vec<String>,
    /// Other types of the file, which the new version shares.
    shared: Vec<String>,
    head: String,
    spec: Vec<String>,
    status: Vec<String>,
}

impl Source {
    fn read(path: &Path, text: &str, kind: &str) -> Result<Self> {
        let refused = |why: String| {
            Error::Other(format!(
                "cannot make a version from {}: {why}",
                path.display()
            ))
        };
        let file = syn::parse_file(text).map_err(|error| refused(error.to_string()))?;
        let mut source = Self {
            parts: Vec::new(),
            shared: Vec::new(),
            head: String::new(),
            spec: Vec::new(),
            status: Vec::new(),
        };
        let first = file
            .items
            .first()
            .map_or(text.len(), |item| bytes_of(text, item).start);
        text[..first].clone_into(&mut source.head);
        let mut has_spec = false;
        for item in &file.items {
            let range = bytes_of(text, item);
            match item {
                Item::Use(_) => source.parts.push(text[range].to_owned()),
                Item::Struct(found) if found.ident == format!("{kind}Spec") => {
                    has_spec = true;
                    source.spec = fields(&found.fields).map_err(refused)?;
                    source.parts.push(text[range].to_owned());
                }
                Item::Struct(found) if found.ident == format!("{kind}Status") => {
                    source.status = fields(&found.fields).map_err(refused)?;
                    source.parts.push(text[range].to_owned());
                }
                Item::Struct(found) => source.shared.push(found.ident.to_string()),
                Item::Enum(found) => source.shared.push(found.ident.to_string()),
                _ => {}
            }
        }
        if !has_spec {
            return Err(refused(format!("there is no `struct {kind}Spec`")));
        }
        Ok(source)
    }

    /// The same as another version.
    fn as_version(&self, old: &str, new: &str) -> String {
        let head = self.head.replace(&format!("/{old}`"), &format!("/{new}`"));
        let mut text = head;
        let (uses, types): (Vec<_>, Vec<_>) = self
            .parts
            .iter()
            .partition(|part| part.starts_with("use ") || part.starts_with("pub use "));
        for part in uses {
            text.push_str(part);
            text.push('\n');
        }
        if !self.shared.is_empty() {
            let shared = format!("\nuse super::{old}::{{{}}};\n", self.shared.join(", "));
            text.push_str(&shared);
        }
        for part in types {
            text.push('\n');
            text.push_str(&part.replace(
                &format!("version = \"{old}\""),
                &format!("version = \"{new}\""),
            ));
            text.push('\n');
        }
        text
    }
}

fn fields(fields: &Fields) -> std::result::Result<Vec<String>, String> {
    match fields {
        Fields::Named(named) => Ok(named
            .named
            .iter()
            .filter_map(|field| field.ident.as_ref().map(ToString::to_string))
            .collect()),
        Fields::Unit => Ok(Vec::new()),
        Fields::Unnamed(_) => Err("its fields have no names".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "//! Demo of `g/v1`.\n\nuse kube::CustomResource;\n\n/// Asked.\n#[derive(CustomResource)]\n#[kube(group = \"g\", version = \"v1\", kind = \"Demo\")]\npub struct DemoSpec {\n    pub size: i32,\n    pub mode: Mode,\n}\n\npub enum Mode {\n    A,\n}\n";

    #[test]
    fn a_version_begins_as_the_first_one_was_and_shares_its_other_types() {
        let source = Source::read(Path::new("v1.rs"), V1, "Demo").unwrap();
        assert_eq!(source.spec, ["size", "mode"]);
        assert_eq!(
            source.as_version("v1", "v2"),
            "//! Demo of `g/v2`.\n\nuse kube::CustomResource;\n\nuse super::v1::{Mode};\n\n/// Asked.\n#[derive(CustomResource)]\n#[kube(group = \"g\", version = \"v2\", kind = \"Demo\")]\npub struct DemoSpec {\n    pub size: i32,\n    pub mode: Mode,\n}\n"
        );
    }

    #[test]
    fn a_file_without_the_spec_is_refused() {
        let refused = Source::read(Path::new("v1.rs"), "pub struct Other;", "Demo");
        let message = refused.err().unwrap().to_string();
        assert!(message.contains("struct DemoSpec"), "{message}");
    }
}
