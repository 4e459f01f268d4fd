//! How far a log has come that another process writes: its file is looked at.

use std::path::Path;
use std::time::Duration;

use tokio::sync::watch;

use crate::log::Progress;

/// How often somebody who follows a log sees what is new.
const PERIOD: Duration = Duration::from_millis(100);

/// Follows a file as long as somebody wants to know, or until its container has ended.
pub(super) fn progress(path: &Path, mut ended: watch::Receiver<bool>) -> watch::Receiver<Progress> {
    let (sender, receiver) = watch::channel(Progress::default());
    let path = path.to_owned();
    tokio::spawn(async move {
        loop {
            let over = tokio::select! {
                biased;
                () = sender.closed() => return,
                _ = ended.wait_for(|ended| *ended) => true,
                () = tokio::time::sleep(PERIOD) => false,
            };
            let length = tokio::fs::metadata(&path)
                .await
                .map_or(0, |file| file.len());
            sender.send_if_modified(|progress| {
                let news = progress.length != length || over;
                progress.length = length;
                progress.ended = over;
                news
            });
            if over {
                return;
            }
        }
    });
    receiver
}
