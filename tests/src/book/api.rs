//! The public names of the framework and of the test cluster, read from their source.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use syn::{ImplItem, Item, TraitItem, UseTree, Visibility};

use super::root;

/// The public names of a crate.
#[derive(Default)]
pub struct Api {
    /// What can be imported from a module; the crate's root is the empty name.
    modules: BTreeMap<String, BTreeSet<String>>,
    /// Methods, associated functions and variants by type or trait.
    members: BTreeMap<String, BTreeSet<String>>,
    /// Public types, traits, functions and macros whose documentation has an example.
    examples: BTreeSet<String>,
}

impl Api {
    /// Reads a crate below `crates/`.
    pub fn of(name: &str) -> Self {
        let folder = root().join("crates").join(name).join("src");
        let mut api = Self::default();
        api.read(&folder);
        let (names, modules) = exported(&folder.join("lib.rs"));
        api.modules.insert(String::new(), names);
        for module in modules {
            let file = folder.join(format!("{module}.rs"));
            let file = if file.exists() {
                file
            } else {
                folder.join(&module).join("mod.rs")
            };
            // A module of the file itself, which only macros use.
            if file.exists() {
                api.modules.insert(module, exported(&file).0);
            }
        }
        api
    }

    /// Whether authors can name the type, trait or function, wherever it is.
    pub fn exports(&self, name: &str) -> bool {
        self.modules.values().any(|names| names.contains(name))
    }

    /// What can be imported from a module, and which modules there are if it is the root.
    pub fn names(&self, module: &str) -> BTreeSet<&str> {
        let names = self.modules.get(module).into_iter().flatten();
        let modules = self
            .modules
            .keys()
            .filter(|name| module.is_empty() && !name.is_empty());
        names.chain(modules).map(String::as_str).collect()
    }

    /// Whether the documentation of the type, trait, function or macro has an example.
    pub fn has_example(&self, name: &str) -> bool {
        self.examples.contains(name)
    }

    /// Whether a path behind the crate's name can be imported, as `handle::Reads`.
    pub fn resolves(&self, path: &str) -> bool {
        if self.modules.contains_key(path) {
            return true;
        }
        let (module, name) = path.rsplit_once("::").unwrap_or(("", path));
        let Some(names) = self.modules.get(module) else {
            // What belongs to a type: `Error::terminal`.
            return module
                .rsplit("::")
                .next()
                .is_some_and(|owner| self.has(owner, name));
        };
        name == "*" || names.contains(name)
    }

    /// Whether the type or trait has a method, function or variant of that name.
    pub fn has(&self, owner: &str, member: &str) -> bool {
        let members = self.members.get(owner);
        members.is_some_and(|members| members.contains(member))
    }

    /// Whether anything has a member of that name, or is a function of that name.
    pub fn has_anywhere(&self, name: &str) -> bool {
        self.exports(name) || self.members.values().any(|members| members.contains(name))
    }

    fn read(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder)
            .expect("a folder can be read")
            .flatten()
        {
            let path = entry.path();
            if path.is_dir() {
                self.read(&path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                self.items(parsed(&path).items);
            }
        }
    }

    fn items(&mut self, items: Vec<Item>) {
        for item in items {
            if let Some(name) = with_example(&item) {
                self.examples.insert(name);
            }
            match item {
                Item::Impl(one) if one.trait_.is_none() => {
                    let syn::Type::Path(path) = &*one.self_ty else {
                        continue;
                    };
                    let Some(owner) = path.path.segments.last() else {
                        continue;
                    };
                    let public = one.items.iter().filter_map(|item| match item {
                        ImplItem::Fn(f) if is_public(&f.vis) => Some(f.sig.ident.to_string()),
                        _ => None,
                    });
                    self.members
                        .entry(owner.ident.to_string())
                        .or_default()
                        .extend(public);
                }
                Item::Trait(one) if is_public(&one.vis) => {
                    let functions = one.items.iter().filter_map(|item| match item {
                        TraitItem::Fn(f) => Some(f.sig.ident.to_string()),
                        _ => None,
                    });
                    self.members
                        .entry(one.ident.to_string())
                        .or_default()
                        .extend(functions);
                }
                Item::Enum(one) if is_public(&one.vis) => {
                    let variants = one.variants.iter().map(|variant| variant.ident.to_string());
                    self.members
                        .entry(one.ident.to_string())
                        .or_default()
                        .extend(variants);
                }
                _ => {}
            }
        }
    }
}

