//! Follows a template down all of its branches.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::Need;
use super::document::{Document, Place};
use super::text::{Alternatives, Texts, Variables, unknown};
use crate::Error;
use crate::template::exec::Templates;
use crate::template::node::{Branch, Kind, Node, Pipe, Tree};
use crate::template::value::Value;

/// How many ways through a template are followed, and how deeply templates may include others.
const WAYS: usize = 2_000;
const DEEP: usize = 40;

type Ways = BTreeSet<Document>;

pub(super) struct Walker<'t> {
    trees: &'t Templates,
    texts: &'t Texts<'t>,
    when: Vec<Rc<str>>,
    inside: Vec<Rc<str>>,
    needs: Vec<Need>,
}

impl<'t> Walker<'t> {
    pub(super) fn new(trees: &'t Templates, texts: &'t Texts<'t>, when: &[Rc<str>]) -> Self {
        Self {
            trees,
            texts,
            when: when.to_vec(),
            inside: Vec::new(),
            needs: Vec::new(),
        }
    }

    /// What a template may need.
    pub(super) fn template(mut self, name: &str) -> Result<Vec<Need>, Error> {
        let Some(tree) = self.trees.get(name).map(Rc::clone) else {
            return Ok(Vec::new());
        };
        let ways = [Document::default()].into();
        let ways = self.tree(&tree, ways)?;
        let place = self.place(&tree, tree.source.text.len());
        for way in ways {
            way.finish(&place, &mut self.needs);
        }
        Ok(self.needs)
    }

    fn place(&self, tree: &Tree, at: usize) -> Place {
        let before = tree.source.text.get(..at).unwrap_or(&tree.source.text);
        Place {
            source: Rc::clone(&tree.source.name),
            line: 1 + before.matches('\n').count(),
            when: self.when.clone(),
        }
    }

    fn tree(&mut self, tree: &Tree, ways: Ways) -> Result<Ways, Error> {
        if self.inside.len() > DEEP || self.inside.contains(&tree.name) {
            return Ok(ways);
        }
        self.inside.push(Rc::clone(&tree.name));
        let ways = self.nodes(tree, &tree.nodes, ways, &mut Variables::new());
        self.inside.pop();
        ways
    }

    fn nodes(
        &mut self,
        tree: &Tree,
        nodes: &[Node],
        mut ways: Ways,
        variables: &mut Variables,
    ) -> Result<Ways, Error> {
        for node in nodes {
            ways = match &node.kind {
                Kind::Text(text) => self.feed(ways, &[text.to_string()].into(), tree, node.at),
                Kind::Action(pipe) if pipe.variables.is_empty() => {
                    self.action(tree, node, pipe, ways, variables)?
                }
                Kind::Action(pipe) => {
                    self.texts.assign(pipe, variables);
                    ways
                }
                Kind::If(branch) => self.branch(tree, branch, "", ways, variables)?,
                Kind::With(branch) => self.branch(tree, branch, "with ", ways, variables)?,
                Kind::Range(branch) => self.branch(tree, branch, "range ", ways, variables)?,
                Kind::Template { name, .. } => match self.trees.get(name.as_str()).map(Rc::clone) {
                    Some(inner) => self.tree(&inner, ways)?,
                    None => ways,
                },
                _ => ways,
            };
            if ways.len() > WAYS {
                return Err(Error::Limit(format!(
                    "there are more than {WAYS} ways through {}",
                    tree.source.name
                )));
            }
        }
        Ok(ways)
    }

    fn feed(&mut self, ways: Ways, texts: &Alternatives, tree: &Tree, at: usize) -> Ways {
        let place = self.place(tree, at);
        let mut found = Ways::new();
        for way in ways {
            for text in texts {
                let mut way = way.clone();
                way.feed(text, place.clone(), &mut self.needs);
                found.insert(way);
            }
        }
        found
    }

    fn branch(
        &mut self,
        tree: &Tree,
        branch: &Branch,
        word: &str,
        ways: Ways,
        variables: &mut Variables,
    ) -> Result<Ways, Error> {
        let condition = branch.pipe.to_string();
        let mut inner = variables.clone();
        if !branch.pipe.variables.is_empty() && word.is_empty() {
            self.texts.assign(&branch.pipe, &mut inner);
        }
        self.when.push(format!("{word}{condition}").into());
        let mut found = self.nodes(tree, &branch.list, ways.clone(), &mut inner)?;
        self.when.pop();
        found.extend(match &branch.otherwise {
            Some(otherwise) => {
                self.when.push(format!("not ({condition})").into());
                let mut inner = variables.clone();
                let ways = self.nodes(tree, otherwise, ways, &mut inner)?;
                self.when.pop();
                // What it sets in variables that were there before stays.
                merge(variables, &inner);
                ways
            }
            None => ways,
        });
        merge(variables, &inner);
        Ok(found)
    }

    fn action(
        &mut self,
        tree: &Tree,
        node: &Node,
        pipe: &Pipe,
        ways: Ways,
        variables: &Variables,
    ) -> Result<Ways, Error> {
        if never_returns(pipe) {
            return Ok(ways);
        }
        if is_indented(pipe) {
            let skipped = ways.into_iter().map(|mut way| {
                way.skip();
                way
            });
            return Ok(skipped.collect());
        }
        let found = self.texts.pipe(pipe, variables);
        if let Some(inner) = included(pipe).and_then(|name| self.trees.get(name.as_str()))
            && found
                .as_ref()
                .is_none_or(|texts| texts.iter().any(|text| text.contains('\n')))
        {
            return self.tree(&Rc::clone(inner), ways);
        }
        let texts = found.unwrap_or_else(|| [unknown(pipe)].into());
        Ok(self.feed(ways, &texts, tree, node.at))
    }
}

fn merge(variables: &mut Variables, inner: &Variables) {
    for (name, known) in variables.iter_mut() {
        if let Some(found) = inner.get(name) {
            known.extend(found.iter().cloned());
        }
    }
}

/// Whether a pipeline only ends the rendering.
fn never_returns(pipe: &Pipe) -> bool {
    let last = pipe
        .commands
        .last()
        .and_then(|command| command.words.first());
    last.is_some_and(|word| matches!(&word.kind, Kind::Identifier(name) if &**name == "fail"))
}

/// Whether a pipeline moves what it gives away from the margin.
fn is_indented(pipe: &Pipe) -> bool {
    let Some(command) = pipe.commands.last() else {
        return false;
    };
    let [function, amount, ..] = command.words.as_slice() else {
        return false;
    };
    let Kind::Identifier(name) = &function.kind else {
        return false;
    };
    let is_margin = matches!(&amount.kind, Kind::Number(number) if number.text == "0");
    matches!(&**name, "indent" | "nindent") && !is_margin
}

/// The template that a pipeline begins with.
fn included(pipe: &Pipe) -> Option<String> {
    let words = pipe.commands.first()?.words.as_slice();
    match (&words.first()?.kind, &words.get(1)?.kind) {
        (
            Kind::Identifier(function),
            Kind::Str {
                value: Value::Str(name),
                ..
            },
        ) if &**function == "include" => Some(String::from_utf8_lossy(name).into_owned()),
        _ => None,
    }
}
