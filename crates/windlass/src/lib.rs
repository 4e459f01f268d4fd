//! The framework an operator author imports.
