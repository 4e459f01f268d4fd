//! Turns a plain description of an operator into Kubernetes YAML.

/// Plain facts about an operator.
#[derive(Clone, Debug)]
pub struct Description {}
