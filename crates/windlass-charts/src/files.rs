//! `.Files`: the files of a chart that are no templates.

use std::collections::BTreeMap;
use std::rc::Rc;

use base64::Engine as _;

use crate::functions::paths;
use crate::template::error::Error;
use crate::template::value::{MapType, Value};
use crate::yaml::{Dialect, Yaml, emit};

/// A file by its name; one that is missing is empty.
pub(crate) fn get(args: &[Value]) -> Rc<[u8]> {
    match find(args) {
        Some(Value::Bytes(bytes)) => bytes,
        _ => Rc::from([]),
    }
}

fn find(args: &[Value]) -> Option<Value> {
    match (args.first(), args.get(1)) {
        (Some(Value::Map(map)), Some(name)) => map.get(&name.text()),
        _ => None,
    }
}

/// The files whose names match a pattern.
pub(crate) fn glob(args: &[Value]) -> Result<Value, Error> {
    let pattern = args[1].text();
    let matcher = compile(&pattern).or_else(|| compile("**"));
    let Some(matcher) = matcher else {
        return Err(Error::plain("the pattern is too large"));
    };
    let mut found = BTreeMap::new();
    if let Value::Map(map) = &args[0] {
        for (name, bytes) in map.snapshot() {
            if matcher.is_match(&name) {
                found.insert(name, bytes);
            }
        }
    }
    Ok(Value::typed_map(found, MapType::Files))
}

/// A pattern in which `*` stops at a slash and `**` does not; nothing if it is none.
fn compile(pattern: &str) -> Option<regex::Regex> {
    let mut out = String::from("(?s)^");
    let mut chars = pattern.chars().peekable();
    let mut braces = 0;
    while let Some(c) = chars.next() {
        match c {
            '*' if chars.peek() == Some(&'*') => {
                while chars.peek() == Some(&'*') {
                    chars.next();
                }
                out.push_str(".*");
            }
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' => {
                out.push('[');
                if chars.peek() == Some(&'!') {
                    chars.next();
                    out.push('^');
                }
                loop {
                    match chars.next()? {
                        ']' => break,
                        '-' => out.push('-'),
                        '\\' => out.push_str(&regex::escape(&chars.next()?.to_string())),
                        c => {
                            if "[^&~".contains(c) {
                                out.push('\\');
                            }
                            out.push(c);
                        }
                    }
                }
                out.push(']');
            }
            '{' => {
                braces += 1;
                out.push_str("(?:");
            }
            '}' if braces > 0 => {
                braces -= 1;
                out.push(')');
            }
            ',' if braces > 0 => out.push('|'),
            '\\' => out.push_str(&regex::escape(&chars.next()?.to_string())),
            c => out.push_str(&regex::escape(&c.to_string())),
        }
    }
    out.push('$');
    regex::Regex::new(&out).ok().filter(|_| braces == 0)
}

/// The files by the last parts of their names, as text or in base64.
pub(crate) fn as_config(files: &Value, encoded: bool) -> Value {
    let mut entries = BTreeMap::new();
    if let Value::Map(map) = files {
        for (name, file) in map.snapshot() {
            let text = if encoded {
                base64::engine::general_purpose::STANDARD.encode(file.bytes())
            } else {
                file.text().into_owned()
            };
            entries.insert(paths::base(&name), Yaml::Str(text));
        }
    }
    let text = emit(&Yaml::Map(entries), Dialect::Plain);
    Value::str(text.strip_suffix('\n').unwrap_or(&text))
}

/// The lines of a file.
pub(crate) fn lines(args: &[Value]) -> Value {
    let bytes = get(args);
    if bytes.is_empty() {
        return Value::strings(Vec::<&[u8]>::new());
    }
    let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    Value::strings(text.split(|byte| *byte == b'\n'))
}
