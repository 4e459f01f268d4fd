//! Whether an expression makes sense, of what type it is, and the most it can cost.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue};

use super::authorizer::REQUEST_RESOURCE;
use super::cost::{Declared, Entries, LIST_COST, MAP_COST, Node, Size, item_of, weigh};
use super::error::CompileError;
use super::functions::{self, Overload};
use super::position::Places;
use super::types::{Found, Type};
use super::{Environment, NOT_RUN};

/// What checking an expression found out.
pub(super) struct Checked {
    pub(super) result: Type,
    pub(super) max_cost: u64,
    pub(super) used: BTreeSet<String>,
}

/// Macros of Kubernetes that the interpreter underneath does not have.
const MISSING_MACROS: &[&str] = &[
    "transformList",
    "transformMap",
    "transformMapEntry",
    "sortBy",
    "optMap",
    "optFlatMap",
];

/// Checks an expression.
pub(super) fn check(
    source: &str,
    tree: &IdedExpr,
    environment: &Environment,
) -> Result<Checked, CompileError> {
    let mut checker = Checker {
        environment,
        locals: Vec::new(),
        found: Found::default(),
        complaints: Vec::new(),
        used: BTreeSet::new(),
    };
    let node = checker.node(tree);
    let result = checker.found.resolve(&node.ty);
    if checker.complaints.is_empty() {
        return Ok(Checked {
            result,
            max_cost: node.cost,
            used: checker.used,
        });
    }
    let places = Places::of(source);
    let mut complaints: Vec<(usize, String)> = checker
        .complaints
        .into_iter()
        .map(|(id, message)| (places.offset(id), message))
        .collect();
    complaints.sort_by_key(|(offset, _)| *offset);
    let shown: Vec<String> = complaints
        .iter()
        .map(|(offset, message)| places.show(*offset, message))
        .collect();
    Err(CompileError::Check(shown.join("\n")))
}

/// A variable that a loop brings.
struct Local {
    name: String,
    node: Node,
}

struct Checker<'a> {
    environment: &'a Environment,
    locals: Vec<Local>,
    found: Found,
    complaints: Vec<(u64, String)>,
    used: BTreeSet<String>,
}

