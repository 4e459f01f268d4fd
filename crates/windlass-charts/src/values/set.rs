//! `--set`: values by paths, as `a.b[0]=c,d=e`.

use serde_json::{Map, Value};

use super::Values;
use crate::number;

const MAX_INDEX: usize = 65_536;
const MAX_NESTED: usize = 30;

/// Sets values that a text says, in which numbers, booleans and null are what they look like.
pub fn set(values: &mut Values, text: &str) -> Result<(), String> {
    parse(values, text, false)
}

/// Sets values that are all strings.
pub fn set_string(values: &mut Values, text: &str) -> Result<(), String> {
    parse(values, text, true)
}

fn parse(values: &mut Values, text: &str, strings: bool) -> Result<(), String> {
    let mut parser = Parser {
        chars: text.chars().collect(),
        at: 0,
        strings,
    };
    while parser.at < parser.chars.len() {
        parser.key(values, 0)?;
    }
    Ok(())
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    strings: bool,
}

fn quote(text: &str) -> String {
    crate::quote::quote(text.as_bytes())
}

fn insert(values: &mut Map<String, Value>, key: String, value: Value) {
    if !key.is_empty() {
        values.insert(key, value);
    }
}

impl Parser {
    /// The text up to one of the characters, which is read as well; a backslash takes one literally.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let mut out = String::new();
        while let Some(c) = self.chars.get(self.at).copied() {
            self.at += 1;
            if stops.contains(&c) {
                return (out, Some(c));
            }
            if c == '\\' {
                if let Some(next) = self.chars.get(self.at) {
                    out.push(*next);
                    self.at += 1;
                }
            } else {
                out.push(c);
            }
        }
        (out, None)
    }

    fn typed(&self, text: String) -> Value {
        if self.strings {
            return Value::String(text);
        }
        match text.to_ascii_lowercase().as_str() {
            "true" => return Value::Bool(true),
            "false" => return Value::Bool(false),
            "null" => return Value::Null,
            "0" => return Value::from(0_i64),
            _ => {}
        }
        if !text.starts_with('0')
            && let Some(int) = number::parse_int(&text, 10)
        {
            return Value::from(int);
        }
        Value::String(text)
    }

    fn key(&mut self, values: &mut Values, depth: usize) -> Result<(), String> {
        let (key, stop) = self.until(&['=', '[', ',', '.']);
        match stop {
            None if key.is_empty() => Ok(()),
            None => Err(format!("key {} has no value", quote(&key))),
            Some('=') => {
                let value = self.value()?;
                insert(values, key, value);
                Ok(())
            }
            Some('[') => {
                let index = self.index()?;
                let mut list = match values.get(&key) {
                    None => Vec::new(),
                    Some(Value::Array(items)) => items.clone(),
                    Some(_) => {
                        return Err(format!(
                            "unable to parse key: {} is not a list",
                            quote(&key)
                        ));
                    }
                };
                self.item(&mut list, index, depth)?;
                insert(values, key, Value::Array(list));
                Ok(())
            }
            Some(',') => Err(format!(
                "key {} has no value (cannot end with ,)",
                quote(&key)
            )),
            Some(_) => {
                if depth + 1 > MAX_NESTED {
                    return Err(format!(
                        "value name nested level is greater than maximum supported nested level of {MAX_NESTED}"
                    ));
                }
                let mut inner = match values.get(&key) {
                    None => Values::new(),
                    Some(Value::Object(inner)) => inner.clone(),
                    Some(_) => {
                        return Err(format!("unable to parse key: {} is not a map", quote(&key)));
                    }
                };
                self.key(&mut inner, depth + 1)?;
                if inner.is_empty() {
                    return Err(format!("key map {} has no value", quote(&key)));
                }
                insert(values, key, Value::Object(inner));
                Ok(())
            }
        }
    }

    /// A value, or a list of them in braces.
    fn value(&mut self) -> Result<Value, String> {
        if self.chars.get(self.at) != Some(&'{') {
            let (text, _) = self.until(&[',']);
            return Ok(self.typed(text));
        }
        self.at += 1;
        let mut items = Vec::new();
        loop {
            let (text, stop) = self.until(&[',', '}']);
            match stop {
                None => return Err("list must terminate with '}'".to_owned()),
                Some('}') => {
                    items.push(self.typed(text));
                    if self.chars.get(self.at) == Some(&',') {
                        self.at += 1;
                    }
                    return Ok(Value::Array(items));
                }
                Some(_) => items.push(self.typed(text)),
            }
        }
    }

    fn index(&mut self) -> Result<usize, String> {
        let (digits, stop) = self.until(&[']']);
        if stop.is_none() {
            return Err("error parsing index: EOF".to_owned());
        }
        match number::parse_int(&digits, 10) {
            Some(index) if index < 0 => Err(format!("negative {index} index not allowed")),
            Some(index) => match usize::try_from(index) {
                Ok(index) if index <= MAX_INDEX => Ok(index),
                _ => Err(format!(
                    "index of {index} is greater than maximum supported index of {MAX_INDEX}"
                )),
            },
            None => Err(format!(
                "error parsing index: strconv.Atoi: parsing {}: invalid syntax",
                quote(&digits)
            )),
        }
    }

    fn item(&mut self, list: &mut Vec<Value>, index: usize, depth: usize) -> Result<(), String> {
        let (text, stop) = self.until(&['[', '.', '=']);
        if !text.is_empty() {
            return Err(format!(
                "unexpected data at end of array index: {}",
                quote(&text)
            ));
        }
        if depth > MAX_NESTED {
            return Err(format!(
                "value name nested level is greater than maximum supported nested level of {MAX_NESTED}"
            ));
        }
        let old = list.get(index).cloned().unwrap_or(Value::Null);
        let value = match stop {
            None => return Err("unexpected end of array index".to_owned()),
            Some('=') => self.value()?,
            Some('[') => {
                let inner_index = self.index()?;
                let mut inner = match old {
                    Value::Array(inner) => inner,
                    _ => Vec::new(),
                };
                self.item(&mut inner, inner_index, depth + 1)?;
                Value::Array(inner)
            }
            Some(_) => {
                let mut inner = match old {
                    Value::Object(inner) => inner,
                    _ => Values::new(),
                };
                self.key(&mut inner, depth + 1)?;
                Value::Object(inner)
            }
        };
        if list.len() <= index {
            list.resize(index + 1, Value::Null);
        }
        list[index] = value;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_set_values() {
        let mut values = Values::new();
        for text in [
            "a.b=1,c=x\\,y",
            "list={a,2,true}",
            "items[1].name=n,items[0]=null",
            "zero=0,padded=007,neg=-3",
        ] {
            set(&mut values, text).unwrap();
        }
        set_string(&mut values, "s=5").unwrap();
        assert_eq!(
            Value::Object(values),
            json!({"a": {"b": 1}, "c": "x,y", "list": ["a", 2, true],
                "items": [null, {"name": "n"}], "zero": 0, "padded": "007", "neg": -3, "s": "5"})
        );
        for bad in ["a", "a.b", "a[x]=1", "a={1", "a[-1]=2"] {
            assert!(set(&mut Values::new(), bad).is_err(), "{bad}");
        }
    }
}
