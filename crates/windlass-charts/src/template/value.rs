//! The values that templates work on, with what of Go's types can be seen from a template.
//!
//! Maps are shared and can be changed, since `set` and `merge` change theirs for everyone; lists and
//! strings never change. A string is bytes: templates read files that are no text.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Zoned;

use super::object::Object;

/// A value.
#[derive(Clone)]
pub(crate) enum Value {
    /// No value at all, which is what a pipeline makes of nil.
    Invalid,
    /// Nil as the value of a variable, field or argument.
    Nil,
    Bool(bool),
    /// Go's `int`.
    Int(i64),
    Int64(i64),
    Byte(u8),
    Float(f64),
    Str(Rc<[u8]>),
    Bytes(Rc<[u8]>),
    List(Rc<List>),
    Map(Rc<Map>),
    Time(Rc<Zoned>),
    /// Nanoseconds.
    Duration(i64),
    Object(Rc<Object>),
}

/// What a list holds, as Go declares it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ListType {
    Any,
    Strings,
    Ints,
    /// A list of lists.
    Lists,
    /// The API versions of a cluster.
    VersionSet,
}

pub(crate) struct List {
    pub(crate) items: Vec<Value>,
    pub(crate) of: ListType,
}

/// What a map holds, as Go declares it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MapType {
    Any,
    /// Values of a chart, which are a map with a name.
    Values,
    Strings,
    /// Files of a chart.
    Files,
}

pub(crate) struct Map {
    /// Shared with the same map under another type.
    pub(crate) entries: Rc<RefCell<BTreeMap<Rc<str>, Value>>>,
    pub(crate) of: MapType,
}

impl Value {
    pub(crate) fn str(text: impl AsRef<[u8]>) -> Self {
        Self::Str(Rc::from(text.as_ref()))
    }

    pub(crate) fn list(items: Vec<Value>) -> Self {
        Self::typed_list(items, ListType::Any)
    }

    pub(crate) fn typed_list(items: Vec<Value>, of: ListType) -> Self {
        Self::List(Rc::new(List { items, of }))
    }

    pub(crate) fn strings<T: AsRef<[u8]>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::typed_list(
            items.into_iter().map(Self::str).collect(),
            ListType::Strings,
        )
    }

    pub(crate) fn map(entries: BTreeMap<Rc<str>, Value>) -> Self {
        Self::typed_map(entries, MapType::Any)
    }

    pub(crate) fn typed_map(entries: BTreeMap<Rc<str>, Value>, of: MapType) -> Self {
        Self::Map(Rc::new(Map {
            entries: Rc::new(RefCell::new(entries)),
            of,
        }))
    }

    pub(crate) fn object(object: Object) -> Self {
        Self::Object(Rc::new(object))
    }

    /// Nil, or no value.
    pub(crate) fn is_nil(&self) -> bool {
        matches!(self, Self::Nil | Self::Invalid)
    }

    /// What an interface holds: a nil one holds no value.
    pub(crate) fn concrete(self) -> Self {
        match self {
            Self::Nil => Self::Invalid,
            other => other,
        }
    }

    /// The type as Go names it.
    pub(crate) fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Invalid => "<nil>",
            Self::Nil => "interface {}",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Int64(_) => "int64",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Str(_) => "string",
            Self::Bytes(_) => "[]uint8",
            Self::List(list) => match list.of {
                ListType::Any => "[]interface {}",
                ListType::Strings => "[]string",
                ListType::Ints => "[]int",
                ListType::Lists => "[][]interface {}",
                ListType::VersionSet => "common.VersionSet",
            },
            Self::Map(map) => match map.of {
                MapType::Any => "map[string]interface {}",
                MapType::Values => "common.Values",
                MapType::Strings => "map[string]string",
                MapType::Files => "engine.files",
            },
            Self::Time(_) => "time.Time",
            Self::Duration(_) => "time.Duration",
            Self::Object(object) => object.type_name(),
        })
    }

    /// The kind of its type as Go names it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Invalid | Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Int64(_) | Self::Duration(_) => "int64",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Str(_) => "string",
            Self::Bytes(_) | Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Time(_) => "struct",
            Self::Object(object) => object.kind(),
        }
    }

    /// Whether an action takes it for true.
    pub(crate) fn truth(&self) -> bool {
        match self {
            Self::Invalid | Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value) | Self::Int64(value) | Self::Duration(value) => *value != 0,
            Self::Byte(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(bytes) | Self::Bytes(bytes) => !bytes.is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Map(map) => !map.entries.borrow().is_empty(),
            Self::Time(_) | Self::Object(_) => true,
        }
    }

    /// The items of a list of any type, or nothing if it is none.
    pub(crate) fn items(&self) -> Option<Cow<'_, [Value]>> {
        match self {
            Self::List(list) => Some(Cow::Borrowed(&list.items)),
            Self::Bytes(bytes) => Some(Cow::Owned(
                bytes.iter().map(|byte| Self::Byte(*byte)).collect(),
            )),
            _ => None,
        }
    }

    /// The bytes of a string.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Str(bytes) | Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// The text of a string, in which what is no text is replaced.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes())
    }

    /// What `reflect.DeepEqual` says.
    pub(crate) fn deep_equal(&self, other: &Self) -> bool {
        deep_equal(self, other, 0)
    }

    /// A copy that shares nothing with it.
    pub(crate) fn deep_copy(&self, depth: usize) -> Option<Self> {
        if depth > MAX_DEPTH {
            return None;
        }
        Some(match self {
            Self::List(list) => Self::typed_list(
                list.items
                    .iter()
                    .map(|item| item.deep_copy(depth + 1))
                    .collect::<Option<_>>()?,
                list.of,
            ),
            Self::Map(map) => Self::typed_map(
                map.entries
                    .borrow()
                    .iter()
                    .map(|(key, value)| Some((Rc::clone(key), value.deep_copy(depth + 1)?)))
                    .collect::<Option<_>>()?,
                map.of,
            ),
            other => other.clone(),
        })
    }
}

