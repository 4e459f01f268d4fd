//! Turns what a container writes into a log file.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::broadcast;
use windlass::testing::Clock;

use super::format::{Line, Stream, encode};
use super::rotation;

/// A longer line is written in parts.
const LONGEST: usize = 16 * 1024;
/// How many pieces may wait for somebody who listens.
const UNHEARD: usize = 1024;

/// A piece of what a container writes, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// Where it was written to.
    pub stream: Stream,
    /// What was written.
    pub bytes: Bytes,
}

/// Writes the log of one run of a container; clones write the same file.
#[derive(Debug, Clone)]
pub struct Writer {
    file: Arc<Mutex<LogFile>>,
    voice: broadcast::Sender<Heard>,
    clock: Clock,
}

/// The present file of a log.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
    /// How large it becomes.
    largest: u64,
}

impl LogFile {
    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        let length = self.length + record.len() as u64;
        if self.length > 0 && length > self.largest {
            rotation::rotate(&self.path)?;
            self.file = open(&self.path)?;
            self.length = 0;
        }
        self.length += record.len() as u64;
        self.file.write_all(record)
    }
}

fn open(path: &Path) -> io::Result<File> {
    // A log holds whatever a program prints: only its owner may read it.
    let mut options = File::options();
    options.create(true).append(true).mode(0o600).open(path)
}

impl Writer {
    /// Creates the file.
    pub fn create(path: &Path, clock: Clock) -> io::Result<Self> {
        Self::limited(path, clock, rotation::LARGEST)
    }

    pub(super) fn limited(path: &Path, clock: Clock, largest: u64) -> io::Result<Self> {
        let file = open(path)?;
        let file = LogFile {
            path: path.to_owned(),
            length: file.metadata()?.len(),
            file,
            largest,
        };
        Ok(Self {
            file: Arc::new(Mutex::new(file)),
            voice: broadcast::Sender::new(UNHEARD),
            clock,
        })
    }

    /// Where to listen to the container while it writes.
    pub fn voice(&self) -> &broadcast::Sender<Heard> {
        &self.voice
    }

    /// Writes everything that comes from a pipe, until its last writer closes it.
    pub async fn drain(&self, stream: Stream, mut pipe: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut pending = Vec::new();
        loop {
            let length = pending.len();
            pending.reserve(LONGEST);
            let open = pipe.read_buf(&mut pending).await? > 0;
            if self.voice.receiver_count() > 0 && open {
                let bytes = Bytes::copy_from_slice(&pending[length..]);
                let _ = self.voice.send(Heard { stream, bytes });
            }
            let mut from = 0;
            let mut searched = length;
            while let Some(end) = find_newline(&pending, searched) {
                self.write_line(stream, &pending[from..end])?;
                from = end + 1;
                searched = from;
            }
            pending.drain(..from);
            while pending.len() >= LONGEST {
                self.write(stream, true, &pending[..LONGEST])?;
                pending.drain(..LONGEST);
            }
            if !open {
                if !pending.is_empty() {
                    // Without its end of line it is a part, and is shown without one.
                    self.write(stream, true, &pending)?;
                }
                return Ok(());
            }
        }
    }

    fn write_line(&self, stream: Stream, mut line: &[u8]) -> io::Result<()> {
        while line.len() > LONGEST {
            let (part, rest) = line.split_at(LONGEST);
            self.write(stream, true, part)?;
            line = rest;
        }
        self.write(stream, false, line)
    }

    fn write(&self, stream: Stream, partial: bool, content: &[u8]) -> io::Result<()> {
        let mut record = Vec::with_capacity(content.len() + 48);
        encode(
            &mut record,
            &Line {
                at: self.clock.now(),
                stream,
                partial,
                content,
            },
        );
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.append(&record)
    }
}

fn find_newline(bytes: &[u8], from: usize) -> Option<usize> {
    bytes[from..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map(|at| from + at)
}
