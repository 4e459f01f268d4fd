//! TOML.

use std::rc::Rc;

use crate::number;
use crate::template::print;
use crate::template::value::{MAX_DEPTH, Value};

type Encoded = Result<(), String>;

/// Writes a value: of a map first what is plain, then the tables.
pub(crate) fn encode(value: &Value) -> Result<String, String> {
    let mut encoder = Encoder { out: String::new() };
    encoder.entry(&[], value)?;
    Ok(encoder.out)
}

struct Encoder {
    out: String,
}

fn is_table(value: &Value) -> bool {
    matches!(value, Value::Map(_) | Value::Object(_))
}

/// Whether a list holds tables only; a list may not hold nil.
fn holds_tables(value: &Value, depth: usize) -> Result<bool, String> {
    let Some(items) = value.items() else {
        return Ok(false);
    };
    if depth > MAX_DEPTH {
        return Err("toml: values are nested too deeply".to_owned());
    }
    for item in items.iter() {
        if item.is_nil() {
            return Err("toml: cannot encode array with nil element".to_owned());
        }
        holds_tables(item, depth + 1)?;
    }
    Ok(!items.is_empty() && items.iter().all(is_table))
}

fn entries(value: &Value) -> Vec<(Rc<str>, Value)> {
    match value {
        Value::Map(map) => map.snapshot(),
        Value::Object(object) => (object.fields().iter())
            .map(|field| (Rc::from(*field), object.field(field).unwrap_or(Value::Nil)))
            .collect(),
        _ => Vec::new(),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' || c == '\u{7f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn key_text(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(is_bare) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

impl Encoder {
    fn newline(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn indent(&mut self, path: &[Rc<str>]) {
        self.out
            .push_str(&"  ".repeat(path.len().saturating_sub(1)));
    }

    fn header(&mut self, path: &[Rc<str>], open: &str, close: &str) {
        self.indent(path);
        let name: Vec<String> = path.iter().map(|key| key_text(key)).collect();
        self.out
            .push_str(&format!("{open}{}{close}", name.join(".")));
        self.newline();
    }

    fn entry(&mut self, path: &[Rc<str>], value: &Value) -> Encoded {
        if path.len() > MAX_DEPTH {
            return Err("toml: values are nested too deeply".to_owned());
        }
        match value {
            value if value.is_nil() => {
                return if path.is_empty() {
                    Err("toml: cannot encode a nil value".to_owned())
                } else {
                    Ok(())
                };
            }
            value if is_table(value) => {
                if path.len() == 1 {
                    self.newline();
                }
                if !path.is_empty() {
                    self.header(path, "[", "]");
                }
                return self.table(path, value);
            }
            value if holds_tables(value, 0)? => {
                if path.is_empty() {
                    return Err("toml: top-level values must be Go maps or structs".to_owned());
                }
                for item in value.items().unwrap_or_default().iter() {
                    self.newline();
                    self.header(path, "[[", "]]");
                    self.table(path, item)?;
                }
                return Ok(());
            }
            _ => {}
        }
        if let Some(key) = path.last() {
            self.indent(path);
            self.out.push_str(&format!("{} = ", key_text(key)));
        }
        self.element(value, 0)?;
        if !path.is_empty() {
            self.newline();
        }
        Ok(())
    }

    fn table(&mut self, path: &[Rc<str>], value: &Value) -> Encoded {
        let all = entries(value);
        for tables in [false, true] {
            for (key, item) in &all {
                if (is_table(item) || holds_tables(item, 0)?) == tables && !item.is_nil() {
                    let mut inner = path.to_vec();
                    inner.push(Rc::clone(key));
                    self.entry(&inner, item)?;
                }
            }
        }
        Ok(())
    }

    /// A value on one line.
    fn element(&mut self, value: &Value, depth: usize) -> Encoded {
        if depth > MAX_DEPTH {
            return Err("toml: values are nested too deeply".to_owned());
        }
        match value {
            Value::Str(_) => self.out.push_str(&quoted(&value.text())),
            Value::Bool(flag) => self.out.push_str(if *flag { "true" } else { "false" }),
            Value::Int(int) | Value::Int64(int) => self.out.push_str(&int.to_string()),
            Value::Byte(byte) => self.out.push_str(&byte.to_string()),
            Value::Float(float) => self.out.push_str(&float_text(*float)),
            Value::Duration(nanos) => self.out.push_str(&quoted(&print::duration(*nanos))),
            Value::Time(time) => {
                let text = crate::layout::format(crate::layout::RFC3339_NANO, time);
                self.out.push_str(&text);
            }
            Value::List(_) | Value::Bytes(_) => {
                self.out.push('[');
                for (index, item) in value.items().unwrap_or_default().iter().enumerate() {
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    self.element(item, depth + 1)?;
                }
                self.out.push(']');
            }
            Value::Map(_) | Value::Object(_) => self.inline(value, depth)?,
            Value::Nil | Value::Invalid => {
                return Err("toml: cannot encode array with nil element".to_owned());
            }
        }
        Ok(())
    }

    fn inline(&mut self, value: &Value, depth: usize) -> Encoded {
        let all = entries(value);
        let mut groups = [Vec::new(), Vec::new()];
        for (key, item) in all {
            let is_sub = is_table(&item) || holds_tables(&item, 0)?;
            groups[usize::from(is_sub)].push((key, item));
        }
        let [plain, tables] = groups;
        self.out.push('{');
        for (group, more) in [(&plain, !tables.is_empty()), (&tables, false)] {
            for (index, (key, item)) in group.iter().enumerate() {
                if item.is_nil() {
                    continue;
                }
                self.out.push_str(&format!("{} = ", key_text(key)));
                self.element(item, depth + 1)?;
                if more || index + 1 < group.len() {
                    self.out.push_str(", ");
                }
            }
        }
        self.out.push('}');
        Ok(())
    }
}

fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "nan".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let text = number::format_g(float);
    if text.contains(['e', '.']) {
        text
    } else {
        format!("{text}.0")
    }
}

/// Reads a document.
pub(crate) fn decode(text: &str) -> Result<Value, String> {
    let table: ::toml::Table = text.parse().map_err(|error: ::toml::de::Error| {
        format!(
            "toml: {}",
            error.message().lines().next().unwrap_or_default()
        )
    })?;
    Ok(value(&::toml::Value::Table(table)))
}

fn value(found: &::toml::Value) -> Value {
    match found {
        ::toml::Value::String(text) => Value::str(text),
        ::toml::Value::Integer(int) => Value::Int64(*int),
        ::toml::Value::Float(float) => Value::Float(*float),
        ::toml::Value::Boolean(flag) => Value::Bool(*flag),
        ::toml::Value::Datetime(time) => {
            let text = time.to_string();
            let layouts = [
                "2006-01-02T15:04:05.999999999Z07:00",
                "2006-01-02T15:04:05.999999999",
                "2006-01-02",
                "15:04:05.999999999",
            ];
            let parsed = layouts.iter().find_map(|layout| {
                crate::layout::parse(layout, &text, &jiff::tz::TimeZone::UTC).ok()
            });
            match parsed {
                Some(time) => Value::Time(Rc::new(time)),
                None => Value::str(text),
            }
        }
        ::toml::Value::Array(items) => Value::list(items.iter().map(value).collect()),
        ::toml::Value::Table(table) => Value::map(
            table
                .iter()
                .map(|(key, item)| (Rc::from(key.as_str()), value(item)))
                .collect(),
        ),
    }
}
