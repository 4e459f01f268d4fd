//! Runs Memcached custom resources as memcached Deployments.
