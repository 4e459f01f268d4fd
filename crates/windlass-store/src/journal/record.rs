//! One object in a frame: what happened to it, where it lives, and its encoded JSON.

use std::io;

use bytes::Bytes;

use super::frame::{self, read_u32, read_u64};
use crate::{ChangeKind, Layout, Stored, TableName};

const ADDED: u8 = 1;
const MODIFIED: u8 = 2;
const DELETED: u8 = 3;
const PRESENT: u8 = 4;
const END: u8 = 5;

/// What a payload is made of.
#[derive(Debug)]
pub(crate) enum Record {
    /// A change, in a log.
    Change(TableName, ChangeKind, Stored),
    /// An object that is there, in a snapshot.
    Present(TableName, Stored),
    /// The end of a snapshot, with the number of its objects.
    End(u64),
}

/// Adds a change to a payload.
pub(super) fn push_change(
    to: &mut Vec<u8>,
    table: &TableName,
    kind: ChangeKind,
    object: &Stored,
) -> io::Result<()> {
    let kind = match kind {
        ChangeKind::Added => ADDED,
        ChangeKind::Modified => MODIFIED,
        ChangeKind::Deleted => DELETED,
    };
    push(to, kind, table, object)
}

/// Adds an object that is there to a snapshot's payload.
pub(super) fn push_present(to: &mut Vec<u8>, table: &TableName, object: &Stored) -> io::Result<()> {
    push(to, PRESENT, table, object)
}

/// Ends a snapshot.
pub(super) fn push_end(to: &mut Vec<u8>, objects: u64) {
    to.push(END);
    to.extend_from_slice(&objects.to_le_bytes());
}

fn push(to: &mut Vec<u8>, kind: u8, table: &TableName, object: &Stored) -> io::Result<()> {
    let layout = object.layout();
    to.push(kind);
    to.extend_from_slice(&object.revision.to_le_bytes());
    push_bytes(to, table.as_str().as_bytes())?;
    push_length(to, layout.untyped)?;
    push_length(to, layout.revision_at)?;
    push_length(to, object.fields.len())?;
    for (field, value) in &object.fields {
        push_bytes(to, field.as_bytes())?;
        push_bytes(to, value.as_bytes())?;
    }
    push_bytes(to, &object.json)
}

fn push_length(to: &mut Vec<u8>, length: usize) -> io::Result<()> {
    to.extend_from_slice(&frame::length_of(length)?);
    Ok(())
}

fn push_bytes(to: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
    push_length(to, bytes.len())?;
    to.extend_from_slice(bytes);
    Ok(())
}

/// Reads the records of a payload.
pub(super) struct Records<'a> {
    payload: &'a [u8],
    at: usize,
}

impl<'a> Records<'a> {
    pub(super) fn of(payload: &'a [u8]) -> Self {
        Self { payload, at: 0 }
    }

    /// The next record; `None` when the payload makes no sense, though its checksum is right.
    fn read(&mut self) -> Option<Record> {
        let kind = *self.payload.get(self.at)?;
        self.at += 1;
        let number = read_u64(self.payload, self.at)?;
        self.at += 8;
        if kind == END {
            return Some(Record::End(number));
        }
        let table = TableName::from_text(self.text()?);
        let layout = Layout {
            untyped: self.length()?,
            revision_at: self.length()?,
        };
        let fields = (0..self.length()?)
            .map(|_| Some((self.text()?.into(), self.text()?.into())))
            .collect::<Option<_>>()?;
        let json = Bytes::copy_from_slice(self.bytes()?);
        let object = Stored::restore(json, number, fields, layout)?;
        Some(match kind {
            ADDED => Record::Change(table, ChangeKind::Added, object),
            MODIFIED => Record::Change(table, ChangeKind::Modified, object),
            DELETED => Record::Change(table, ChangeKind::Deleted, object),
            PRESENT => Record::Present(table, object),
            _ => return None,
        })
    }

    fn length(&mut self) -> Option<usize> {
        let length = read_u32(self.payload, self.at)?;
        self.at += 4;
        usize::try_from(length).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        let bytes = self.payload.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

/// A payload whose checksum is right but whose content cannot be read.
#[derive(Debug)]
pub(super) struct Senseless;

impl Iterator for Records<'_> {
    type Item = Result<Record, Senseless>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.payload.len() {
            return None;
        }
        let record = self.read();
        if record.is_none() {
            self.at = self.payload.len();
        }
        Some(record.ok_or(Senseless))
    }
}
