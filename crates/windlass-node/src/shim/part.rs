//! Parts of volumes, mounted for the OCI runtime to find.
//!
//! The runtime takes paths, and a container beside it may replace what is on a path between any look
//! and the mount. So the shim opens the part, with the kernel seeing to it that it is in the volume,
//! and mounts what it has opened at a path that no container can reach; the runtime mounts that.
//! The mounts are in the shim's own namespace, and gone with it.

use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::mount::{UnmountFlags, mount_bind_recursive, unmount};

use crate::folder::Folder;
use crate::runtime::Part;

/// Parts that are mounted until this is dropped.
pub(super) struct Parts {
    mounted: Vec<PathBuf>,
}

impl Parts {
    pub(super) fn mount(parts: &[(PathBuf, Part)]) -> Result<Self, String> {
        let mut mounted = Self {
            mounted: Vec::new(),
        };
        for (target, part) in parts {
            mount(target, part).map_err(|error| {
                let path = part.path.display();
                format!("cannot mount subPath \"{path}\" of a volume: {error}")
            })?;
            mounted.mounted.push(target.clone());
        }
        Ok(mounted)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        for target in &self.mounted {
            if let Err(error) = unmount(target, UnmountFlags::DETACH) {
                eprintln!("cannot unmount {}: {error}", target.display());
            }
        }
    }
}

fn mount(target: &Path, part: &Part) -> io::Result<()> {
    let opened = Folder::named(&part.volume)?.beneath(&part.path)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
    if kind == FileType::Directory {
        std::fs::create_dir_all(target)?;
    } else {
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::File::create(target)?;
    }
    // Not by its path, but what is open.
    let source = format!("/proc/self/fd/{}", opened.as_raw_fd());
    Ok(mount_bind_recursive(source.as_str(), target)?)
}
