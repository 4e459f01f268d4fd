//! Values as text: what an action prints, and the verbs of `printf`.

use super::object::Object;
use super::value::{MAX_DEPTH, Value};
use crate::number;
use crate::quote;

/// The widest that something may be padded to.
const MAX_WIDTH: usize = 1_000_000;

/// What an action prints of a value.
pub(crate) fn action(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Invalid | Value::Nil => out.extend_from_slice(b"<no value>"),
        // A version of Kubernetes prints itself where its address can be taken.
        Value::Object(object) if let Object::KubeVersion(kube) = &**object => {
            out.extend_from_slice(kube.normalized.as_bytes());
        }
        other => plain(other, out),
    }
}

/// `%v`.
pub(crate) fn plain(value: &Value, out: &mut Vec<u8>) {
    Formatter::default().value(value, 'v', 0, out);
}

/// `%v` as text.
pub(crate) fn shown(value: &Value) -> String {
    let mut out = Vec::new();
    plain(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// `fmt.Sprint`: spaces between what is no string.
pub(crate) fn sprint(args: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut after_string = true;
    for (index, arg) in args.iter().enumerate() {
        let is_string = matches!(arg, Value::Str(_));
        if index > 0 && !is_string && !after_string {
            out.push(b' ');
        }
        plain(arg, &mut out);
        after_string = is_string;
    }
    out
}

/// `fmt.Sprintln`.
pub(crate) fn sprintln(args: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        plain(arg, &mut out);
    }
    out.push(b'\n');
    out
}

/// The flags of a verb.
#[derive(Clone, Default)]
struct Formatter {
    plus: bool,
    /// Whether the fields of structs are named.
    names: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// A duration as Go prints it.
pub(crate) fn duration(nanos: i64) -> String {
    const UNITS: [(u64, &str); 2] = [(1_000, "µs"), (1_000_000, "ms")];
    if nanos == 0 {
        return "0s".to_owned();
    }
    let sign = if nanos < 0 { "-" } else { "" };
    let total = nanos.unsigned_abs();
    let fraction = |value: u64, unit: u64| {
        let digits = format!(
            "{:0width$}",
            value % unit,
            width = unit.to_string().len() - 1
        );
        let digits = digits.trim_end_matches('0').to_owned();
        if digits.is_empty() || unit == 1 {
            (value / unit).to_string()
        } else {
            format!("{}.{digits}", value / unit)
        }
    };
    if total < 1_000 {
        return format!("{sign}{total}ns");
    }
    if total < 1_000_000_000 {
        let (unit, name) = if total < 1_000_000 {
            UNITS[0]
        } else {
            UNITS[1]
        };
        return format!("{sign}{}{name}", fraction(total, unit));
    }
    let minutes = total / 60_000_000_000;
    let seconds = fraction(total % 60_000_000_000, 1_000_000_000);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

impl Formatter {
    fn pad(&self, text: &[u8], out: &mut Vec<u8>) {
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

    fn value(&self, value: &Value, verb: char, depth: usize, out: &mut Vec<u8>) {
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

/// The arguments of `printf`, and which comes next.
struct Args<'a> {
    all: &'a [Value],
    next: usize,
    /// Whether a verb chose its argument, so that it does not matter which were used.
    reordered: bool,
    good_index: bool,
}

impl Args<'_> {
    /// Reads `[n]`, which says which argument comes next.
    fn index(&mut self, format: &[char], at: &mut usize) -> bool {
        if format.get(*at) != Some(&'[') {
            return false;
        }
        self.reordered = true;
        let Some(length) = format[*at..].iter().position(|c| *c == ']') else {
            self.good_index = false;
            *at += 1;
            return false;
        };
        let digits: String = format[*at + 1..*at + length].iter().collect();
        *at += length + 1;
        match digits.parse::<usize>() {
            Ok(index) if (1..=self.all.len()).contains(&index) => {
                self.next = index - 1;
                true
            }
            _ => {
                self.good_index = false;
                true
            }
        }
    }

    /// The integer that `*` stands for.
    fn star(&mut self) -> Option<i64> {
        let found = match self.all.get(self.next)? {
            Value::Int(int) | Value::Int64(int) => Some(*int),
            Value::Byte(byte) => Some(i64::from(*byte)),
            _ => None,
        };
        self.next += 1;
        found.filter(|int| int.unsigned_abs() <= MAX_WIDTH as u64)
    }
}

fn digits(format: &[char], at: &mut usize) -> Option<usize> {
    let from = *at;
    let mut number = 0_usize;
    while let Some(digit) = format.get(*at).and_then(|c| c.to_digit(10)) {
        number = number.saturating_mul(10).saturating_add(digit as usize);
        *at += 1;
    }
    (*at > from).then_some(number)
}

/// `fmt.Sprintf`.
pub(crate) fn sprintf(format: &[u8], all: &[Value]) -> Vec<u8> {
    let format: Vec<char> = String::from_utf8_lossy(format).chars().collect();
    let mut out = Vec::new();
    let mut args = Args {
        all,
        next: 0,
        reordered: false,
        good_index: true,
    };
    let mut at = 0;
    while at < format.len() {
        let c = format[at];
        at += 1;
        if c == '%' {
            verb(&format, &mut at, &mut args, &mut out);
        } else {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    if !args.reordered && args.next < all.len() {
        out.extend_from_slice(b"%!(EXTRA ");
        for (index, arg) in all[args.next..].iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b", ");
            }
            if arg.is_nil() {
                out.extend_from_slice(b"<nil>");
            } else {
                out.extend_from_slice(arg.type_name().as_bytes());
                out.push(b'=');
                plain(arg, &mut out);
            }
        }
        out.push(b')');
    }
    out
}

fn verb(format: &[char], at: &mut usize, args: &mut Args<'_>, out: &mut Vec<u8>) {
    let mut flags = Formatter::default();
    args.good_index = true;
    while let Some(flag) = format.get(*at) {
        match flag {
            '#' => flags.sharp = true,
            '0' => flags.zero = true,
            '+' => flags.plus = true,
            '-' => flags.minus = true,
            ' ' => flags.space = true,
            _ => break,
        }
        *at += 1;
    }
    let mut after_index = args.index(format, at);
    if format.get(*at) == Some(&'*') {
        *at += 1;
        match args.star() {
            Some(width) => {
                flags.minus |= width < 0;
                flags.width = usize::try_from(width.unsigned_abs()).ok();
            }
            None => out.extend_from_slice(b"%!(BADWIDTH)"),
        }
        after_index = false;
    } else {
        flags.width = digits(format, at);
        if flags.width.is_some_and(|width| width > MAX_WIDTH) {
            flags.width = None;
            out.extend_from_slice(b"%!(BADWIDTH)");
        }
        if after_index && flags.width.is_some() {
            args.good_index = false;
        }
    }
    flags.zero &= !flags.minus;
    if format.get(*at) == Some(&'.') {
        *at += 1;
        if after_index {
            args.good_index = false;
        }
        after_index = args.index(format, at);
        if format.get(*at) == Some(&'*') {
            *at += 1;
            match args.star() {
                Some(precision) => flags.precision = usize::try_from(precision).ok(),
                None => out.extend_from_slice(b"%!(BADPREC)"),
            }
            after_index = false;
        } else {
            flags.precision = Some(digits(format, at).unwrap_or(0).min(MAX_WIDTH));
        }
    }
    if !after_index {
        args.index(format, at);
    }
    let Some(&verb) = format.get(*at) else {
        out.extend_from_slice(b"%!(NOVERB)");
        return;
    };
    *at += 1;
    if verb == '%' {
        out.push(b'%');
    } else if !args.good_index {
        out.extend_from_slice(format!("%!{verb}(BADINDEX)").as_bytes());
    } else if let Some(arg) = args.all.get(args.next) {
        args.next += 1;
        if verb == 'v' {
            flags.names = std::mem::take(&mut flags.plus);
        }
        if verb == 'T' {
            flags.pad(arg.clone().concrete().type_name().as_bytes(), out);
        } else if verb == 'v' && flags.sharp {
            out.extend_from_slice(go_syntax(arg, 0).as_bytes());
        } else {
            flags.value(arg, verb, 0, out);
        }
    } else {
        out.extend_from_slice(format!("%!{verb}(MISSING)").as_bytes());
    }
}

/// `%#v`: the value as Go source.
fn go_syntax(value: &Value, depth: usize) -> String {
    let name = value.type_name();
    match value {
        _ if depth > MAX_DEPTH => String::new(),
        Value::Nil | Value::Invalid if depth == 0 => "<nil>".to_owned(),
        Value::Nil | Value::Invalid => "interface {}(nil)".to_owned(),
        Value::Str(bytes) => quote::quote(bytes),
        Value::Byte(byte) => format!("{byte:#x}"),
        Value::List(list) => {
            let items: Vec<String> = list
                .items
                .iter()
                .map(|item| go_syntax(item, depth + 1))
                .collect();
            format!("{name}{{{}}}", items.join(", "))
        }
        Value::Bytes(bytes) => {
            let items: Vec<String> = bytes.iter().map(|byte| format!("{byte:#x}")).collect();
            format!("[]byte{{{}}}", items.join(", "))
        }
        Value::Map(map) => {
            let entries: Vec<String> = map
                .snapshot()
                .iter()
                .map(|(key, value)| {
                    format!(
                        "{}:{}",
                        quote::quote(key.as_bytes()),
                        go_syntax(value, depth + 1)
                    )
                })
                .collect();
            format!("{name}{{{}}}", entries.join(", "))
        }
        Value::Duration(nanos) => nanos.to_string(),
        other => shown(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_print_as_go_prints() {
        for (format, args, text) in [
            (
                "%d-%05d|%-4d|%x",
                vec![
                    Value::Int(7),
                    Value::Int(42),
                    Value::Int(3),
                    Value::Int(255),
                ],
                "7-00042|3   |ff",
            ),
            (
                "%s %q %v",
                vec![Value::str("a"), Value::str("b\n"), Value::Nil],
                "a \"b\\n\" <nil>",
            ),
            (
                "%.2f %6.1f|%e %g",
                vec![
                    Value::Float(1.005),
                    Value::Float(2.25),
                    Value::Float(1e6),
                    Value::Float(1e6),
                ],
                "1.00    2.2|1.000000e+06 1e+06",
            ),
            (
                "%d %s",
                vec![Value::Float(1.5), Value::Int(1)],
                "%!d(float64=1.5) %!s(int=1)",
            ),
            ("%d", vec![], "%!d(MISSING)"),
            ("x", vec![Value::Int(1)], "x%!(EXTRA int=1)"),
            ("%[2]s %[1]s", vec![Value::str("a"), Value::str("b")], "b a"),
            (
                "%v %T",
                vec![Value::strings(["a", "b"]), Value::list(vec![])],
                "[a b] []interface {}",
            ),
            (
                "%5t|%-6s|%%|%c|%U",
                vec![
                    Value::Bool(true),
                    Value::str("é"),
                    Value::Int(65),
                    Value::Int(0x1f600),
                ],
                " true|é     |%|A|U+1F600",
            ),
        ] {
            assert_eq!(
                String::from_utf8_lossy(&sprintf(format.as_bytes(), &args)),
                text
            );
        }
        assert_eq!(duration(3_661_500_000_000), "1h1m1.5s");
        assert_eq!(duration(1_500), "1.5µs");
    }
}
