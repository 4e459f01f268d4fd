//! The files of a `.tgz`.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;

use super::File;
use super::directory::{MAX_CHART, MAX_FILE};
use crate::Error;
use crate::functions::paths;

/// Reads the files of an archive, without the folder that they are all in.
pub(super) fn files(bytes: &[u8]) -> Result<Vec<File>, Error> {
    let fail = |why: &str| Error::Chart(why.to_owned());
    let broken = |error: std::io::Error| Error::Chart(format!("cannot read the archive: {error}"));
    let mut archive = tar::Archive::new(MultiGzDecoder::new(bytes).take(2 * MAX_CHART));
    let mut files = Vec::new();
    let mut left = MAX_CHART;
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() || kind.is_pax_local_extensions() {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).replace('\\', "/");
        if path.ends_with('/') {
            continue;
        }
        let (folder, name) = path.split_once('/').unwrap_or((&path, ""));
        if name.starts_with('/') {
            return Err(fail("chart illegally contains absolute paths"));
        }
        let name = paths::clean(name);
        if name == "." {
            return Err(Error::Chart(format!(
                "chart illegally contains content outside the base directory: {}",
                crate::quote::quote(path.as_bytes())
            )));
        }
        if name.starts_with("..") {
            return Err(fail("chart illegally references parent directory"));
        }
        let drive = name.as_bytes();
        if drive.len() > 2 && drive[0].is_ascii_alphabetic() && &drive[1..3] == b":/" {
            return Err(fail("chart contains illegally named files"));
        }
        if folder == "Chart.yaml" {
            return Err(fail("chart yaml not in base directory"));
        }
        let size = entry.size();
        if size > left {
            return Err(Error::Chart(format!(
                "decompressed chart is larger than the maximum size {MAX_CHART}"
            )));
        }
        if size > MAX_FILE {
            return Err(Error::Chart(format!(
                "decompressed chart file {} is larger than the maximum file size {MAX_FILE}",
                crate::quote::quote(path.as_bytes())
            )));
        }
        left -= size;
        let mut data = Vec::new();
        entry.read_to_end(&mut data).map_err(broken)?;
        let data = match data.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) => rest.to_vec(),
            None => data,
        };
        files.push(File { name, data });
    }
    if files.is_empty() {
        return Err(fail("no files in chart archive"));
    }
    Ok(files)
}
