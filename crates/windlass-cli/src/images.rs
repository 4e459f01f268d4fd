//! The table of programs that stand for images, as the user extended it.

use std::fs;
use std::io;
use std::path::Path;

use windlass_cluster::ImageTable;

use crate::error::{Error, Result, at};

/// The file of the data folder that adds to the table.
const FILE: &str = "images.yaml";

/// The default table with what the data folder's `images.yaml` adds to it.
pub(crate) fn table(data_dir: &Path) -> Result<ImageTable> {
    let path = data_dir.join(FILE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ImageTable::default()),
        text => text.map_err(at(&path))?,
    };
    let own: ImageTable = serde_saphyr::from_str(&text)
        .map_err(|error| Error::Other(format!("cannot read {}: {error}", path.display())))?;
    Ok(ImageTable::default().extended(own))
}
