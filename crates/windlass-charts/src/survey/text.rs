//! The texts that an expression may give.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::Said;
use crate::template::exec::Templates;
use crate::template::node::{Command, Kind, Node, Pipe};
use crate::template::value::Value;

/// What stands around an expression whose value is not known.
pub(super) const OPEN: char = '\u{1}';
pub(super) const CLOSE: char = '\u{2}';
/// How many texts are followed, and how long they may be.
const MANY: usize = 64;
const LONG: usize = 400;
/// How deeply templates may include one another.
const DEEP: usize = 40;

pub(super) type Alternatives = BTreeSet<String>;

/// The variables of a template and what they may be.
pub(super) type Variables = BTreeMap<Rc<str>, Alternatives>;

/// An expression as a text whose value is not known.
pub(super) fn unknown(expression: impl std::fmt::Display) -> String {
    let shown: String = expression
        .to_string()
        .chars()
        .filter(|c| !matches!(*c, OPEN | CLOSE | '\n'))
        .collect();
    format!("{OPEN}{shown}{CLOSE}")
}

/// A text as it is reported.
pub(super) fn said(text: &str) -> Said {
    if text.contains(OPEN) {
        let whole = text
            .strip_prefix(OPEN)
            .and_then(|text| text.strip_suffix(CLOSE));
        return Said::Computed(match whole {
            Some(expression) if !expression.contains(OPEN) => expression.to_owned(),
            _ => text.replace(OPEN, "{{ ").replace(CLOSE, " }}"),
        });
    }
    Said::Literal(text.to_owned())
}

/// What the templates of a chart may give.
pub(super) struct Texts<'t> {
    trees: &'t Templates,
    known: RefCell<HashMap<Rc<str>, Option<Alternatives>>>,
    depth: RefCell<usize>,
}

impl<'t> Texts<'t> {
    pub(super) fn new(trees: &'t Templates) -> Self {
        Self {
            trees,
            known: RefCell::default(),
            depth: RefCell::default(),
        }
    }

    /// The texts of a pipeline, unless they are too many or too long.
    pub(super) fn pipe(&self, pipe: &Pipe, variables: &Variables) -> Option<Alternatives> {
        let mut last: Option<Alternatives> = None;
        for command in &pipe.commands {
            last = Some(self.command(command, last, variables)?);
        }
        last.filter(|found| found.len() <= MANY)
    }

    fn command(
        &self,
        command: &Command,
        last: Option<Alternatives>,
        variables: &Variables,
    ) -> Option<Alternatives> {
        let (first, words) = command.words.split_first()?;
        let Kind::Identifier(name) = &first.kind else {
            return if words.is_empty() {
                self.word(first, variables)
            } else {
                Some([unknown(command)].into())
            };
        };
        let mut args = Vec::new();
        for word in words {
            args.push(word);
        }
        let all = |texts: &Self| -> Option<Vec<Alternatives>> {
            let mut found = Vec::new();
            for arg in &args {
                found.push(texts.word(arg, variables)?);
            }
            found.extend(last.clone());
            Some(found)
        };
        match &**name {
            "include" => self.template(args.first()?),
            "print" => concatenated(&all(self)?),
            "printf" => formatted(&all(self)?),
            "default" | "coalesce" => Some(all(self)?.into_iter().flatten().collect()),
            "ternary" => Some(all(self)?.into_iter().take(2).flatten().collect()),
            "quote" | "squote" | "toString" | "trim" | "required" | "trimSuffix" | "trimPrefix"
            | "trimAll" | "nospace" => {
                let last = all(self)?.pop()?;
                Some(last.iter().map(|text| text.trim().to_owned()).collect())
            }
            "lower" => mapped(&all(self)?.pop()?, str::to_lowercase),
            "upper" => mapped(&all(self)?.pop()?, str::to_uppercase),
            "tpl" => {
                let texts = self.word(args.first()?, variables)?;
                let is_plain = |text: &String| !text.contains("{{") && !text.contains(OPEN);
                texts.iter().all(is_plain).then_some(texts)
            }
            _ => None,
        }
    }

