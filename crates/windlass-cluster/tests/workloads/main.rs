//! What the workload controllers do, one test per behaviour.
//!
//! Each scenario is plain requests and waits, and so can be played on two stages: on a
//! `TestCluster`, as every `cargo test` does, and on the real kube-apiserver, as
//! `make real-workloads` does: with our controllers beside it, and with Kubernetes' own. What holds
//! with those is not made up.

mod account;
mod collection;
mod cronjob;
mod daemonset;
mod deletion;
mod deployment;
mod disruption;
mod endpoints;
mod job;
mod namespace;
mod node;
mod orphaning;
mod protection;
mod quota;
mod readoption;
mod real;
mod replicaset;
mod rollout;
mod scene;
mod scheduling;
mod spectator;
mod stage;
mod statefulset;
mod volume;
