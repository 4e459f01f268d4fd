//! Edits to code that a person may have changed: found by its meaning, not by marks in comments.
//!
//! Each edit is safe to make again: what is already there stays as it is.

use syn::spanned::Spanned;
use syn::{Expr, File, Item, Stmt};

/// Why an edit could not be made; the text says what to add by hand.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it is not valid Rust: {0}")]
    Syntax(String),
    #[error("there is no `fn {function}` that ends in a value to add `{call}` to")]
    NoFunction { function: String, call: String },
}

/// Adds a call to the value that a function ends in: `Operator::new(…)` becomes
/// `Operator::new(…).controller(…)`.
pub(super) fn append_call(text: &str, function: &str, call: &str) -> Result<String, Refusal> {
    let file = parse(text)?;
    let tail = file.items.iter().find_map(|item| match item {
        Item::Fn(found) if found.sig.ident == function => tail_of(&found.block.stmts),
        _ => None,
    });
    let Some(tail) = tail else {
        return Err(Refusal::NoFunction {
            function: function.to_owned(),
            call: call.to_owned(),
        });
    };
    let range = bytes_of(text, tail);
    if bare(&text[range.clone()]).contains(&bare(call)) {
        return Ok(text.to_owned());
    }
    Ok(format!(
        "{}\n        {call}{}",
        &text[..range.end],
        &text[range.end..]
    ))
}

/// Adds an item (`mod x;`, `pub use …;`) after the last one of its sort, or before all others.
pub(super) fn add_item(text: &str, item: &str) -> Result<String, Refusal> {
    let file = parse(text)?;
    let wanted: Item = syn::parse_str(item).map_err(|error| Refusal::Syntax(error.to_string()))?;
    let same = |found: &&Item| bare(&text[bytes_of(text, *found)]).ends_with(&bare(item));
    if file.items.iter().any(|found| same(&found)) {
        return Ok(text.to_owned());
    }
    let sort = std::mem::discriminant(&wanted);
    let alike = |found: &&Item| {
        std::mem::discriminant(*found) == sort
            && !matches!(found, Item::Mod(module) if module.content.is_some())
    };
    if let Some(last) = file.items.iter().rfind(alike) {
        let end = bytes_of(text, last).end;
        return Ok(format!("{}\n{item}{}", &text[..end], &text[end..]));
    }
    // Modules stand first, everything else after them.
    let before = file.items.iter().find(|found| {
        matches!(wanted, Item::Mod(_))
            || !matches!(found, Item::Mod(module) if module.content.is_none())
    });
    match before {
        Some(first) => {
            let start = bytes_of(text, first).start;
            Ok(format!("{}{item}\n\n{}", &text[..start], &text[start..]))
        }
        None => Ok(format!("{}\n\n{item}\n", text.trim_end())),
    }
}

/// Adds code before the tests of a file.
pub(super) fn before_tests(text: &str, addition: &str) -> String {
    match text.find("#[cfg(test)]") {
        Some(index) => format!(
            "{}{}\n\n{}",
            &text[..index],
            addition.trim(),
            &text[index..]
        ),
        None => format!("{text}\n{}\n", addition.trim()),
    }
}

fn parse(text: &str) -> Result<File, Refusal> {
    syn::parse_file(text).map_err(|error| Refusal::Syntax(error.to_string()))
}

/// The expression a block ends in.
fn tail_of(statements: &[Stmt]) -> Option<&Expr> {
    match statements.last()? {
        Stmt::Expr(expression, None) => Some(expression),
        _ => None,
    }
}

/// Where something stands in the text.
pub(super) fn bytes_of(text: &str, node: &impl Spanned) -> std::ops::Range<usize> {
    let span = node.span();
    let offset = |line: usize, column: usize| {
        let start: usize = text
            .split_inclusive('\n')
            .take(line - 1)
            .map(str::len)
            .sum();
        let rest = &text[start..];
        start
            + rest
                .char_indices()
                .nth(column)
                .map_or(rest.len(), |(index, _)| index)
    };
    offset(span.start().line, span.start().column)..offset(span.end().line, span.end().column)
}

/// Text without white space: the same code, however it is laid out.
fn bare(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_whitespace())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "//! Docs — with an odd letter.\n\nuse windlass::Operator;\n\n/// The operator.\npub fn operator() -> Operator {\n    Operator::new(\"x\")\n}\n";

    #[test]
    fn a_call_is_appended_once() {
        let once = append_call(LIB, "operator", ".controller(demo::controller())").unwrap();
        assert!(
            once.contains("Operator::new(\"x\")\n        .controller(demo::controller())\n}"),
            "{once}"
        );
        let twice = append_call(&once, "operator", ".controller(demo::controller())").unwrap();
        assert_eq!(once, twice);
    }

    #[test]
    fn a_call_is_found_however_it_is_laid_out() {
        let text = "fn operator() -> O { O::new().controller(\n demo::controller(),\n ) }";
        let same = append_call(text, "operator", ".controller(demo::controller(),)").unwrap();
        assert_eq!(same, text);
    }

    #[test]
    fn code_that_was_changed_beyond_recognition_is_refused_with_what_to_add() {
        let refusal = append_call("fn other() {}", "operator", ".controller(x)").unwrap_err();
        assert!(refusal.to_string().contains(".controller(x)"));
        let refusal = append_call("fn operator() { run(); }", "operator", ".controller(x)");
        assert!(matches!(refusal, Err(Refusal::NoFunction { .. })));
        assert!(matches!(
            append_call("fn (", "operator", "x"),
            Err(Refusal::Syntax(_))
        ));
    }

    #[test]
    fn modules_stand_together_before_everything_else() {
        let one = add_item(LIB, "pub mod demo;").unwrap();
        assert!(
            one.starts_with("//! Docs — with an odd letter.\n\npub mod demo;\n\nuse windlass"),
            "{one}"
        );
        let two = add_item(&one, "pub mod other;").unwrap();
        assert!(
            two.contains("pub mod demo;\npub mod other;\n\nuse"),
            "{two}"
        );
        assert_eq!(add_item(&two, "pub mod demo;").unwrap(), two);
        let used = add_item(&two, "pub use demo::Demo;").unwrap();
        assert!(
            used.contains("use windlass::Operator;\npub use demo::Demo;\n"),
            "{used}"
        );
    }
}
