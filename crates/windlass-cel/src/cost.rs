//! The most an expression can cost, before it is run.
//!
//! The units are those of Kubernetes: a look at a variable or a field is one, and what walks
//! through a text or a list costs by its length. Lengths come from what the schema declares; what
//! is not declared is as long as a request can be.

use std::sync::Arc;

use super::functions::Overload;
use super::types::{Found, Type};

/// What walking through a text costs per letter.
const TRAVERSAL: f64 = 0.1;
/// What a pattern costs per letter of it.
const PATTERN: f64 = 0.25;
pub(super) const LIST_COST: u64 = 10;
pub(super) const MAP_COST: u64 = 30;

/// A type with what its schema says about its size.
#[derive(Debug)]
pub struct Declared {
    /// The type.
    pub ty: Type,
    /// The most items, entries or letters it can have; 0 for what has no length.
    pub max: u64,
    /// The least bytes it takes in a request.
    pub min_bytes: u64,
    /// What is known of the items or values.
    pub item: Option<Arc<Declared>>,
}

/// From how long to how long something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Size {
    pub(super) const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    pub(super) fn exactly(size: u64) -> Self {
        Self {
            min: size,
            max: size,
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// A share of a size, rounded up.
pub(super) fn share(size: u64, factor: f64) -> u64 {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cost need not be exact, and the cast saturates"
    )]
    let share = (size as f64 * factor).ceil() as u64;
    share
}

/// How long the keys and values of a list or map that an expression makes are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries {
    pub(super) is_list: bool,
    pub(super) keys: Size,
    pub(super) values: Size,
}

/// What is known of a part of an expression.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) ty: Type,
    pub(super) cost: u64,
    /// What the schema says of it, if it is a part of a variable.
    pub(super) declared: Option<Arc<Declared>>,
    pub(super) size: Option<Size>,
    pub(super) entries: Option<Entries>,
}

impl Node {
    pub(super) fn new(ty: Type, cost: u64) -> Self {
        Self {
            ty,
            cost,
            declared: None,
            size: None,
            entries: None,
        }
    }

    pub(super) fn of(declared: &Arc<Declared>, cost: u64) -> Self {
        Self {
            declared: Some(declared.clone()),
            ..Self::new(declared.ty.clone(), cost)
        }
    }

    /// How long it is, as far as is known.
    pub(super) fn known_size(&self) -> Option<Size> {
        if self.size.is_some() {
            return self.size;
        }
        if let Some(declared) = &self.declared {
            let max = declared.max;
            return Some(Size { min: 0, max });
        }
        is_scalar(&self.ty).then(|| Size::exactly(1))
    }

    pub(super) fn size(&self) -> Size {
        self.known_size().unwrap_or(Size::UNKNOWN)
    }

