//! Tables, as the API server makes them.

use comfy_table::{Table, presets::NOTHING};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Result, doing};

/// A Table answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerTable {
    column_definitions: Vec<Column>,
    #[serde(default)]
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Column {
    name: String,
    #[serde(default)]
    priority: i32,
}

#[derive(Debug, Deserialize)]
struct Row {
    cells: Vec<Value>,
    object: Value,
}

impl ServerTable {
    /// What a list of `path` looks like as a table.
    pub(crate) async fn get(client: &Client, path: &str) -> Result<Self> {
        let request = http::Request::get(path)
            .header(
                http::header::ACCEPT,
                "application/json;as=Table;v=v1;g=meta.k8s.io",
            )
            .body(Vec::new())
            .map_err(|error| Error::Other(error.to_string()))?;
        client
            .request(request)
            .await
            .map_err(doing(format!("list {path}")))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Rows as text, with the namespace first; columns of low priority only where `wide` names them.
    pub(crate) fn print(&self, wide: &[&str]) -> String {
        let shown: Vec<usize> = self
            .column_definitions
            .iter()
            .enumerate()
            .filter(|(_, column)| column.priority == 0 || wide.contains(&column.name.as_str()))
            .map(|(index, _)| index)
            .collect();
        let mut table = Table::new();
        table.load_style(NOTHING);
        let names = shown
            .iter()
            .map(|index| self.column_definitions[*index].name.to_uppercase());
        table.set_header(std::iter::once("NAMESPACE".to_owned()).chain(names));
        for row in &self.rows {
            let namespace = row.object["metadata"]["namespace"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let cells = shown.iter().map(|index| match row.cells.get(*index) {
                Some(Value::String(text)) => text.clone(),
                None | Some(Value::Null) => String::new(),
                Some(other) => other.to_string(),
            });
            table.add_row(std::iter::once(namespace).chain(cells));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        table.trim_fmt()
    }
}
