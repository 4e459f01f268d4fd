//! JSON as Go writes and reads it.

use std::collections::BTreeMap;
use std::rc::Rc;

use base64::Engine as _;

use crate::layout;
use crate::number;
use crate::template::value::{MAX_DEPTH, MapType, Value};
use crate::yaml::Yaml;

type Encoded = Result<String, String>;

/// How values are written.
struct Style {
    /// Whether `<`, `>` and `&` are escaped.
    html: bool,
    /// The indentation of each level, for text on many lines.
    indent: Option<&'static str>,
}

/// `json.Marshal`.
pub(crate) fn encode(value: &Value, html: bool) -> Encoded {
    let mut out = String::new();
    write(value, &Style { html, indent: None }, 0, &mut out)?;
    Ok(out)
}

/// `json.MarshalIndent` with two spaces.
pub(crate) fn encode_pretty(value: &Value) -> Encoded {
    let mut out = String::new();
    let style = Style {
        html: true,
        indent: Some("  "),
    };
    write(value, &style, 0, &mut out)?;
    Ok(out)
}

fn newline(style: &Style, depth: usize, out: &mut String) {
    if let Some(indent) = style.indent {
        out.push('\n');
        for _ in 0..depth {
            out.push_str(indent);
        }
    }
}

fn write_entries<'a>(
    entries: impl Iterator<Item = (&'a str, Value)>,
    style: &Style,
    depth: usize,
    out: &mut String,
) -> Result<(), String> {
    out.push('{');
    let mut is_empty = true;
    for (key, value) in entries {
        if !is_empty {
            out.push(',');
        }
        is_empty = false;
        newline(style, depth + 1, out);
        write_string(key, style.html, out);
        out.push(':');
        if style.indent.is_some() {
            out.push(' ');
        }
        write(&value, style, depth + 1, out)?;
    }
    if !is_empty {
        newline(style, depth, out);
    }
    out.push('}');
    Ok(())
}

fn write(value: &Value, style: &Style, depth: usize, out: &mut String) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err("json: unsupported value: encountered a cycle".to_owned());
    }
    match value {
        Value::Nil | Value::Invalid => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(int) | Value::Int64(int) | Value::Duration(int) => {
            out.push_str(&int.to_string());
        }
        Value::Byte(byte) => out.push_str(&byte.to_string()),
        Value::Float(float) if float.is_finite() => out.push_str(&number::format_json(*float)),
        Value::Float(float) => {
            return Err(format!(
                "json: unsupported value: {}",
                number::format_g(*float)
            ));
        }
        Value::Str(bytes) => write_string(&String::from_utf8_lossy(bytes), style.html, out),
        Value::Bytes(bytes) => {
            let text = base64::engine::general_purpose::STANDARD.encode(bytes);
            write_string(&text, style.html, out);
        }
        Value::Time(time) => {
            write_string(&layout::format(layout::RFC3339_NANO, time), style.html, out);
        }
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                newline(style, depth + 1, out);
                write(item, style, depth + 1, out)?;
            }
            if !list.items.is_empty() {
                newline(style, depth, out);
            }
            out.push(']');
        }
        Value::Map(map) => {
            let entries = map.snapshot();
            let entries = entries.iter().map(|(key, value)| (&**key, value.clone()));
            write_entries(entries, style, depth, out)?;
        }
        Value::Object(object) => match object.shown() {
            Some(text) => write_string(&text, style.html, out),
            None => {
                let fields = object.fields().iter().map(|field| {
                    let value = object.field(field).unwrap_or(Value::Nil);
                    (object.json_name(field), value)
                });
                write_entries(fields, style, depth, out)?;
            }
        },
    }
    Ok(())
}

