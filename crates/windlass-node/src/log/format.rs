//! One record of a log file.

use jiff::Timestamp;

/// Where a line was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A line, or a part of a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// When it was written.
    pub at: Timestamp,
    /// Where.
    pub stream: Stream,
    /// Whether the line goes on in the next record.
    pub partial: bool,
    /// What was written, without the end of the line.
    pub content: &'a [u8],
}

/// Appends a record, with its end of line.
pub fn encode(out: &mut Vec<u8>, line: &Line<'_>) {
    let stream = match line.stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    };
    let tag = if line.partial { 'P' } else { 'F' };
    out.extend_from_slice(format!("{:.9} {stream} {tag} ", line.at).as_bytes());
    out.extend_from_slice(line.content);
    out.push(b'\n');
}

impl<'a> Line<'a> {
    /// Reads a record back; none when it is not one (a torn write of a killed node).
    pub fn parse(record: &'a [u8]) -> Option<Self> {
        let record = record.strip_suffix(b"\n").unwrap_or(record);
        let mut parts = record.splitn(4, |byte| *byte == b' ');
        let at = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let stream = match parts.next()? {
            b"stdout" => Stream::Stdout,
            b"stderr" => Stream::Stderr,
            _ => return None,
        };
        let partial = match parts.next()? {
            b"P" => true,
            b"F" => false,
            _ => return None,
        };
        Some(Self {
            at,
            stream,
            partial,
            content: parts.next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_the_container_runtime_interface_has_it() {
        let mut out = Vec::new();
        let at = "2026-11-15T16:44:43.5Z".parse().expect("a time");
        encode(
            &mut out,
            &Line {
                at,
                stream: Stream::Stderr,
                partial: false,
                content: b"a b",
            },
        );
        assert_eq!(out, b"2026-11-15T16:44:43.500000000Z stderr F a b\n");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            nanos in 0_i64..4_000_000_000_000_000_000,
            partial in any::<bool>(), error in any::<bool>(),
            content in prop::collection::vec(any::<u8>().prop_filter("one line", |b| *b != b'\n'), 0..50),
        ) {
            let line = Line {
                at: Timestamp::from_nanosecond(nanos.into()).expect("a time"),
                stream: if error { Stream::Stderr } else { Stream::Stdout },
                partial,
                content: &content,
            };
            let mut out = Vec::new();
            encode(&mut out, &line);
            prop_assert_eq!(Line::parse(&out), Some(line));
        }

        #[test]
        fn nonsense_is_refused_without_a_panic(content in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Line::parse(&content);
        }
    }
}