impl Checker<'_> {
    fn complain(&mut self, id: u64, message: impl Into<String>) -> Node {
        self.complaints.push((id, message.into()));
        Node::new(Type::Error, 0)
    }

    fn node(&mut self, tree: &IdedExpr) -> Node {
        match &tree.expr {
            Expr::Literal(literal) => literal_node(literal),
            Expr::Ident(name) => self.identifier(tree.id, name),
            Expr::Select(select) => {
                if let Some(node) = self.qualified(&select.operand, &select.field) {
                    return node;
                }
                let operand = self.node(&select.operand);
                let node = self.select(tree.id, &operand, &select.field);
                if select.test {
                    return Node::new(Type::Bool, operand.cost);
                }
                node
            }
            Expr::Call(call) => self.call(tree.id, call),
            Expr::List(list) => {
                let ty = self.found.fresh();
                let (mut cost, mut items) = (LIST_COST, None);
                for element in &list.elements {
                    let node = self.node(element);
                    cost = cost.saturating_add(node.cost);
                    items = Some(items.map_or(node.size(), |size: Size| size.or(node.size())));
                    self.expect(element.id, &ty, &node.ty);
                }
                let values = items.unwrap_or(Size::exactly(0));
                Node {
                    size: Some(Size::exactly(list.elements.len() as u64)),
                    entries: Some(Entries {
                        is_list: true,
                        keys: Size::exactly(1),
                        values,
                    }),
                    ..Node::new(Type::List(Box::new(ty)), cost)
                }
            }
            Expr::Map(map) => {
                let (key, value) = (self.found.fresh(), self.found.fresh());
                let mut cost = MAP_COST;
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return self.complain(tree.id, "objects cannot be made here");
                    };
                    for (part, ty) in [(&entry.key, &key), (&entry.value, &value)] {
                        let node = self.node(part);
                        cost = cost.saturating_add(node.cost);
                        self.expect(part.id, ty, &node.ty);
                    }
                }
                Node {
                    size: Some(Size::exactly(map.entries.len() as u64)),
                    ..Node::new(Type::Map(Box::new(key), Box::new(value)), cost)
                }
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(made) => {
                let message = format!(
                    "undeclared reference to '{}' (in container '')",
                    made.type_name
                );
                self.complain(tree.id, message)
            }
            Expr::Unspecified => self.complain(tree.id, "unspecified expression"),
        }
    }

    fn expect(&mut self, id: u64, wanted: &Type, given: &Type) {
        if !self.found.unify(wanted, given) {
            let (wanted, given) = (self.found.resolve(wanted), self.found.resolve(given));
            self.complain(id, format!("expected type '{wanted}' but found '{given}'"));
        }
    }

    fn identifier(&mut self, id: u64, name: &str) -> Node {
        if let Some(local) = self.locals.iter().rev().find(|local| local.name == name) {
            return Node {
                cost: 1,
                ..local.node.clone()
            };
        }
        let known = self.environment.variables.iter();
        if let Some((_, ty, declared)) = known.rev().find(|(known, ..)| known == name) {
            self.used.insert(name.to_owned());
            return Node {
                declared: declared.clone(),
                ..Node::new(ty.clone(), 1)
            };
        }
        if Type::named(name) {
            return Node {
                declared: self.root(),
                ..Node::new(Type::Kind, 1)
            };
        }
        self.complain(
            id,
            format!("undeclared reference to '{name}' (in container '')"),
        )
    }

    /// What is declared of the whole that a rule looks at. Kubernetes estimates a length by the path
    /// from there, and leaves the first step out: whatever has no path, such as the items of a list
    /// that a call gave, or a name that is none of a variable, is as long as the whole.
    fn root(&self) -> Option<Arc<Declared>> {
        let known = self.environment.variables.iter();
        let (.., declared) = known.rev().find(|(name, ..)| name == "self")?;
        declared.clone()
    }

    /// The one variable with a dot in its name.
    fn qualified(&mut self, tree: &IdedExpr, field: &str) -> Option<Node> {
        let (prefix, last) = REQUEST_RESOURCE.split_once('.')?;
        if field != last || !matches!(&tree.expr, Expr::Ident(name) if name == prefix) {
            return None;
        }
        let known = self.environment.variables.iter();
        let (_, ty, _) = known.rev().find(|(known, ..)| known == REQUEST_RESOURCE)?;
        Some(Node::new(ty.clone(), 1))
    }

    fn select(&mut self, id: u64, operand: &Node, field: &str) -> Node {
        let cost = operand.cost.saturating_add(1);
        match self.found.resolve(&operand.ty) {
            Type::Object(object) => match object.fields.get(field) {
                Some(declared) => Node::of(declared, cost),
                None => self.complain(id, format!("undefined field '{field}'")),
            },
            Type::Map(_, value) => Node {
                declared: item_of(operand),
                ..Node::new(*value, cost)
            },
            Type::Optional(inner) => {
                let inner = Node {
                    ty: *inner,
                    ..operand.clone()
                };
                let node = self.select(id, &inner, field);
                let ty = match node.ty {
                    Type::Optional(inner) => Type::Optional(inner),
                    other => Type::Optional(Box::new(other)),
                };
                Node { ty, ..node }
            }
            Type::Dyn | Type::Unknown(_) => Node::new(Type::Dyn, operand.cost),
            Type::Error => Node::new(Type::Error, cost),
            other => self.complain(
                id,
                format!("type '{other}' does not support field selection"),
            ),
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Node {
        let name = call.func_name.as_str();
        if MISSING_MACROS.contains(&name) || is_two_variable_macro(call) {
            return self.complain(id, format!("macro '{name}' {NOT_RUN}"));
        }
        if let Some(target) = &call.target
            && let Expr::Ident(prefix) = &target.expr
            && !self.is_variable(prefix)
            && let Some(full) = functions::in_namespace(prefix, name)
        {
            let arguments = self.nodes(&call.args);
            return self.resolve(id, &full, None, &arguments);
        }
        match (name, call.args.as_slice()) {
            ("_&&_" | "_||_", [left, right]) => {
                let mut cost = 0_u64;
                for part in [left, right] {
                    let node = self.node(part);
                    cost = cost.saturating_add(node.cost);
                    self.expect(part.id, &Type::Bool, &node.ty);
                }
                return Node::new(Type::Bool, cost);
            }
            ("_?._", [operand, field]) => {
                let operand = self.node(operand);
                let Expr::Literal(LiteralValue::String(field)) = &field.expr else {
                    return self.complain(id, "unsupported optional field selection");
                };
                let node = self.select(id, &operand, field.inner());
                let ty = match node.ty {
                    Type::Optional(inner) => Type::Optional(inner),
                    other => Type::Optional(Box::new(other)),
                };
                return Node { ty, ..node };
            }
            _ => {}
        }
        let target = call.target.as_deref().map(|target| self.node(target));
        let arguments = self.nodes(&call.args);
        self.check_literals(call);
        self.resolve(id, name, target.as_ref(), &arguments)
    }

    fn nodes(&mut self, trees: &[IdedExpr]) -> Vec<Node> {
        trees.iter().map(|tree| self.node(tree)).collect()
    }

    fn is_variable(&self, name: &str) -> bool {
        let locals = self.locals.iter().any(|local| local.name == name);
        let known = &self.environment.variables;
        locals || known.iter().any(|(known, ..)| known == name)
    }

    /// Finds the ways to make a call that fit; it is of the type that all of them give.
    fn resolve(&mut self, id: u64, name: &str, target: Option<&Node>, arguments: &[Node]) -> Node {
        let known = functions::find(name);
        if known.is_empty() {
            return self.complain(
                id,
                format!("undeclared reference to '{name}' (in container '')"),
            );
        }
        let before = self.found.clone();
        let mut fitting: Vec<(Overload, Found)> = Vec::new();
        for overload in known {
            self.found = before.clone();
            let overload = overload.instantiate(&mut self.found);
            if self.fits(&overload, target, arguments) {
                fitting.push((overload, self.found.clone()));
            }
        }
        let Some((first, found)) = fitting.first() else {
            self.found = before;
            let shown: Vec<String> = arguments
                .iter()
                .map(|node| self.found.resolve(&node.ty).to_string())
                .collect();
            let shown = match target {
                Some(target) => {
                    format!("{}.({})", self.found.resolve(&target.ty), shown.join(", "))
                }
                None => format!("({})", shown.join(", ")),
            };
            return self.complain(
                id,
                format!("found no matching overload for '{name}' applied to '{shown}'"),
            );
        };
        let mut result = found.resolve(&first.result);
        if fitting.len() == 1 {
            self.found = found.clone();
        } else {
            self.found = before;
            let same = fitting.iter().all(|(overload, found)| {
                found.resolve(&overload.result).to_string() == result.to_string()
            });
            if !same {
                result = Type::Dyn;
            }
        }
        weigh(name, &fitting, result, target, arguments)
    }

    fn fits(&mut self, overload: &Overload, target: Option<&Node>, arguments: &[Node]) -> bool {
        let on = match (&overload.target, target) {
            (None, None) => true,
            (Some(wanted), Some(given)) => self.found.unify(wanted, &given.ty),
            _ => false,
        };
        on && overload.parameters.len() == arguments.len()
            && overload
                .parameters
                .iter()
                .zip(arguments)
                .all(|(wanted, given)| self.found.unify(wanted, &given.ty))
    }

    /// Literals that cannot be what a function takes are found before it is called.
    fn check_literals(&mut self, call: &CallExpr) {
        let literal = |at: usize| match call.args.get(at) {
            Some(IdedExpr {
                id,
                expr: Expr::Literal(LiteralValue::String(text)),
            }) => Some((*id, text.inner().to_owned())),
            _ => None,
        };
        let name = call.func_name.as_str();
        let at = usize::from(name == "matches" && call.target.is_none());
        let Some((id, text)) = literal(at) else {
            return;
        };
        let is_wrong = match (name, call.target.is_some()) {
            ("matches", _) => regex::Regex::new(&text).is_err(),
            ("duration", false) => super::values::duration(&text).is_none(),
            ("timestamp", false) => super::values::timestamp(&text).is_none(),
            _ => false,
        };
        if is_wrong {
            self.complain(id, format!("invalid {name} argument"));
        }
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Node {
        let range = self.node(&comprehension.iter_range);
        let init = self.node(&comprehension.accu_init);
        let mut item = match self.found.resolve(&range.ty) {
            Type::List(item) => Node {
                declared: item_of(&range),
                size: range.entries.map(|entries| entries.values),
                ..Node::new(*item, 1)
            },
            Type::Map(key, _) => Node {
                // The keys of a declared map have no declared length.
                declared: range.declared.as_ref().map(|_| key_declared()),
                size: range.entries.map(|entries| entries.keys),
                ..Node::new(*key, 1)
            },
            Type::Dyn | Type::Unknown(_) => Node::new(Type::Dyn, 1),
            Type::Error => Node::new(Type::Error, 1),
            other => self.complain(
                comprehension.iter_range.id,
                format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                ),
            ),
        };
        item.cost = 1;
        if range.declared.is_none()
            && let Some(root) = self.root()
        {
            item.declared = Some(root);
            item.size = None;
        }
        let accumulated = Node {
            declared: None,
            ..init.clone()
        };
        self.locals.push(Local {
            name: comprehension.accu_var.clone(),
            node: accumulated,
        });
        self.locals.push(Local {
            name: comprehension.iter_var.clone(),
            node: item,
        });
        let condition = self.node(&comprehension.loop_cond);
        let step = self.node(&comprehension.loop_step);
        self.expect(comprehension.loop_step.id, &init.ty, &step.ty);
        self.locals.pop();
        let result = self.node(&comprehension.result);
        self.locals.pop();
        let rounds = range.size();
        let each = condition.cost.saturating_add(step.cost);
        let cost = [init.cost, result.cost, rounds.max.saturating_mul(each)]
            .into_iter()
            .fold(range.cost, u64::saturating_add);
        let mut node = Node::new(self.found.resolve(&result.ty), cost);
        match comprehension.accu_init.expr {
            Expr::List(_) | Expr::Map(_) => {
                node.size = Some(rounds);
                node.entries = step.entries;
            }
            _ => node.size = init.known_size(),
        }
        node
    }
}

fn key_declared() -> Arc<Declared> {
    Arc::new(Declared {
        ty: Type::String,
        max: 0,
        min_bytes: 2,
        item: None,
    })
}

fn is_two_variable_macro(call: &CallExpr) -> bool {
    let name = call.func_name.as_str();
    let is_variable = |tree: &IdedExpr| matches!(tree.expr, Expr::Ident(_));
    call.target.is_some()
        && call.args.len() == 3
        && matches!(name, "all" | "exists" | "exists_one" | "existsOne")
        && call.args.iter().take(2).all(is_variable)
}

fn literal_node(literal: &LiteralValue) -> Node {
    let (ty, size) = match literal {
        LiteralValue::Boolean(_) => (Type::Bool, 1),
        LiteralValue::Bytes(bytes) => (Type::Bytes, bytes.inner().len()),
        LiteralValue::Double(_) => (Type::Double, 1),
        LiteralValue::Int(_) => (Type::Int, 1),
        LiteralValue::Null => (Type::Null, 1),
        LiteralValue::String(text) => (Type::String, text.inner().chars().count()),
        LiteralValue::UInt(_) => (Type::Uint, 1),
    };
    Node {
        size: Some(Size::exactly(size as u64)),
        ..Node::new(ty, 0)
    }
}
