//! API server, workload controllers and node put together: a cluster on this machine, or in a test.
