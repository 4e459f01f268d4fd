//! Reads a log file back, in the way that was asked for.

use std::io::{self, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, BufReader};
use tokio::sync::watch;

use super::format::Line;
use super::options::LogOptions;
use super::rotation;

/// About how much is handed out at once.
const CHUNK: usize = 32 * 1024;
/// How much is looked at at once when the last lines are searched for.
const BLOCK: u64 = 64 * 1024;

/// How far a log has come; followers wait for it to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// How long the file is.
    pub length: u64,
    /// The container has ended and everything it wrote is in the file.
    pub ended: bool,
}

/// A log as it is being read.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    /// Which file that is: others come after it as the log is rotated.
    inode: u64,
    /// Another file is the present one, so nothing more is written to this.
    is_final: bool,
    /// A record whose end has not been written yet.
    torn: Vec<u8>,
    since: Option<Timestamp>,
    timestamps: bool,
    left: u64,
    inside_line: bool,
    /// Present while more may come and is wanted.
    follow: Option<watch::Receiver<Progress>>,
}

impl Reader {
    /// Opens a log. `progress` says how far it has come, if the container still runs.
    pub async fn open(
        path: &Path,
        options: &LogOptions,
        now: Timestamp,
        progress: Option<watch::Receiver<Progress>>,
    ) -> io::Result<Self> {
        let mut file = File::open(path).await?;
        let start = match options.tail_lines {
            Some(lines) => start_of_last(&mut file, lines).await?,
            None => 0,
        };
        file.seek(SeekFrom::Start(start)).await?;
        Ok(Self {
            path: path.to_owned(),
            inode: file.metadata().await?.ino(),
            is_final: false,
            file: BufReader::with_capacity(CHUNK, file),
            torn: Vec::new(),
            since: options.since(now),
            timestamps: options.timestamps,
            left: options.limit_bytes.unwrap_or(u64::MAX),
            inside_line: false,
            follow: progress.filter(|_| options.follow),
        })
    }

    /// The next piece of the log; none at its end.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let mut out = Vec::new();
        while self.left > 0 {
            // Looked at before reading: what is written after this look wakes the wait below.
            let ended = match &mut self.follow {
                Some(progress) => progress.borrow_and_update().ended,
                None => true,
            };
            while out.len() < CHUNK && self.read_record(&mut out).await? {}
            if !out.is_empty() {
                let most = usize::try_from(self.left).unwrap_or(usize::MAX);
                out.truncate(most);
                self.left -= out.len() as u64;
                return Ok(Some(out.into()));
            }
            if self.follow.is_some() && self.advance().await? {
                continue;
            }
            match &mut self.follow {
                Some(progress) if !ended => {
                    // A writer that went without a word has ended, too.
                    let _ = progress.changed().await.map_err(|_| self.follow = None);
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Goes on to the next file at the end of one that was put aside; false when this is the present
    /// one.
    async fn advance(&mut self) -> io::Result<bool> {
        let Ok(present) = tokio::fs::metadata(&self.path).await else {
            return Ok(false);
        };
        if present.ino() == self.inode {
            return Ok(false);
        }
        // What was written between the last look and the rotation comes first.
        if !std::mem::replace(&mut self.is_final, true) {
            return Ok(true);
        }
        let next = rotation::after(&self.path, self.inode);
        let file = File::open(next).await?;
        self.inode = file.metadata().await?.ino();
        self.file = BufReader::with_capacity(CHUNK, file);
        self.is_final = false;
        self.torn.clear();
        Ok(true)
    }

    /// Reads one record and appends what is to be shown of it; false at the end of the file.
    async fn read_record(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        self.file.read_until(b'\n', &mut self.torn).await?;
        if self.torn.last() != Some(&b'\n') {
            return Ok(false);
        }
        let record = std::mem::take(&mut self.torn);
        let Some(line) = Line::parse(&record) else {
            return Ok(true);
        };
        if self.since.is_some_and(|since| line.at < since) {
            return Ok(true);
        }
        if self.timestamps && !self.inside_line {
            out.extend_from_slice(format!("{:.9} ", line.at).as_bytes());
        }
        out.extend_from_slice(line.content);
        if !line.partial {
            out.push(b'\n');
        }
        self.inside_line = line.partial;
        Ok(true)
    }
}

/// Where the last `lines` records of a file begin.
async fn start_of_last(file: &mut File, lines: u64) -> io::Result<u64> {
    let mut end = file.metadata().await?.len();
    let mut wanted = lines;
    // The last byte ends the last record, and does not begin another.
    let mut skip_last = true;
    if lines == 0 {
        return Ok(end);
    }
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start)).await?;
        let mut block = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
        file.read_exact(&mut block).await?;
        for (at, byte) in block.iter().enumerate().rev() {
            if std::mem::take(&mut skip_last) || *byte != b'\n' {
                continue;
            }
            wanted -= 1;
            if wanted == 0 {
                return Ok(start + at as u64 + 1);
            }
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests;
