//! Webhooks of operators: defaults, judgement, conversion, and certificates that renew themselves.

mod admission;
mod certificate;
mod conversion;
mod demo;
mod observability;
mod tls;
