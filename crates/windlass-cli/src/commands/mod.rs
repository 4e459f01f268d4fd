//! The commands that work on a project.

pub(crate) mod alpha;
mod chart;
pub(crate) mod completion;
pub(crate) mod create;
pub(crate) mod deploy;
pub(crate) mod envtest;
pub(crate) mod explore;
pub(crate) mod image;
pub(crate) mod init;
pub(crate) mod metacontroller;
pub(crate) mod operator;
pub(crate) mod rbac;
pub(crate) mod render;
pub(crate) mod run;
mod throw_away;
pub(crate) mod version;
