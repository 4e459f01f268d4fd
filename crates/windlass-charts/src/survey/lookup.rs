//! Calls of `lookup`.

use std::rc::Rc;

use super::text::{Texts, Variables, said};
use super::{Need, Purpose, Said};
use crate::template::exec::Templates;
use crate::template::node::{Command, Kind, Node, Pipe, Tree};

/// Adds what the templates look up.
pub(super) fn lookups(trees: &Templates, texts: &Texts<'_>, needs: &mut Vec<Need>) {
    for tree in trees.values() {
        let mut finder = Finder {
            tree,
            texts,
            when: Vec::new(),
            needs,
        };
        finder.nodes(&tree.nodes);
    }
}

struct Finder<'a> {
    tree: &'a Rc<Tree>,
    texts: &'a Texts<'a>,
    when: Vec<String>,
    needs: &'a mut Vec<Need>,
}

impl Finder<'_> {
    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match &node.kind {
                Kind::Action(pipe)
                | Kind::Pipe(pipe)
                | Kind::Template {
                    pipe: Some(pipe), ..
                } => self.pipe(pipe),
                Kind::If(branch) | Kind::With(branch) | Kind::Range(branch) => {
                    self.pipe(&branch.pipe);
                    self.when.push(branch.pipe.to_string());
                    self.nodes(&branch.list);
                    self.when.pop();
                    if let Some(otherwise) = &branch.otherwise {
                        self.when.push(format!("not ({})", branch.pipe));
                        self.nodes(otherwise);
                        self.when.pop();
                    }
                }
                Kind::Chain(inner, _) => self.nodes(std::slice::from_ref(inner)),
                _ => {}
            }
        }
    }

    fn pipe(&mut self, pipe: &Pipe) {
        for command in &pipe.commands {
            self.command(command);
            self.nodes(&command.words);
        }
    }

    fn command(&mut self, command: &Command) {
        let [function, api_version, kind, ..] = command.words.as_slice() else {
            return;
        };
        if !matches!(&function.kind, Kind::Identifier(name) if &**name == "lookup") {
            return;
        }
        let texts = |word: &Node| -> Vec<Said> {
            let found = self.texts.word(word, &Variables::new());
            found
                .into_iter()
                .flatten()
                .map(|text| said(&text))
                .collect()
        };
        let before = self.tree.source.text.get(..command.at).unwrap_or_default();
        for api_version in texts(api_version) {
            for kind in texts(kind) {
                self.needs.push(Need {
                    purpose: Purpose::Lookup,
                    api_version: api_version.clone(),
                    kind,
                    source: self.tree.source.name.to_string(),
                    line: 1 + before.matches('\n').count(),
                    when: self.when.clone(),
                });
            }
        }
    }
}
