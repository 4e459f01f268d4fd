//! The controllers a cluster needs, written as one windlass operator.
#![allow(dead_code)]

mod deployment;
mod garbage;
mod owner;
mod pod;
mod replicaset;
mod scheduler;
