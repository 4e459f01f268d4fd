//! Turns a plain description of an operator into Kubernetes objects and YAML.
//!
//! A [`Description`] holds facts: the kinds an operator defines, and what each of its parts may do
//! and why. [`role`](mod@role) makes the least-privilege role of it, [`install`](mod@install)
//! everything a cluster needs to run the operator, [`explain`] a page for people. Output is in a
//! stable order, so that regenerating it without a change makes no difference.

pub mod definition;
mod description;
mod explain;
mod files;
pub mod generate;
pub mod install;
pub mod leader;
pub mod metrics;
mod order;
pub mod role;
pub mod structural;
mod tree;
mod types;
pub mod upgrade;
pub mod users;
pub mod webhook;
mod yaml;

pub use self::{
    description::{Description, Part, Rule, Watched},
    explain::{explain, facts},
    install::{Installation, manifests},
    tree::{File, MARK, tree},
    types::types,
    webhook::{Reach, Webhook},
    yaml::{Error, Manifest, to_yaml},
};
