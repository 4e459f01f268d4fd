//! Turns a plain description of an operator into Kubernetes YAML.

mod description;

pub use self::description::{Description, Part, Rule, Watched};
