//! [`ParentInventory`]: what was made for a parent, recorded in the parent itself.

use futures::future::BoxFuture;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use windlass::{
    Declare, Error, Result,
    handle::{Access, Verb, Writes},
    kind::{Key, KindInfo},
};

use crate::{Desired, Entry, Inventory, Outcome, RendererContext};

/// The annotation that holds the inventory.
const INVENTORY: &str = "windlass.dev/inventory";

/// An [`Inventory`] in an annotation of the parent: what has been made and what is about to be, in
/// the order of its stages.
pub struct ParentInventory {
    kind: KindInfo,
    parents: Writes<DynamicObject>,
}

impl ParentInventory {
    /// For parents of this kind.
    pub fn declare(declare: &mut Declare<DynamicObject>, kind: &KindInfo) -> Self {
        Self {
            kind: kind.clone(),
            parents: declare.writes_kind(kind, Access::to([Verb::Patch])),
        }
    }

    async fn write(&self, ctx: &RendererContext, parent: &Value, entries: &[Entry]) -> Result<()> {
        let lines: Vec<Value> = entries.iter().map(line_of).collect();
        let text = Value::from(lines).to_string();
        let parent: DynamicObject = serde_json::from_value(parent.clone())
            .map_err(|error| Error::terminal(format!("cannot decode {}: {error}", self.kind)))?;
        let patch = json!({"metadata": {
            "uid": parent.metadata.uid,
            "annotations": { INVENTORY: text },
        }});
        self.parents.patch(ctx, &parent, patch).await?;
        Ok(())
    }

    /// What is recorded in a parent.
    fn read(&self, parent: &Value) -> Result<Vec<Entry>> {
        let Some(text) = parent["metadata"]["annotations"][INVENTORY].as_str() else {
            return Ok(Vec::new());
        };
        let lines: Vec<Value> = serde_json::from_str(text).map_err(|error| {
            Error::terminal(format!(
                "cannot read annotation {INVENTORY} of {}: {error}",
                self.kind
            ))
        })?;
        let entries: Option<Vec<Entry>> = lines.iter().map(entry_of).collect();
        entries.ok_or_else(|| {
            Error::terminal(format!(
                "cannot read annotation {INVENTORY} of {}",
                self.kind
            ))
        })
    }
}

fn line_of(entry: &Entry) -> Value {
    json!({
        "apiVersion": entry.kind.api_version(),
        "kind": entry.kind.kind,
        "resource": entry.kind.plural,
        "namespaced": entry.kind.namespaced,
        "namespace": entry.key.namespace(),
        "name": entry.key.name(),
        "keep": entry.keep,
    })
}

fn entry_of(line: &Value) -> Option<Entry> {
    let text = |field: &str| line[field].as_str();
    let version = text("apiVersion")?;
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Some(Entry {
        kind: KindInfo {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text("kind")?.to_owned(),
            plural: text("resource")?.to_owned(),
            namespaced: line["namespaced"].as_bool()?,
        },
        key: match text("namespace") {
            Some(namespace) => Key::namespaced(namespace, text("name")?),
            None => Key::cluster(text("name")?),
        },
        keep: line["keep"].as_bool()?,
    })
}

impl Inventory for ParentInventory {
    fn entries<'a>(
        &'a self,
        _: &'a RendererContext,
        parent: &'a Value,
    ) -> BoxFuture<'a, Result<Vec<Entry>>> {
        Box::pin(async move { self.read(parent) })
    }

    fn record<'a>(
        &'a self,
        ctx: &'a RendererContext,
        parent: &'a Value,
        _: &'a Desired,
        entries: &'a [Entry],
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            // What was made before stays recorded until it is deleted.
            let mut all = self.read(parent)?;
            all.retain(|known| {
                !entries
                    .iter()
                    .any(|entry| entry.kind == known.kind && entry.key == known.key)
            });
            all.extend(entries.iter().cloned());
            self.write(ctx, parent, &all).await
        })
    }

    fn settle<'a>(
        &'a self,
        _: &'a RendererContext,
        _: &'a Value,
        _: &'a Desired,
        _: &'a Outcome,
    ) -> BoxFuture<'a, Result<Option<Value>>> {
        // What is gone by now is harmless in the record, and to forget it would be one more write.
        Box::pin(async { Ok(None) })
    }

    fn forget<'a>(&'a self, _: &'a RendererContext, _: &'a Value) -> BoxFuture<'a, Result<()>> {
        // It goes with the parent.
        Box::pin(async { Ok(()) })
    }
}
