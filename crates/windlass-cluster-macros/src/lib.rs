//! The test attribute of windlass-cluster.
