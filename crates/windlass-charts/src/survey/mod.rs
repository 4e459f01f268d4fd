//! What a chart may make and look up, over all branches of its templates.
//!
//! Nothing is rendered. Each template is followed down every branch, and what stands after
//! `apiVersion:` and `kind:` at the margin of a document is collected with its line and the
//! conditions it stands under. Most of it is literal. What comes from values is reported as the
//! expression it comes from, because any value is possible.
//!
//! | module | what |
//! | --- | --- |
//! | `walk` | branches and templates within templates |
//! | `document` | lines of a document to its kind |
//! | `text` | the texts that an expression may give |
//! | `lookup` | calls of `lookup` |

mod document;
mod lookup;
mod text;
mod walk;

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use crate::chart::Chart;
use crate::functions::helm::add;
use crate::template::exec::Templates;
use crate::template::parse;
use crate::{Error, functions};

use text::Texts;
use walk::Walker;

/// One thing that a chart may need of a cluster, and where it says so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// What it does with the objects.
    pub purpose: Purpose,
    /// Their API version.
    pub api_version: Said,
    /// Their kind.
    pub kind: Said,
    /// The template that says so.
    pub source: String,
    /// The line of the template.
    pub line: usize,
    /// The conditions that it stands under, the outermost first.
    pub when: Vec<String>,
}

/// What a chart does with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// It makes them.
    Make,
    /// It looks them up.
    Lookup,
}

/// A word of a template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Said {
    /// It stands there.
    Literal(String),
    /// It comes from this expression, which depends on values.
    Computed(String),
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(text) => f.write_str(text),
            Self::Computed(expression) => write!(f, "{{{{ {expression} }}}}"),
        }
    }
}

/// A template of the chart or of one it depends on.
struct Template {
    name: String,
    text: String,
    /// Whether it makes objects; the others only define templates.
    renders: bool,
    /// What has to hold for its chart to be used.
    when: Vec<Rc<str>>,
}

/// What a chart may need, in the order of its templates.
pub fn needs(chart: &Chart) -> Result<Vec<Need>, Error> {
    let mut found = Vec::new();
    collect(chart, chart.name(), &[], &mut found);
    // As when it is rendered: deeper templates come first, so that others replace what they define.
    found.sort_by(|a, b| {
        let depth = |template: &Template| template.name.matches('/').count();
        depth(b).cmp(&depth(a)).then_with(|| b.name.cmp(&a.name))
    });
    let mut trees = Templates::new();
    for template in &found {
        let is_function = |name: &str| functions::find(name).is_some();
        let parsed = parse::parse(&template.name, &template.text, &is_function)
            .map_err(|why| Error::Template(why.clone()))?;
        add(&mut trees, parsed);
    }
    let texts = Texts::new(&trees);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let mut needs = Vec::new();
    for template in &found {
        if template.renders {
            let walker = Walker::new(&trees, &texts, &template.when);
            needs.extend(walker.template(&template.name)?);
        }
    }
    lookup::lookups(&trees, &texts, &mut needs);
    let mut seen = BTreeSet::new();
    needs.retain(|need| seen.insert(need.clone()));
    Ok(needs)
}

fn collect(chart: &Chart, path: &str, when: &[Rc<str>], found: &mut Vec<Template>) {
    for file in &chart.templates {
        let base = file.name.rsplit('/').next().unwrap_or_default();
        let is_partial = base.starts_with('_');
        if chart.is_library() && !is_partial {
            continue;
        }
        found.push(Template {
            name: crate::functions::paths::clean(&format!("{path}/{}", file.name)),
            text: String::from_utf8_lossy(&file.data).into_owned(),
            renders: !is_partial && !base.ends_with("NOTES.txt"),
            when: when.to_vec(),
        });
    }
    for dependency in &chart.dependencies {
        let mut when = when.to_vec();
        let declared = chart.metadata.dependencies.iter().flatten();
        for one in declared.filter(|one| one.name == dependency.name()) {
            if !one.condition.is_empty() {
                when.push(format!(".Values.{}", one.condition).into());
            } else if !one.tags.is_empty() {
                when.push(format!(".Values.tags.{}", one.tags.join(" or .Values.tags.")).into());
            }
        }
        let path = format!("{path}/charts/{}", dependency.name());
        collect(dependency, &path, &when, found);
    }
}
