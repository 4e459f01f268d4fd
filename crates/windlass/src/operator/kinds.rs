//! The kinds an operator defines: samples of them, and whether the API server would take them.

use super::Operator;
use crate::{Error, Kind, Result, controller::AnyController};

impl Operator {
    /// Adds an object to try the operator with; it becomes a file of `config/samples`. What a sample
    /// needs beside it, such as a `ConfigMap` it names, is one too.
    ///
    /// A kind of the operator's own without one has a sample made from its schema.
    #[must_use]
    pub fn sample<K: Kind>(mut self, object: &K) -> Self {
        // What cannot be encoded is no sample; its own tests show that.
        if let Ok(mut value) = serde_json::to_value(object) {
            value["apiVersion"] = K::api_version(&()).into();
            value["kind"] = K::kind(&()).into();
            self.samples.push(value);
        }
        self
    }

    /// As [`sample`](Self::sample), of an object of a kind that is known only at run time.
    #[must_use]
    pub fn sample_value(mut self, object: serde_json::Value) -> Self {
        self.samples.push(object);
        self
    }

    /// Why definitions of kinds could not be made.
    pub(super) fn flaws(&self) -> Vec<String> {
        let flaws = self.controllers.iter().flat_map(AnyController::flaws);
        let unnamed = self.tasks.iter().filter(|task| !task.names_resources());
        let unnamed = unnamed.map(|task| {
            format!(
                "task {} has access to no kind in particular: name it, as in Access::of::<Pod>(…)",
                task.name
            )
        });
        let known = flaws.map(ToOwned::to_owned);
        known.chain(self.webhooks.flaws()).chain(unnamed).collect()
    }

    /// Fails when the API server would refuse the operator's kinds; the error names every field
    /// that is at fault.
    pub fn check(&self) -> Result<()> {
        let flaws = self.description().flaws();
        if flaws.is_empty() {
            return Ok(());
        }
        Err(Error::terminal(flaws.join("\n")))
    }
}
