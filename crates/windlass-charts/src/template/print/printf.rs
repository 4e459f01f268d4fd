//! Formats with verbs in them.

use super::formatter::Formatter;
use super::{MAX_WIDTH, plain, shown};
use crate::quote;
use crate::template::value::{MAX_DEPTH, Value};

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