/// The name of a public item whose documentation has an example.
fn with_example(item: &Item) -> Option<String> {
    let (attributes, public, name) = match item {
        Item::Struct(one) => (&one.attrs, is_public(&one.vis), &one.ident),
        Item::Enum(one) => (&one.attrs, is_public(&one.vis), &one.ident),
        Item::Trait(one) => (&one.attrs, is_public(&one.vis), &one.ident),
        Item::Type(one) => (&one.attrs, is_public(&one.vis), &one.ident),
        Item::Fn(one) => (&one.attrs, is_public(&one.vis), &one.sig.ident),
        Item::Macro(one) => (&one.attrs, true, one.ident.as_ref()?),
        _ => return None,
    };
    let is_example = |attribute: &syn::Attribute| {
        let syn::Meta::NameValue(doc) = &attribute.meta else {
            return false;
        };
        let syn::Expr::Lit(text) = &doc.value else {
            return false;
        };
        let syn::Lit::Str(text) = &text.lit else {
            return false;
        };
        doc.path.is_ident("doc") && text.value().trim_start().starts_with("```")
    };
    (public && attributes.iter().any(is_example)).then(|| name.to_string())
}

fn parsed(path: &Path) -> syn::File {
    let text = fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let file = syn::parse_file(&text);
    file.unwrap_or_else(|error| panic!("cannot parse {}: {error}", path.display()))
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// What a file makes public, and which modules.
fn exported(path: &Path) -> (BTreeSet<String>, Vec<String>) {
    let (mut names, mut modules) = (BTreeSet::new(), Vec::new());
    for item in parsed(path).items {
        match item {
            Item::Use(one) if is_public(&one.vis) => leaves(&one.tree, &mut names),
            Item::Mod(one) if is_public(&one.vis) => modules.push(one.ident.to_string()),
            Item::Struct(one) if is_public(&one.vis) => _ = names.insert(one.ident.to_string()),
            Item::Enum(one) if is_public(&one.vis) => _ = names.insert(one.ident.to_string()),
            Item::Trait(one) if is_public(&one.vis) => _ = names.insert(one.ident.to_string()),
            Item::Fn(one) if is_public(&one.vis) => _ = names.insert(one.sig.ident.to_string()),
            Item::Type(one) if is_public(&one.vis) => _ = names.insert(one.ident.to_string()),
            _ => {}
        }
    }
    // The macro is of the root, wherever it stands.
    if path.ends_with("windlass/src/lib.rs") {
        names.insert("object".to_owned());
    }
    (names, modules)
}

fn leaves(tree: &UseTree, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => leaves(&path.tree, names),
        UseTree::Name(name) => _ = names.insert(name.ident.to_string()),
        UseTree::Rename(rename) => _ = names.insert(rename.rename.to_string()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, names)),
        UseTree::Glob(_) => {}
    }
}

/// The paths that a Rust file imports from a crate, without the crate's name.
pub fn imports(file: &syn::File, from: &str) -> Vec<String> {
    let mut found = Vec::new();
    for item in &file.items {
        if let Item::Use(one) = item
            && let UseTree::Path(path) = &one.tree
            && path.ident == from
        {
            import(&path.tree, "", &mut found);
        }
    }
    found
}

fn import(tree: &UseTree, before: &str, found: &mut Vec<String>) {
    let joined = |name: &dyn ToString| format!("{before}{}", name.to_string());
    match tree {
        UseTree::Path(path) => import(&path.tree, &format!("{}::", joined(&path.ident)), found),
        UseTree::Name(name) => found.push(joined(&name.ident)),
        UseTree::Rename(rename) => found.push(joined(&rename.ident)),
        UseTree::Group(group) => {
            group
                .items
                .iter()
                .for_each(|tree| import(tree, before, found));
        }
        UseTree::Glob(_) => found.push(format!("{before}*")),
    }
}
