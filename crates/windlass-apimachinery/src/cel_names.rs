//! Names of fields as CEL expressions write them.

/// Words that mean something in CEL and so cannot be names of fields.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The name of a field in an expression; some cannot be named there.
pub fn escape(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || "_.-/".contains(c));
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    if !starts || !name.chars().all(fits) {
        return None;
    }
    let escaped = name
        .replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__");
    Some(escaped)
}
