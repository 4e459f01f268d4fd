//! Archives of tar, entry by entry.
//!
//! What an archive says of itself is not believed: long names and other extensions have a limit, so
//! that none fills the memory of the node.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;

use tar::{EntryType, Header};

const BLOCK: usize = 512;
/// Longer names, and more attributes, no file has.
const LONGEST_EXTENSION: u64 = 1024 * 1024;

/// An archive that is being read; reading from it gives the content of the present entry.
pub(super) struct Archive<R> {
    from: R,
    /// What is left of the content of the present entry, and of the block it ends in.
    left: u64,
    padding: u64,
    /// How many headers were read.
    headers: u64,
}

/// What the archive says of a file.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) path: Vec<u8>,
    pub(super) kind: EntryType,
    /// Where a link leads.
    pub(super) link: Vec<u8>,
    pub(super) mode: u32,
    pub(super) owner: u32,
    pub(super) group: u32,
    /// When it was changed, in seconds.
    pub(super) changed: i64,
    pub(super) size: u64,
}

/// What entries before another say of it.
#[derive(Default)]
struct Extensions {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    owner: Option<u32>,
    group: Option<u32>,
    changed: Option<i64>,
}

impl<R: Read> Archive<R> {
    pub(super) fn new(from: R) -> Self {
        Self {
            from,
            left: 0,
            padding: 0,
            headers: 0,
        }
    }

    /// How many headers were read: each costs time, whatever it is of.
    pub(super) fn headers(&self) -> u64 {
        self.headers
    }

    /// What comes after the last entry.
    pub(super) fn into_rest(self) -> R {
        self.from
    }

