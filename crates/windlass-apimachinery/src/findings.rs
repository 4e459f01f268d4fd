//! What is found in an object, as text for its client: each finding once, and within a bound.
//!
//! How many there are and how long each is is up to the client, so neither may cost more than the
//! object itself did.

use std::collections::HashSet;

use crate::steps::steps;

/// How many unknown or repeated fields of one body are reported, as in Kubernetes.
pub const MOST_STRANGE: usize = 100;
/// How much text is kept.
pub const MOST_TEXT: usize = 1024 * 1024;

/// Texts in the order they were found.
#[derive(Debug)]
pub struct Findings {
    texts: Vec<String>,
    seen: HashSet<String>,
    most: usize,
    length: usize,
}

impl Findings {
    /// At most so many.
    pub fn at_most(most: usize) -> Self {
        Self {
            texts: Vec::new(),
            seen: HashSet::new(),
            most,
            length: 0,
        }
    }

    /// Only the bound of their text counts.
    pub fn bounded() -> Self {
        Self::at_most(usize::MAX)
    }

    /// Whether no more are taken.
    pub fn is_full(&self) -> bool {
        self.texts.len() >= self.most || self.length > MOST_TEXT
    }

    /// Adds one; its text is not even made where no more are taken.
    pub fn add(&mut self, text: impl FnOnce() -> String) {
        if self.is_full() {
            return;
        }
        let text = text();
        steps(text.len());
        self.length += text.len();
        if self.seen.insert(text.clone()) {
            self.texts.push(text);
        }
    }

    /// What was found.
    pub fn into_texts(self) -> Vec<String> {
        self.texts
    }
}
