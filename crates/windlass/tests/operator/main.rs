//! Operators against a fake API server: what they write, and what they do not.

mod cleanup;
mod combined;
mod decoding;
mod dependents;
mod early_return;
mod fake;
mod lifecycle;
mod reconciler;
