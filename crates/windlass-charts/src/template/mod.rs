//! Go's templates: text with actions in it.
//!
//! | module | what |
//! | --- | --- |
//! | `lex`, `parse`, `node` | text to tokens, tokens to nodes |
//! | `exec` | executes nodes |
//! | `value`, `object`, `method` | what templates work on |
//! | `print` | values as text |
//! | `env`, `error` | what a rendering shares, and what goes wrong |

pub(crate) mod env;
pub(crate) mod error;
pub(crate) mod exec;
mod lex;
pub(crate) mod method;
pub(crate) mod node;
pub(crate) mod object;
pub(crate) mod parse;
pub(crate) mod print;
pub(crate) mod value;