fn write_string(text: &str, html: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' if html => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A value as it is written as YAML by way of JSON.
pub(crate) fn to_yaml(value: &Value) -> Result<Yaml, String> {
    yaml(value, true, 0)
}

/// A value as it is written as YAML at once.
pub(crate) fn to_yaml_as_is(value: &Value) -> Result<Yaml, String> {
    yaml(value, false, 0)
}

fn text(text: &str) -> Result<Yaml, String> {
    // What the reader of YAML refuses cannot be written by way of JSON.
    let is_refused =
        |c: char| matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    if text.contains(is_refused) {
        return Err("yaml: control characters are not allowed".to_owned());
    }
    Ok(Yaml::Str(text.to_owned()))
}

fn yaml(value: &Value, by_json: bool, depth: usize) -> Result<Yaml, String> {
    if depth > MAX_DEPTH {
        return Err("json: unsupported value: encountered a cycle".to_owned());
    }
    let deeper = |value: &Value| yaml(value, by_json, depth + 1);
    Ok(match value {
        Value::Nil | Value::Invalid => Yaml::Null,
        Value::Bool(flag) => Yaml::Bool(*flag),
        Value::Int(int) | Value::Int64(int) => Yaml::Int(*int),
        Value::Duration(nanos) if by_json => Yaml::Int(*nanos),
        Value::Duration(nanos) => Yaml::Str(crate::template::print::duration(*nanos)),
        Value::Byte(byte) => Yaml::Int(i64::from(*byte)),
        Value::Float(float) if by_json => {
            if !float.is_finite() {
                return Err(format!(
                    "json: unsupported value: {}",
                    number::format_g(*float)
                ));
            }
            let digits = number::format_json(*float);
            match (
                number::parse_int(&digits, 10),
                number::parse_uint(&digits, 10),
            ) {
                (Some(int), _) => Yaml::Int(int),
                (None, Some(uint)) => Yaml::Uint(uint),
                (None, None) => Yaml::Float(*float),
            }
        }
        Value::Float(float) => Yaml::Float(*float),
        Value::Str(bytes) => {
            let lossy = String::from_utf8_lossy(bytes);
            if by_json {
                text(&lossy)?
            } else {
                Yaml::Str(lossy.into_owned())
            }
        }
        Value::Bytes(bytes) => Yaml::Str(base64::engine::general_purpose::STANDARD.encode(bytes)),
        Value::Time(time) => Yaml::Str(layout::format(layout::RFC3339_NANO, time)),
        Value::List(list) => Yaml::List(list.items.iter().map(deeper).collect::<Result<_, _>>()?),
        Value::Map(map) => Yaml::Map(
            map.snapshot()
                .iter()
                .map(|(key, value)| Ok((key.to_string(), deeper(value)?)))
                .collect::<Result<BTreeMap<_, _>, String>>()?,
        ),
        Value::Object(object) => match object.shown() {
            Some(shown) => Yaml::Str(shown),
            None => Yaml::Map(
                (object.fields().iter())
                    .map(|field| {
                        let value = object.field(field).unwrap_or(Value::Nil);
                        Ok((object.json_name(field).to_owned(), deeper(&value)?))
                    })
                    .collect::<Result<BTreeMap<_, _>, String>>()?,
            ),
        },
    })
}

/// How Go names the kind of a value of JSON.
pub(crate) fn kind(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "bool",
        serde_json::Value::Number(_) => "number",
        serde_json::Value::String(_) => "string",
        serde_json::Value::Array(_) => "array",
        serde_json::Value::Object(_) => "object",
    }
}

/// Reads one value, whose numbers are floats.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(bytes);
    let mut decoder = Decoder {
        chars: text.chars().collect(),
        at: 0,
    };
    let value = decoder.value(0)?;
    decoder.blanks();
    match decoder.peek() {
        None => Ok(value),
        Some(c) => Err(invalid(c, "after top-level value")),
    }
}

fn mismatch(value: &Value, into: &str) -> String {
    let kind = match value {
        Value::Bool(_) => "bool",
        Value::Float(_) => "number",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        _ => "object",
    };
    format!("json: cannot unmarshal {kind} into Go value of type {into}")
}

/// Reads an object; null is an empty one.
pub(crate) fn decode_map(bytes: &[u8]) -> Result<Value, String> {
    match decode(bytes)? {
        Value::Nil => Ok(Value::typed_map(BTreeMap::new(), MapType::Any)),
        map @ Value::Map(_) => Ok(map),
        other => Err(mismatch(&other, "map[string]interface {}")),
    }
}

/// Reads an array; null is an empty one.
pub(crate) fn decode_list(bytes: &[u8]) -> Result<Value, String> {
    match decode(bytes)? {
        Value::Nil => Ok(Value::list(Vec::new())),
        list @ Value::List(_) => Ok(list),
        other => Err(mismatch(&other, "[]interface {}")),
    }
}