    /// The next entry; none at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Entry>> {
        let mut extensions = Extensions::default();
        loop {
            self.skip()?;
            let mut block = [0; BLOCK];
            if !self.read_block(&mut block)? || block.iter().all(|byte| *byte == 0) {
                return Ok(None);
            }
            self.headers += 1;
            check(&block)?;
            let header = Header::from_byte_slice(&block);
            let kind = header.entry_type();
            self.left = header.entry_size()?;
            match kind {
                EntryType::GNULongName => extensions.name = Some(self.text()?),
                EntryType::GNULongLink => extensions.link = Some(self.text()?),
                EntryType::XHeader => extensions.read(&self.extension()?)?,
                EntryType::XGlobalHeader => self.padding = padding(self.left),
                EntryType::GNUSparse => return Err(invalid("sparse files are not supported")),
                _ => return self.entry(header, extensions).map(Some),
            }
        }
    }

    fn entry(&mut self, header: &Header, extensions: Extensions) -> io::Result<Entry> {
        let path = extensions
            .name
            .unwrap_or_else(|| header.path_bytes().into_owned());
        let own = || header.link_name_bytes().map(std::borrow::Cow::into_owned);
        let link = extensions.link.or_else(own).unwrap_or_default();
        let mut kind = header.entry_type();
        // As archives of old have it.
        if kind == EntryType::Regular && path.ends_with(b"/") {
            kind = EntryType::Directory;
        }
        self.left = extensions.size.unwrap_or(self.left);
        // Links and folders may claim to have a size, but have no content.
        let has_none = kind.is_hard_link() || kind.is_symlink() || kind.is_dir() || kind.is_fifo();
        if has_none || kind.is_block_special() || kind.is_character_special() {
            self.left = 0;
        }
        self.padding = padding(self.left);
        let number = |number: io::Result<u64>| {
            number.and_then(|number| u32::try_from(number).map_err(|_| invalid("invalid owner")))
        };
        Ok(Entry {
            path,
            kind,
            link,
            mode: header.mode()? & 0o7777,
            owner: extensions.owner.map_or_else(|| number(header.uid()), Ok)?,
            group: extensions.group.map_or_else(|| number(header.gid()), Ok)?,
            changed: match extensions.changed {
                Some(changed) => changed,
                None => i64::try_from(header.mtime()?).unwrap_or_default(),
            },
            size: self.left,
        })
    }

    /// The content of an extension, all of it.
    fn extension(&mut self) -> io::Result<Vec<u8>> {
        if self.left > LONGEST_EXTENSION {
            return Err(invalid("an extended header is too long"));
        }
        self.padding = padding(self.left);
        let mut content = Vec::new();
        self.read_to_end(&mut content)?;
        Ok(content)
    }

    fn text(&mut self) -> io::Result<Vec<u8>> {
        let mut content = self.extension()?;
        let end = content.iter().position(|byte| *byte == 0);
        content.truncate(end.unwrap_or(content.len()));
        Ok(content)
    }

    /// Skips what is left of an entry.
    fn skip(&mut self) -> io::Result<()> {
        let wanted = self.left.saturating_add(self.padding);
        let skipped = io::copy(&mut (&mut self.from).take(wanted), &mut io::sink())?;
        (self.left, self.padding) = (0, 0);
        if skipped == wanted {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    /// Reads a block; false at the end.
    fn read_block(&mut self, block: &mut [u8; BLOCK]) -> io::Result<bool> {
        let mut length = 0;
        while length < BLOCK {
            match self.from.read(&mut block[length..]) {
                Ok(0) if length == 0 => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl<R: Read> Read for Archive<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.left.min(buffer.len() as u64);
        let length = usize::try_from(length).unwrap_or(buffer.len());
        let read = self.from.read(&mut buffer[..length])?;
        if read == 0 && length > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}

impl Extensions {
    /// Reads records of `length key=value`, each with an end of line.
    fn read(&mut self, mut content: &[u8]) -> io::Result<()> {
        let malformed = || invalid("invalid extended header");
        while !content.is_empty() {
            let blank = content.iter().position(|byte| *byte == b' ');
            let digits = blank.and_then(|blank| std::str::from_utf8(&content[..blank]).ok());
            let length: usize = digits
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(malformed)?;
            let start = blank.unwrap_or_default() + 1;
            if length <= start || length > content.len() {
                return Err(malformed());
            }
            let (record, rest) = content.split_at(length);
            content = rest;
            let record = record[start..].strip_suffix(b"\n").ok_or_else(malformed)?;
            let equals = record.iter().position(|byte| *byte == b'=');
            let (key, value) = record.split_at(equals.ok_or_else(malformed)?);
            self.take(key, &value[1..])?;
        }
        Ok(())
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let text = std::str::from_utf8(value).unwrap_or_default();
        let invalid_number = |_| invalid("invalid number in an extended header");
        match key {
            b"path" => self.name = Some(value.to_vec()),
            b"linkpath" => self.link = Some(value.to_vec()),
            b"size" => self.size = Some(text.parse().map_err(invalid_number)?),
            b"uid" => self.owner = Some(text.parse().map_err(invalid_number)?),
            b"gid" => self.group = Some(text.parse().map_err(invalid_number)?),
            b"mtime" => {
                let seconds = text.split('.').next().unwrap_or_default();
                self.changed = seconds.parse().ok();
            }
            _ if key.starts_with(b"GNU.sparse.") => {
                return Err(invalid("sparse files are not supported"));
            }
            _ => {}
        }
        Ok(())
    }
}

/// The names on a path of an archive; none leads upwards.
pub(super) fn names(path: &[u8]) -> Option<Vec<&OsStr>> {
    let names = path.split(|byte| *byte == b'/');
    let names = names.filter(|name| !matches!(*name, b"" | b"."));
    names
        .map(|name| {
            let is_name = name != b".." && !name.contains(&0);
            is_name.then(|| OsStr::from_bytes(name))
        })
        .collect()
}

/// Whether a header is one: its sum says so.
fn check(block: &[u8; BLOCK]) -> io::Result<()> {
    let sum = |range: std::ops::Range<usize>| block[range].iter().map(|b| u32::from(*b));
    // The place of the sum itself counts as blanks.
    let sum: u32 = sum(0..148).chain(sum(156..BLOCK)).sum::<u32>() + 8 * 32;
    if Header::from_byte_slice(block).cksum()? == sum {
        Ok(())
    } else {
        Err(invalid("it is no archive of tar, or damaged"))
    }
}

fn padding(size: u64) -> u64 {
    let block = BLOCK as u64;
    (block - size % block) % block
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
