//! What a client is told besides the answer to its request.

use std::sync::{Mutex, PoisonError};

/// Sentences for the client, each said once.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<Vec<String>>);

impl Warnings {
    pub(crate) fn add(&self, said: impl IntoIterator<Item = String>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for sentence in said {
            if !all.contains(&sentence) {
                all.push(sentence);
            }
        }
    }

    /// All of them, in the order they were said.
    pub(crate) fn into_all(self) -> Vec<String> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
