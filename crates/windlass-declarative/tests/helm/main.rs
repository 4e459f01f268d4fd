//! Operators of Helm charts, in a cluster in this process.

mod releases;
mod taken_over;
mod web;
