//! One value by one verb and its flags.

use super::{MAX_WIDTH, duration, plain};
use crate::number;
use crate::quote;
use crate::template::value::{MAX_DEPTH, Value};

/// The flags of a verb.
#[derive(Clone, Default)]
pub(super) struct Formatter {
    pub(super) plus: bool,
    /// Whether the fields of structs are named.
    pub(super) names: bool,
    pub(super) minus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
}

impl Formatter {
    pub(super) fn pad(&self, text: &[u8], out: &mut Vec<u8>) {
        let count = quote::chars(text).count();
        let missing = self.width.unwrap_or(0).saturating_sub(count);
        if self.minus {
            out.extend_from_slice(text);
            out.resize(out.len() + missing, b' ');
        } else {
            let fill = if self.zero { b'0' } else { b' ' };
            out.resize(out.len() + missing, fill);
            out.extend_from_slice(text);
        }
    }

    fn bad_verb(value: &Value, verb: char, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("%!{verb}(").as_bytes());
        if value.is_nil() {
            out.extend_from_slice(b"<nil>");
        } else {
            out.extend_from_slice(value.type_name().as_bytes());
            out.push(b'=');
            plain(value, out);
        }
        out.push(b')');
    }

    pub(super) fn value(&self, value: &Value, verb: char, depth: usize, out: &mut Vec<u8>) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::Invalid | Value::Nil if depth > 0 || verb == 'v' => self.pad(b"<nil>", out),
            Value::Invalid | Value::Nil => Self::bad_verb(value, verb, out),
            Value::Bool(flag) => match verb {
                't' | 'v' => self.pad(if *flag { b"true" } else { b"false" }, out),
                _ => Self::bad_verb(value, verb, out),
            },
            Value::Int(int) | Value::Int64(int) => self.int(value, *int, verb, out),
            Value::Byte(byte) => self.int(value, i64::from(*byte), verb, out),
            Value::Float(float) => self.float(value, *float, verb, out),
            Value::Str(bytes) => self.string(value, bytes, verb, out),
            Value::Bytes(bytes) => match verb {
                'v' | 'd' => {
                    let digits: Vec<String> = bytes.iter().map(u8::to_string).collect();
                    self.pad(format!("[{}]", digits.join(" ")).as_bytes(), out);
                }
                _ => self.string(value, bytes, verb, out),
            },
            Value::Duration(nanos) if matches!(verb, 'v' | 's' | 'q' | 'x' | 'X') => {
                let text = duration(*nanos);
                self.string(
                    value,
                    text.as_bytes(),
                    if verb == 'v' { 's' } else { verb },
                    out,
                );
            }
            Value::Duration(nanos) => self.int(value, *nanos, verb, out),
            Value::Time(time) => {
                let text = crate::layout::format(crate::layout::GO, time);
                self.string(
                    value,
                    text.as_bytes(),
                    if verb == 'v' { 's' } else { verb },
                    out,
                );
            }
            Value::List(list) => {
                out.push(b'[');
                for (index, item) in list.items.iter().enumerate() {
                    if index > 0 {
                        out.push(b' ');
                    }
                    self.value(item, verb, depth + 1, out);
                }
                out.push(b']');
            }
            Value::Map(map) => {
                out.extend_from_slice(b"map[");
                for (index, (key, item)) in map.snapshot().iter().enumerate() {
                    if index > 0 {
                        out.push(b' ');
                    }
                    self.value(&Value::str(key.as_bytes()), verb, depth + 1, out);
                    out.push(b':');
                    self.value(item, verb, depth + 1, out);
                }
                out.push(b']');
            }
            Value::Object(object) => {
                if let Some(text) = object.shown() {
                    let verb = if verb == 'v' { 's' } else { verb };
                    return self.string(value, text.as_bytes(), verb, out);
                }
                out.extend_from_slice(if object.kind() == "ptr" { b"&{" } else { b"{" });
                for (index, field) in object.fields().iter().enumerate() {
                    if index > 0 {
                        out.push(b' ');
                    }
                    let item = object.field(field).unwrap_or(Value::Nil);
                    if self.names {
                        out.extend_from_slice(format!("{field}:").as_bytes());
                    }
                    self.value(&item, verb, depth + 1, out);
                }
                out.push(b'}');
            }
        }
    }

    fn int(&self, value: &Value, int: i64, verb: char, out: &mut Vec<u8>) {
        let magnitude = int.unsigned_abs();
        let digits = match verb {
            'v' | 'd' => magnitude.to_string(),
            'b' => format!("{magnitude:b}"),
            'o' | 'O' => format!("{magnitude:o}"),
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            'c' | 'q' => {
                let c = u32::try_from(int)
                    .ok()
                    .and_then(char::from_u32)
                    .unwrap_or('\u{fffd}');
                let text = if verb == 'c' {
                    c.to_string()
                } else {
                    quote::quote_char(c, self.plus)
                };
                return self.pad(text.as_bytes(), out);
            }
            'U' => {
                let mut text = format!("U+{magnitude:04X}");
                if let Some(c) = u32::try_from(int).ok().and_then(char::from_u32)
                    && self.sharp
                    && quote::is_print(c)
                {
                    text.push_str(&format!(" '{c}'"));
                }
                return self.pad(text.as_bytes(), out);
            }
            _ => return Self::bad_verb(value, verb, out),
        };
        let sign = self.sign(int < 0);
        let prefix = match verb {
            'b' if self.sharp => "0b",
            'o' if self.sharp && !digits.starts_with('0') => "0",
            'O' => "0o",
            'x' if self.sharp => "0x",
            'X' if self.sharp => "0X",
            _ => "",
        };
        let least = match self.precision {
            Some(precision) => precision.min(MAX_WIDTH),
            None if self.zero && !self.minus => self
                .width
                .unwrap_or(0)
                .saturating_sub(sign.len())
                .min(MAX_WIDTH),
            None => 0,
        };
        let digits = if self.precision == Some(0) && int == 0 {
            String::new()
        } else {
            format!("{}{digits}", "0".repeat(least.saturating_sub(digits.len())))
        };
        let unzeroed = Self {
            zero: false,
            ..self.clone()
        };
        unzeroed.pad(format!("{sign}{prefix}{digits}").as_bytes(), out);
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        }
    }

    fn float(&self, value: &Value, float: f64, verb: char, out: &mut Vec<u8>) {
        let precision = self.precision.map(|precision| precision.min(MAX_WIDTH));
        let text = match verb {
            'v' | 'g' | 'G' => match precision {
                Some(precision) => number::format_g_precision(float, precision),
                None => number::format_g(float),
            },
            'f' | 'F' => number::format_f(float, Some(precision.unwrap_or(6))),
            'e' | 'E' => number::format_e(float, Some(precision.unwrap_or(6))),
            _ => return Self::bad_verb(value, verb, out),
        };
        let text = if verb.is_ascii_uppercase() && float.is_finite() {
            text.to_uppercase()
        } else {
            text
        };
        let (negative, magnitude) = match text.strip_prefix('-') {
            Some(magnitude) => (true, magnitude),
            None => (false, text.trim_start_matches('+')),
        };
        let sign = if float.is_infinite() && !negative {
            "+"
        } else {
            self.sign(negative)
        };
        if self.zero && !self.minus && float.is_finite() {
            let width = self.width.unwrap_or(0).saturating_sub(sign.len());
            let zeros = "0".repeat(width.saturating_sub(magnitude.len()));
            out.extend_from_slice(format!("{sign}{zeros}{magnitude}").as_bytes());
        } else {
            let unzeroed = Self {
                zero: false,
                ..self.clone()
            };
            unzeroed.pad(format!("{sign}{magnitude}").as_bytes(), out);
        }
    }

    fn string(&self, value: &Value, bytes: &[u8], verb: char, out: &mut Vec<u8>) {
        let cut = |bytes: &[u8]| match self.precision {
            Some(precision) => {
                quote::chars(bytes)
                    .take(precision)
                    .fold(Vec::new(), |mut kept, c| {
                        match c {
                            Ok(c) => kept.extend_from_slice(c.to_string().as_bytes()),
                            Err(byte) => kept.push(byte),
                        }
                        kept
                    })
            }
            None => bytes.to_vec(),
        };
        match verb {
            'v' | 's' => self.pad(&cut(bytes), out),
            'q' => {
                let bytes = cut(bytes);
                let is_raw = self.sharp
                    && std::str::from_utf8(&bytes)
                        .is_ok_and(|text| !text.contains(['`', '\n', '\u{feff}', '\r']));
                let quoted = if is_raw {
                    format!("`{}`", String::from_utf8_lossy(&bytes))
                } else if self.plus {
                    quote::quote_ascii(&bytes)
                } else {
                    quote::quote(&bytes)
                };
                self.pad(quoted.as_bytes(), out);
            }
            'x' | 'X' => {
                let bytes = &bytes[..self.precision.unwrap_or(bytes.len()).min(bytes.len())];
                let digits = |byte: &u8| {
                    if verb == 'x' {
                        format!("{byte:02x}")
                    } else {
                        format!("{byte:02X}")
                    }
                };
                let prefix = if self.sharp && !bytes.is_empty() {
                    format!("0{verb}")
                } else {
                    String::new()
                };
                let parts: Vec<String> = bytes.iter().map(digits).collect();
                let between = if self.space {
                    format!(" {prefix}")
                } else {
                    String::new()
                };
                self.pad(format!("{prefix}{}", parts.join(&between)).as_bytes(), out);
            }
            _ => Self::bad_verb(value, verb, out),
        }
    }
}
