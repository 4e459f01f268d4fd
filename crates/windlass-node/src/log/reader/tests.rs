use std::time::Duration;

use proptest::prelude::*;
use windlass::testing::Clock;

use super::super::{Stream, Writer};
use super::*;
use crate::scratch::Scratch;

async fn written(folder: &Scratch, text: &[u8]) -> (std::path::PathBuf, Writer) {
    let path = folder.path().join("0.log");
    let writer = Writer::create(&path, Clock::real()).expect("a log");
    writer.drain(Stream::Stdout, text).await.expect("written");
    (path, writer)
}

async fn read(path: &Path, options: LogOptions) -> String {
    let mut reader = Reader::open(path, &options, Timestamp::now(), None)
        .await
        .expect("the log");
    let mut all = Vec::new();
    while let Some(piece) = reader.next().await.expect("a piece") {
        all.extend_from_slice(&piece);
    }
    String::from_utf8(all).expect("text")
}

#[tokio::test]
async fn what_was_written_is_read() {
    let folder = Scratch::new("log-plain");
    let long = "x".repeat(40_000);
    let text = format!("one\n{long}\n\nlast without end");
    let (path, _) = written(&folder, text.as_bytes()).await;
    assert_eq!(read(&path, LogOptions::default()).await, text);
    let limited = LogOptions {
        limit_bytes: Some(6),
        ..LogOptions::default()
    };
    assert_eq!(read(&path, limited).await, "one\nxx");
}

#[tokio::test]
async fn tail_since_and_timestamps() {
    let folder = Scratch::new("log-tail");
    let (path, _) = written(&folder, b"a\nb\nc\n").await;
    let tail = |lines| LogOptions {
        tail_lines: Some(lines),
        ..LogOptions::default()
    };
    assert_eq!(read(&path, tail(2)).await, "b\nc\n");
    assert_eq!(read(&path, tail(0)).await, "");
    assert_eq!(read(&path, tail(9)).await, "a\nb\nc\n");
    let future = LogOptions {
        since_time: Some(Timestamp::now() + Duration::from_mins(1)),
        ..LogOptions::default()
    };
    assert_eq!(read(&path, future).await, "");
    let recent = LogOptions {
        since_seconds: Some(3600),
        ..tail(1)
    };
    assert_eq!(read(&path, recent).await, "c\n");
    let stamped = read(
        &path,
        LogOptions {
            timestamps: true,
            ..tail(1)
        },
    )
    .await;
    let (at, rest) = stamped.split_once(' ').expect("a time");
    assert!(at.parse::<Timestamp>().is_ok() && at.len() == 30, "{at}");
    assert_eq!(rest, "c\n");
}

#[tokio::test]
async fn following_ends_with_the_container() {
    let folder = Scratch::new("log-follow");
    let (path, writer) = written(&folder, b"early\n").await;
    let options = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    let (come, progress) = tokio::sync::watch::channel(Progress::default());
    let mut reader = Reader::open(&path, &options, Timestamp::now(), Some(progress))
        .await
        .expect("the log");
    assert_eq!(
        reader.next().await.expect("a piece").as_deref(),
        Some(&b"early\n"[..])
    );
    {
        let mut waiting = std::pin::pin!(reader.next());
        assert!(futures::poll!(&mut waiting).is_pending());
        writer
            .drain(Stream::Stderr, &b"late\n"[..])
            .await
            .expect("written");
        come.send_modify(|progress| progress.length += 1);
        assert_eq!(
            waiting.await.expect("a piece").as_deref(),
            Some(&b"late\n"[..])
        );
    }
    come.send_modify(|progress| progress.ended = true);
    assert_eq!(reader.next().await.expect("the end"), None);
}

fn joined(lines: &[String]) -> String {
    lines
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_output_survives_and_any_tail_is_its_end(
        lines in prop::collection::vec("[a-z ]{0,40}", 0..30),
        tail in 0_u64..40,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = Scratch::new("log-any");
            let text = joined(&lines);
            let (path, _) = written(&folder, text.as_bytes()).await;
            prop_assert_eq!(&read(&path, LogOptions::default()).await, &text);
            let kept = lines.len().saturating_sub(usize::try_from(tail).unwrap());
            let end = joined(&lines[kept..]);
            let options = LogOptions { tail_lines: Some(tail), ..LogOptions::default() };
            prop_assert_eq!(read(&path, options).await, end);
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn log_without_end_is_rotated_and_keeps_five_files() {
    let folder = Scratch::new("log-flood");
    let path = folder.path().join("0.log");
    let writer = Writer::limited(&path, Clock::real(), 1000).expect("a log");
    let lines: Vec<String> = (0..1000).map(|n| format!("line {n}\n")).collect();
    let text = lines.concat();
    let drained = writer.drain(Stream::Stdout, text.as_bytes());
    drained.await.expect("written");
    let files: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .flatten()
        .collect();
    assert_eq!(files.len(), 5);
    for file in &files {
        assert!(file.metadata().expect("a file").len() <= 1000);
    }
    let present = read(&path, LogOptions::default()).await;
    assert!(present.ends_with("line 999\n"), "{present}");
    super::super::remove(&path);
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        0
    );
}

#[tokio::test]
async fn following_goes_on_in_the_next_file() {
    let folder = Scratch::new("log-rotated");
    let path = folder.path().join("0.log");
    let writer = Writer::limited(&path, Clock::real(), 1000).expect("a log");
    let write = |text: String| {
        let writer = writer.clone();
        async move {
            let drained = writer.drain(Stream::Stdout, text.as_bytes());
            drained.await.expect("written");
        }
    };
    let (progress, looked) = watch::channel(Progress::default());
    let options = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    write("line 0\n".to_owned()).await;
    let opened = Reader::open(&path, &options, Timestamp::now(), Some(looked)).await;
    let mut reader = opened.expect("the log");
    let first = reader.next().await.expect("a piece").expect("a piece");
    assert_eq!(first, "line 0\n");
    // As many as fit into three files: none of them is missed.
    let lines: Vec<String> = (1..50).map(|n| format!("line {n}\n")).collect();
    write(lines.concat()).await;
    progress.send_replace(Progress {
        length: 1,
        ended: true,
    });
    let mut all = Vec::new();
    while let Some(piece) = reader.next().await.expect("a piece") {
        all.extend_from_slice(&piece);
    }
    assert_eq!(String::from_utf8(all).expect("text"), lines.concat());
}