    /// How long its items are, if it is a list.
    fn item_size(&self) -> Option<(Size, bool)> {
        let Type::List(item) = &self.ty else {
            return None;
        };
        let is_text = matches!(**item, Type::String | Type::Bytes);
        let size = match &self.declared {
            Some(declared) => declared.item.as_ref().map(|item| Size {
                min: 0,
                max: item.max,
            }),
            None => None,
        };
        Some((size.unwrap_or(Size::UNKNOWN), is_text))
    }
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Int | Type::Uint | Type::Double | Type::Duration | Type::Timestamp => {
            true
        }
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

/// What a call costs besides its arguments, and how long what it gives is.
fn of_call(
    name: &str,
    target: Option<&Node>,
    arguments: &[Node],
    parameters: &[Type],
) -> (u64, Option<Size>) {
    let size = |at: usize| arguments.get(at).map_or(Size::UNKNOWN, Node::size);
    let own = target.map_or_else(|| size(0), Node::size);
    let walk = |size: Size| share(size.max, TRAVERSAL);
    let is_text = |at: usize| matches!(parameters.get(at), Some(Type::String | Type::Bytes));
    match name {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            match target.and_then(Node::item_size) {
                Some((item, is_text)) => {
                    let each = 1_u64.saturating_add(if is_text { walk(item) } else { 0 });
                    (own.max.saturating_mul(each), None)
                }
                None => (walk(own), None),
            }
        }
        "url" | "jsonpatch.escapeKey" | "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            (walk(own), Some(own))
        }
        "replace" => (
            share(own.max, 2.0 * TRAVERSAL),
            Some(replaced(own, size(0), size(1))),
        ),
        "split" => {
            let pieces = Size {
                min: 0,
                max: own.max,
            };
            (share(own.max, 2.0 * TRAVERSAL), Some(pieces))
        }
        "join" => {
            let item = target
                .and_then(Node::item_size)
                .map_or(Size::exactly(0), |(item, _)| item);
            let mut joined = own.times(item);
            if !arguments.is_empty() {
                let between = Size {
                    min: own.min.saturating_sub(1),
                    max: own.max.saturating_sub(1),
                };
                joined = joined.plus(size(0).times(between));
            }
            (walk(joined), Some(joined))
        }
        "find" | "findAll" | "matches" => {
            let (text, pattern) = if target.is_some() {
                (own, size(0))
            } else {
                (size(0), size(1))
            };
            let text = walk(text.plus(Size::exactly(1)));
            let cost = text.saturating_mul(share(pattern.max, PATTERN));
            let found = Size {
                min: 0,
                max: own.max,
            };
            (cost, (name != "matches").then_some(found))
        }
        "contains" => (walk(own).saturating_mul(walk(size(0))), None),
        "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            (walk(size(0)), None)
        }
        "ip" if target.is_none() => (walk(size(0)), None),
        "ip.isCanonical" => (share(size(0).max, 2.0 * TRAVERSAL), None),
        "containsIP" | "containsCIDR" => {
            let text = if is_text(0) { walk(size(0)) } else { 0 };
            let base = if name == "containsIP" { 4 } else { 7 };
            (text.saturating_add(base), None)
        }
        "validate" => (walk(size(0)).saturating_mul(share(128, PATTERN)), None),
        "format" => (walk(own), None),
        "strings.quote" => {
            let quoted = Size {
                min: own.min.saturating_add(2),
                max: own.max.saturating_mul(2).saturating_add(2),
            };
            (walk(own), Some(quoted))
        }
        "startsWith" | "endsWith" => (walk(size(0)), None),
        "bytes" if is_text(0) => {
            let bytes = Size {
                min: size(0).min,
                max: size(0).max.saturating_mul(4),
            };
            (walk(size(0)), Some(bytes))
        }
        "string" if matches!(parameters.first(), Some(Type::Bytes)) => {
            let text = Size {
                min: size(0).min / 4,
                max: size(0).max,
            };
            (walk(size(0)), Some(text))
        }
        "@in" if matches!(parameters.get(1), Some(Type::List(_))) => (size(1).max, None),
        "_+_" if is_text(0) => {
            let both = size(0).plus(size(1));
            (walk(both), Some(both))
        }
        "_+_" if matches!(parameters.first(), Some(Type::List(_))) => {
            (1, Some(size(0).plus(size(1))))
        }
        "_==_" | "_!=_" => (share(size(0).max.min(size(1).max), TRAVERSAL), None),
        "_<_" | "_<=_" | "_>_" | "_>=_" if is_text(0) => {
            (share(size(0).max.min(size(1).max), TRAVERSAL), None)
        }
        _ => (1, None),
    }
}

/// How long a text is once parts of it have been replaced.
fn replaced(text: Size, what: Size, by: Size) -> Size {
    let (count, kept) = if what.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if by.max <= what.min {
        (0, text.max)
    } else {
        (text.max.div_ceil(what.min), 0)
    };
    let (least, kept_at_least) = if what.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if what.max <= by.min {
        (0, text.min)
    } else {
        (text.min.div_ceil(what.max), 0)
    };
    Size {
        min: least.saturating_mul(by.min).saturating_add(kept_at_least),
        max: count.saturating_mul(by.max).saturating_add(kept),
    }
}

/// What a call costs, and how long what it gives is.
pub(super) fn weigh(
    name: &str,
    fitting: &[(Overload, Found)],
    result: Type,
    target: Option<&Node>,
    arguments: &[Node],
) -> Node {
    let mut node = Node::new(result, 0);
    if let ("_?_:_", [condition, left, right]) = (name, arguments) {
        node.cost = condition.cost.saturating_add(left.cost.max(right.cost));
        node.size = Some(left.size().or(right.size()));
        node.entries = join_entries(left.entries, right.entries);
        return node;
    }
    if name == "dyn"
        && let [inner] = arguments
    {
        node.cost = inner.cost.saturating_add(1);
        node.size = inner.known_size();
        node.entries = inner.entries;
        return node;
    }
    let mut own_cost = 0;
    for (overload, _) in fitting {
        // Sizes are told by what is declared, types by what is called.
        let (cost, size) = of_call(name, target, arguments, &overload.parameters);
        own_cost = own_cost.max(cost);
        node.size = match (node.size, size) {
            (Some(one), Some(other)) => Some(one.or(other)),
            (one, other) => one.or(other),
        };
    }
    if let ("_[_]" | "_[?_]", [container, _]) = (name, arguments) {
        node.declared = item_of(container);
        node.size = container.entries.map(|entries| entries.values);
    }
    if name == "_+_"
        && let [left, right] = arguments
    {
        node.entries = join_entries(left.entries, right.entries);
    }
    let costs = arguments.iter().chain(target).map(|node| node.cost);
    node.cost = costs.fold(own_cost, u64::saturating_add);
    node
}

/// What is declared of the items or values of a part of a variable.
pub(super) fn item_of(node: &Node) -> Option<Arc<Declared>> {
    node.declared
        .as_ref()
        .and_then(|declared| declared.item.clone())
}

fn join_entries(left: Option<Entries>, right: Option<Entries>) -> Option<Entries> {
    let (left, right) = (left?, right?);
    Some(Entries {
        is_list: left.is_list,
        keys: left.keys.or(right.keys),
        values: left.values.or(right.values),
    })
}
