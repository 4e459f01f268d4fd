//! Files to a chart.

use std::collections::BTreeMap;

use super::{Chart, File, Metadata, archive};
use crate::Error;
use crate::values;

/// How deeply charts may be within charts.
const MAX_DEPTH: usize = 30;

pub(super) fn load(files: Vec<File>, depth: usize) -> Result<Chart, Error> {
    let fail = |message: String| Err(Error::Chart(message));
    if depth > MAX_DEPTH {
        return fail(format!("charts are nested more than {MAX_DEPTH} deep"));
    }
    let mut metadata = None;
    for file in files.iter().filter(|file| file.name == "Chart.yaml") {
        match Metadata::parse(&file.data) {
            Ok(mut found) => {
                if found.api_version.is_empty() {
                    "v1".clone_into(&mut found.api_version);
                }
                metadata = Some(found);
            }
            Err(why) => return fail(format!("cannot load Chart.yaml: {why}")),
        }
    }
    let Some(mut metadata) = metadata else {
        return fail("Chart.yaml file is missing".to_owned());
    };
    let mut chart = Chart {
        metadata: Metadata::default(),
        templates: Vec::new(),
        files: Vec::new(),
        values: serde_json::Map::new(),
        values_text: Vec::new(),
        schema: None,
        dependencies: Vec::new(),
    };
    let mut charts: BTreeMap<String, Vec<File>> = BTreeMap::new();
    let is_old = metadata.api_version == "v1";
    for file in files {
        match file.name.as_str() {
            "Chart.yaml" | "Chart.lock" => {}
            "values.yaml" => match values::read(&file.data) {
                Ok(values) => {
                    chart.values = values;
                    chart.values_text = file.data;
                }
                Err(why) => return fail(format!("cannot load values.yaml: {why}")),
            },
            "values.schema.json" => chart.schema = Some(file.data),
            "requirements.yaml" => {
                if let Err(why) = metadata.add_requirements(&file.data) {
                    return fail(format!("cannot load requirements.yaml: {why}"));
                }
                if is_old {
                    chart.files.push(file);
                }
            }
            "requirements.lock" => {
                if is_old {
                    chart.files.push(file);
                }
            }
            name if name.starts_with("templates/") => chart.templates.push(file),
            name if name.starts_with("charts/") => {
                if name.ends_with(".prov") {
                    chart.files.push(file);
                    continue;
                }
                let name = name["charts/".len()..].to_owned();
                let folder = name.split('/').next().unwrap_or_default().to_owned();
                let data = file.data;
                charts.entry(folder).or_default().push(File { name, data });
            }
            _ => chart.files.push(file),
        }
    }
    metadata.validate()?;
    chart.metadata = metadata;
    for (folder, files) in charts {
        if folder.starts_with(['_', '.']) {
            continue;
        }
        match dependency(&folder, files, chart.name(), depth) {
            Ok(found) => chart.dependencies.push(found),
            Err(Error::Chart(why)) => {
                return fail(format!(
                    "error unpacking subchart {folder} in {}: {why}",
                    chart.name()
                ));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(chart)
}

fn dependency(folder: &str, files: Vec<File>, parent: &str, depth: usize) -> Result<Chart, Error> {
    if folder.ends_with(".tgz") {
        return match files.first() {
            Some(file) if file.name == folder => load(archive::files(&file.data)?, depth + 1),
            file => Err(Error::Chart(format!(
                "error unpacking subchart tar in {parent}: expected {folder}, got {}",
                file.map_or("", |file| file.name.as_str())
            ))),
        };
    }
    let inner = files
        .into_iter()
        .filter_map(|file| {
            let (_, name) = file.name.split_once('/')?;
            Some(File {
                name: name.to_owned(),
                data: file.data,
            })
        })
        .collect();
    load(inner, depth + 1)
}
