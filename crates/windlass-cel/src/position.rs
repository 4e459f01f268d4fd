//! From text to tree, and from a node of the tree back to its place in the text.
//!
//! The parser tells places only in its errors. So to find the places of a tree that has none, the
//! same text is parsed once more with an error behind it.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::parser::Parser;

use super::error::CompileError;

/// The tree of an expression.
pub(super) fn parse(source: &str) -> Result<IdedExpr, CompileError> {
    parser().parse(source).map_err(|errors| {
        let mut places: Vec<((isize, isize), String)> = errors
            .errors
            .into_iter()
            .map(|error| (error.pos, error.msg))
            .collect();
        places.sort();
        let shown: Vec<String> = places
            .into_iter()
            .map(|((line, column), message)| {
                let column = usize::try_from(column).unwrap_or(1).max(1);
                let line = usize::try_from(line).unwrap_or(1).max(1);
                show(source, line, column, &message)
            })
            .collect();
        CompileError::Syntax(shown.join("\n"))
    })
}

fn parser() -> Parser {
    Parser::new().enable_optional_syntax(true)
}

/// The places of the nodes of an expression that can be parsed.
pub(super) struct Places {
    source: String,
    offsets: Option<std::sync::Arc<kube_cel::cel::common::ast::SourceInfo>>,
}

impl Places {
    pub(super) fn of(source: &str) -> Self {
        // The bracket takes one number and one letter ahead of everything else.
        let broken = format!("[{source}\n, has(0)]");
        let offsets = parser().parse(&broken).err().and_then(|errors| {
            errors
                .errors
                .into_iter()
                .find_map(|error| error.source_info)
        });
        Self {
            source: source.to_owned(),
            offsets,
        }
    }

    /// Where in the text a node stands.
    pub(super) fn offset(&self, id: u64) -> usize {
        self.offsets
            .as_ref()
            .and_then(|info| info.offset_for(id + 1))
            .map_or(0, |(start, _)| (start as usize).saturating_sub(1))
    }

    /// An error at an offset, as Kubernetes shows it.
    pub(super) fn show(&self, offset: usize, message: &str) -> String {
        let before: String = self.source.chars().take(offset).collect();
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        show(&self.source, line, column, message)
    }
}

fn show(source: &str, line: usize, column: usize, message: &str) -> String {
    let text = source.lines().nth(line - 1).unwrap_or_default();
    let dots = ".".repeat(column - 1);
    format!("ERROR: <input>:{line}:{column}: {message}\n | {text}\n | {dots}^")
}
