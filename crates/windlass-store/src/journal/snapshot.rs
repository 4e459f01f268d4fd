//! Writing down every object there is.

use std::io;
use std::sync::Arc;

use super::file::Files;
use super::frame::{self, FileKind, Header};
use super::{create_durably, file_name, record};
use crate::{Stored, TableName};

/// How much is written at a time.
const CHUNK: usize = 1024 * 1024;

/// Every object at one revision.
pub(super) struct Snapshot {
    /// The number of the log that goes on from here.
    pub(super) number: u64,
    pub(super) revision: u64,
    pub(super) tables: Vec<(TableName, Vec<Arc<Stored>>)>,
}

impl Snapshot {
    /// Writes it; tells how long it is. There is a file of that name only if all went well.
    pub(super) fn write(&self, files: &dyn Files) -> io::Result<u64> {
        let kind = FileKind::Snapshot;
        let (number, base) = (self.number, self.revision);
        let mut length = 0;
        create_durably(files, &file_name(kind, number), |file| {
            let mut bytes = Header { kind, number, base }.encode();
            let (mut payload, mut objects) = (Vec::with_capacity(CHUNK), 0);
            for (table, present) in &self.tables {
                for object in present {
                    record::push_present(&mut payload, table, object)?;
                    objects += 1;
                    if payload.len() >= CHUNK {
                        // The header goes with the first frame.
                        let at = length + bytes.len() as u64;
                        frame::push_frame(&mut bytes, at, &payload)?;
                        file.append(&bytes)?;
                        length += bytes.len() as u64;
                        bytes.clear();
                        payload.clear();
                    }
                }
            }
            record::push_end(&mut payload, objects);
            let at = length + bytes.len() as u64;
            frame::push_frame(&mut bytes, at, &payload)?;
            file.append(&bytes)?;
            length += bytes.len() as u64;
            Ok(())
        })?;
        Ok(length)
    }
}
