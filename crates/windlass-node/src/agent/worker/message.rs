//! The last message of a container: what it left in a file, or the end of its log.

use super::Worker;
use crate::log::{LogOptions, Reader};
use crate::pod::Termination;
use crate::runtime::Runtime;

/// No more of the file is shown.
const FROM_FILE: u64 = 4096;
/// No more of the log is shown.
const FROM_LOG: (u64, usize) = (80, 2048);

impl<R: Runtime> Worker<R> {
    /// Adds the container's own message to how it ended, unless there is another already.
    pub(super) async fn add_last_message(
        &self,
        name: &str,
        run: i32,
        termination: &mut Termination,
    ) {
        let (Some(volumes), Some(container)) = (&self.agency.volumes, self.container(name)) else {
            return;
        };
        let from_file = volumes.last_message(&self.pod, name, run, FROM_FILE);
        let policy = container.termination_message_policy.as_deref();
        let wants_log = policy == Some("FallbackToLogsOnError") && termination.exit_code != 0;
        if termination.message.is_some() {
            return;
        }
        termination.message = match from_file {
            None if wants_log => self.end_of_log(name).await,
            message => message,
        };
    }

    async fn end_of_log(&self, container: &str) -> Option<String> {
        let log = self.runtime.log(self.uid(), container, false)?;
        let options = LogOptions {
            tail_lines: Some(FROM_LOG.0),
            ..LogOptions::default()
        };
        let mut reader = Reader::open(&log.path, &options, self.now(), None)
            .await
            .ok()?;
        let mut all = Vec::new();
        while let Ok(Some(piece)) = reader.next().await {
            all.extend_from_slice(&piece);
        }
        let start = all.len().saturating_sub(FROM_LOG.1);
        Some(String::from_utf8_lossy(&all[start..]).into_owned()).filter(|text| !text.is_empty())
    }
}
