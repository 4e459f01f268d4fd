//! The files of a folder.

use std::fs;
use std::path::Path;

use super::File;
use super::ignore::Rules;
use crate::Error;

/// How large all files together, and one of them, may be.
pub(super) const MAX_CHART: u64 = 100 << 20;
pub(super) const MAX_FILE: u64 = 5 << 20;
/// How deep folders may be: links can lead in circles.
const MAX_DEPTH: usize = 60;

/// Reads the files of a chart, without what is ignored.
pub(super) fn files(folder: &Path) -> Result<Vec<File>, Error> {
    let ignored = folder.join(".helmignore");
    let rules = match fs::read(&ignored) {
        Ok(text) => Rules::parse(&String::from_utf8_lossy(&text)).map_err(Error::Chart)?,
        Err(_) => Rules::parse("").map_err(Error::Chart)?,
    };
    let mut walk = Walk {
        rules,
        left: MAX_CHART,
        files: Vec::new(),
    };
    walk.folder(folder, "", 0)?;
    Ok(walk.files)
}

struct Walk {
    rules: Rules,
    left: u64,
    files: Vec<File>,
}

impl Walk {
    fn folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), Error> {
        let failed = |path: &Path, source| Error::Read {
            path: path.to_owned(),
            source,
        };
        if depth > MAX_DEPTH {
            return Err(Error::Chart(format!(
                "{} is nested more than {MAX_DEPTH} deep",
                folder.display()
            )));
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(|source| failed(folder, source))? {
            let entry = entry.map_err(|source| failed(folder, source))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        for name in names {
            let path = folder.join(&name);
            let name = format!("{prefix}{name}");
            let found = fs::metadata(&path).map_err(|source| failed(&path, source))?;
            if self.rules.ignores(&name, found.is_dir()) {
                continue;
            }
            if found.is_dir() {
                self.folder(&path, &format!("{name}/"), depth + 1)?;
                continue;
            }
            if !found.is_file() {
                return Err(Error::Chart(format!(
                    "cannot load irregular file {} as it has file mode type bits set",
                    path.display()
                )));
            }
            if found.len() > MAX_FILE || found.len() > self.left {
                return Err(Error::Chart(format!(
                    "error reading {name}: chart file {} is larger than the maximum file size {MAX_FILE}",
                    crate::quote::quote(name.as_bytes())
                )));
            }
            self.left -= found.len();
            let data = fs::read(&path).map_err(|source| failed(&path, source))?;
            let data = match data.strip_prefix(b"\xef\xbb\xbf") {
                Some(rest) => rest.to_vec(),
                None => data,
            };
            self.files.push(File { name, data });
        }
        Ok(())
    }
}
