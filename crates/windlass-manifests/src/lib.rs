//! Turns a plain description of an operator into Kubernetes YAML.