fn invalid(c: char, context: &str) -> String {
    let shown = match c {
        '\'' => r"'\''".to_owned(),
        '"' => "'\"'".to_owned(),
        c => crate::quote::quote_char(c, false),
    };
    format!("invalid character {shown} {context}")
}

const END: &str = "unexpected end of JSON input";

struct Decoder {
    chars: Vec<char>,
    at: usize,
}

impl Decoder {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\r' | '\n')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        self.blanks();
        match self.peek().ok_or(END)? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            '"' => self.string().map(Value::str),
            't' => self.literal("true", Value::Bool(true)),
            'f' => self.literal("false", Value::Bool(false)),
            'n' => self.literal("null", Value::Nil),
            '-' | '0'..='9' => self.number(),
            c => Err(invalid(c, "looking for beginning of value")),
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, String> {
        for expected in word.chars() {
            let c = self.peek().ok_or(END)?;
            if c != expected {
                return Err(invalid(
                    c,
                    &format!("in literal {word} (expecting '{expected}')"),
                ));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn digits(&mut self, context: &str) -> Result<(), String> {
        match self.peek() {
            Some(c) if c.is_ascii_digit() => {}
            Some(c) => return Err(invalid(c, context)),
            None => return Err(END.to_owned()),
        }
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, String> {
        let from = self.at;
        if self.peek() == Some('-') {
            self.at += 1;
        }
        if self.peek() == Some('0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some('.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text: String = self.chars[from..self.at].iter().collect();
        number::parse_float(&text).map(Value::Float).ok_or_else(|| {
            format!("json: cannot unmarshal number {text} into Go value of type float64")
        })
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let c = self.peek().ok_or(END)?;
            self.at += 1;
            match c {
                '"' => return Ok(out),
                '\\' => {
                    let escape = self.peek().ok_or(END)?;
                    self.at += 1;
                    match escape {
                        '"' | '\\' | '/' => out.push(escape),
                        'b' => out.push('\u{8}'),
                        'f' => out.push('\u{c}'),
                        'n' => out.push('\n'),
                        'r' => out.push('\r'),
                        't' => out.push('\t'),
                        'u' => out.push(self.unicode()?),
                        other => return Err(invalid(other, "in string escape code")),
                    }
                }
                c if c < ' ' => return Err(invalid(c, "in string literal")),
                c => out.push(c),
            }
        }
    }

    fn hex(&mut self) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..4 {
            let c = self.peek().ok_or(END)?;
            let digit = c
                .to_digit(16)
                .ok_or_else(|| invalid(c, "in \\u hexadecimal character escape"))?;
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn unicode(&mut self) -> Result<char, String> {
        let code = self.hex()?;
        if (0xd800..0xdc00).contains(&code)
            && self.peek() == Some('\\')
            && self.chars.get(self.at + 1) == Some(&'u')
        {
            let before = self.at;
            self.at += 2;
            let low = self.hex()?;
            if (0xdc00..0xe000).contains(&low) {
                let joined = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(joined).unwrap_or('\u{fffd}'));
            }
            self.at = before;
        }
        Ok(char::from_u32(code).unwrap_or('\u{fffd}'))
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(Value::list(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blanks();
            match self.peek().ok_or(END)? {
                ',' => self.at += 1,
                ']' => {
                    self.at += 1;
                    return Ok(Value::list(items));
                }
                c => return Err(invalid(c, "after array element")),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut entries = BTreeMap::new();
        self.blanks();
        if self.peek() == Some('}') {
            self.at += 1;
            return Ok(Value::map(entries));
        }
        loop {
            self.blanks();
            match self.peek().ok_or(END)? {
                '"' => {}
                c => return Err(invalid(c, "looking for beginning of object key string")),
            }
            let key: Rc<str> = Rc::from(self.string()?);
            self.blanks();
            match self.peek().ok_or(END)? {
                ':' => self.at += 1,
                c => return Err(invalid(c, "after object key")),
            }
            entries.insert(key, self.value(depth + 1)?);
            self.blanks();
            match self.peek().ok_or(END)? {
                ',' => self.at += 1,
                '}' => {
                    self.at += 1;
                    return Ok(Value::map(entries));
                }
                c => return Err(invalid(c, "after object key:value pair")),
            }
        }
    }
}