    /// The texts of an argument; never more than are followed.
    pub(super) fn word(&self, word: &Node, variables: &Variables) -> Option<Alternatives> {
        Some(match &word.kind {
            Kind::Str { value, .. } => [match value {
                Value::Str(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                _ => return None,
            }]
            .into(),
            Kind::Pipe(pipe) => match self.pipe(pipe, variables) {
                Some(found) => found,
                None => [unknown(pipe)].into(),
            },
            Kind::Variable(names) if names.len() == 1 => variables
                .get(&names[0])
                .cloned()
                .unwrap_or_else(|| [unknown(&word.kind)].into()),
            Kind::Number(number) => [number.text.clone()].into(),
            other => [unknown(other)].into(),
        })
    }

    /// The texts of a template by name.
    fn template(&self, name: &Node) -> Option<Alternatives> {
        let Kind::Str {
            value: Value::Str(name),
            ..
        } = &name.kind
        else {
            return None;
        };
        let name: Rc<str> = Rc::from(String::from_utf8_lossy(name));
        if let Some(known) = self.known.borrow().get(&name) {
            return known.clone();
        }
        let tree = Rc::clone(self.trees.get(&name)?);
        if *self.depth.borrow() > DEEP {
            return None;
        }
        // While it is being followed it gives nothing, should it include itself.
        self.known.borrow_mut().insert(Rc::clone(&name), None);
        *self.depth.borrow_mut() += 1;
        let found = self.nodes(&tree.nodes, [String::new()].into(), &mut Variables::new());
        *self.depth.borrow_mut() -= 1;
        self.known.borrow_mut().insert(name, found.clone());
        found
    }

    fn nodes(
        &self,
        nodes: &[Node],
        mut so_far: Alternatives,
        variables: &mut Variables,
    ) -> Option<Alternatives> {
        for node in nodes {
            so_far = match &node.kind {
                Kind::Text(text) => appended(&so_far, &[text.to_string()].into())?,
                Kind::Action(pipe) if pipe.variables.is_empty() => {
                    let found = self
                        .pipe(pipe, variables)
                        .unwrap_or_else(|| [unknown(pipe)].into());
                    appended(&so_far, &found)?
                }
                Kind::Action(pipe) => {
                    self.assign(pipe, variables);
                    so_far
                }
                Kind::If(branch) | Kind::With(branch) | Kind::Range(branch) => {
                    let mut one = self.nodes(&branch.list, so_far.clone(), variables)?;
                    one.extend(match &branch.otherwise {
                        Some(otherwise) => self.nodes(otherwise, so_far, variables)?,
                        None => so_far,
                    });
                    one
                }
                Kind::Template { name, .. } => {
                    let tree = Rc::clone(self.trees.get(name.as_str())?);
                    if *self.depth.borrow() > DEEP {
                        return None;
                    }
                    *self.depth.borrow_mut() += 1;
                    let found = self.nodes(&tree.nodes, so_far, &mut Variables::new());
                    *self.depth.borrow_mut() -= 1;
                    found?
                }
                _ => so_far,
            };
            if so_far.len() > MANY {
                return None;
            }
        }
        Some(so_far)
    }

    /// What a variable may be from here on, besides what it may have been.
    pub(super) fn assign(&self, pipe: &Pipe, variables: &mut Variables) {
        let [name] = pipe.variables.as_slice() else {
            return;
        };
        let found = self
            .pipe(pipe, variables)
            .unwrap_or_else(|| [unknown(pipe)].into());
        let known = variables.entry(Rc::clone(name)).or_default();
        if !pipe.assigns {
            known.clear();
        }
        known.extend(found);
    }
}

fn mapped(texts: &Alternatives, map: impl Fn(&str) -> String) -> Option<Alternatives> {
    let apply = |text: &String| {
        if text.contains(OPEN) {
            text.clone()
        } else {
            map(text)
        }
    };
    Some(texts.iter().map(apply).collect())
}

fn appended(so_far: &Alternatives, more: &Alternatives) -> Option<Alternatives> {
    if so_far.len() * more.len() > MANY {
        return None;
    }
    let mut found = Alternatives::new();
    for before in so_far {
        for after in more {
            if before.len() + after.len() > LONG {
                return None;
            }
            found.insert(format!("{before}{after}"));
        }
    }
    Some(found)
}

fn concatenated(args: &[Alternatives]) -> Option<Alternatives> {
    args.iter()
        .try_fold([String::new()].into(), |so_far, more| {
            appended(&so_far, more)
        })
}

/// `printf` of texts: only `%s`, `%v` and `%d` are followed.
fn formatted(args: &[Alternatives]) -> Option<Alternatives> {
    let (formats, args) = args.split_first()?;
    let mut found = Alternatives::new();
    for format in formats {
        let mut args = args.iter();
        let mut so_far: Alternatives = [String::new()].into();
        let mut rest = format.as_str();
        while let Some((before, after)) = rest.split_once('%') {
            so_far = appended(&so_far, &[before.to_owned()].into())?;
            let verb = after.chars().next()?;
            so_far = match verb {
                '%' => appended(&so_far, &["%".to_owned()].into())?,
                's' | 'v' | 'd' => appended(&so_far, args.next()?)?,
                _ => return None,
            };
            rest = &after[verb.len_utf8()..];
        }
        found.extend(appended(&so_far, &[rest.to_owned()].into())?);
    }
    Some(found)
}
