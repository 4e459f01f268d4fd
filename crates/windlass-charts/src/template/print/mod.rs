//! Values as text: what an action prints, and the verbs of `printf`.
//!
//! | module | what |
//! | --- | --- |
//! | `formatter` | one value by one verb and its flags |
//! | `printf` | formats with verbs in them |

mod formatter;
mod printf;

use self::formatter::Formatter;
pub(crate) use self::printf::sprintf;
use super::object::Object;
use super::value::Value;

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