/// How deeply values may be nested: a map can be put into itself.
pub(crate) const MAX_DEPTH: usize = 1000;

fn deep_equal(a: &Value, b: &Value, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return true;
    }
    match (a, b) {
        (Value::Nil | Value::Invalid, Value::Nil | Value::Invalid) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b))
        | (Value::Int64(a), Value::Int64(b))
        | (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Byte(a), Value::Byte(b)) => a == b,
        #[expect(clippy::float_cmp, reason = "equal is equal")]
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Str(a), Value::Str(b)) | (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::List(a), Value::List(b)) => {
            a.of == b.of
                && a.items.len() == b.items.len()
                && (a.items.iter().zip(&b.items)).all(|(a, b)| deep_equal(a, b, depth + 1))
        }
        (Value::Map(a), Value::Map(b)) => {
            if Rc::ptr_eq(&a.entries, &b.entries) {
                return true;
            }
            let (left, right) = (a.entries.borrow(), b.entries.borrow());
            a.of == b.of
                && left.len() == right.len()
                && left.iter().all(|(key, value)| {
                    right
                        .get(key)
                        .is_some_and(|other| deep_equal(value, other, depth + 1))
                })
        }
        (Value::Time(a), Value::Time(b)) => a == b,
        (Value::Object(a), Value::Object(b)) => Rc::ptr_eq(a, b) || a.equals(b),
        _ => false,
    }
}

impl Map {
    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        self.entries.borrow().get(key).cloned()
    }

    /// What Go gives for a key that is not there.
    pub(crate) fn zero(&self) -> Value {
        match self.of {
            MapType::Any | MapType::Values => Value::Nil,
            MapType::Strings => Value::str(""),
            MapType::Files => Value::Bytes(Rc::from([])),
        }
    }

    /// The same map under another type.
    pub(crate) fn as_type(&self, of: MapType) -> Value {
        Value::Map(Rc::new(Self {
            entries: Rc::clone(&self.entries),
            of,
        }))
    }

    /// The entries as they are now.
    pub(crate) fn snapshot(&self) -> Vec<(Rc<str>, Value)> {
        self.entries
            .borrow()
            .iter()
            .map(|(key, value)| (Rc::clone(key), value.clone()))
            .collect()
    }
}

/// A value of JSON: integers stay integers, as those of `--set` are.
impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Nil,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(number) => match (number.is_f64(), number.as_i64()) {
                (false, Some(int)) => Self::Int64(int),
                _ => Self::Float(number.as_f64().unwrap_or_default()),
            },
            serde_json::Value::String(text) => Self::str(text),
            serde_json::Value::Array(items) => Self::list(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(entries) => Self::map(
                entries
                    .iter()
                    .map(|(key, value)| (Rc::from(key.as_str()), Self::from(value)))
                    .collect(),
            ),
        }
    }
}
