//! What concerns the server as a whole, seen from within.

mod durable_reads;
mod request_cost;
