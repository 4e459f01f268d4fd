//! What a client is warned of besides the answer to its request, in `Warning` headers.
//!
//! Headers are not for long texts, so there is a limit, which is Kubernetes': once all warnings
//! together are longer than 4096 characters, each is cut at 256, and when those fill the limit no
//! more are taken.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// How many characters of warnings an answer has.
const MOST_TEXT: usize = 4 * 1024;
/// How many each has once they do not fit.
const CUT_TEXT: usize = 256;

/// Sentences for the client, each once.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    seen: HashSet<String>,
    texts: Vec<String>,
    /// How many characters the texts have.
    length: usize,
    cuts: bool,
}

impl Warnings {
    pub(crate) fn add(&self, said: impl IntoIterator<Item = String>) {
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for sentence in said {
            if recorded.is_full() {
                return;
            }
            recorded.add(sentence);
        }
    }

    /// All of them, in the order they were added.
    pub(crate) fn into_all(self) -> Vec<String> {
        let recorded = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        recorded.texts
    }
}

impl Recorded {
    fn is_full(&self) -> bool {
        self.cuts && self.length >= MOST_TEXT
    }

    fn add(&mut self, text: String) {
        if text.is_empty() || !self.seen.insert(text.clone()) {
            return;
        }
        let length = text.chars().count();
        if !self.cuts && self.length + length > MOST_TEXT {
            self.cuts = true;
            self.texts = self.texts.iter().map(|text| cut(text)).collect();
            self.length = self.texts.iter().map(|text| text.chars().count()).sum();
        }
        let text = if self.cuts { cut(&text) } else { text };
        self.length += text.chars().count();
        self.texts.push(text);
    }
}

fn cut(text: &str) -> String {
    text.chars().take(CUT_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: impl IntoIterator<Item = String>) -> Vec<String> {
        let warnings = Warnings::default();
        warnings.add(texts);
        warnings.into_all()
    }

    #[test]
    fn warnings_that_fit_are_kept_whole_and_each_once() {
        let long = "x".repeat(4000);
        assert_eq!(
            all([long.clone(), "a".into(), long.clone()]),
            [long, "a".into()]
        );
    }

    #[test]
    fn warnings_that_do_not_fit_are_cut_and_then_left_out() {
        let many = all((0..250_000).map(|number| format!("unknown field \"field{number}\"")));
        let length: usize = many.iter().map(|text| text.chars().count()).sum();
        assert!((4096..4096 + 256).contains(&length), "{length} characters");
        assert_eq!(many[0], "unknown field \"field0\"");
        let cut = all(["x".repeat(4000), "y".repeat(4000)]);
        assert_eq!(cut, ["x".repeat(256), "y".repeat(256)]);
    }
}
