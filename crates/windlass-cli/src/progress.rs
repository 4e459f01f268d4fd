//! Progress on anything that takes longer than a moment: a spinner for people, lines for logs.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// One step under way.
pub(crate) struct Step(ProgressBar);

impl Step {
    pub(crate) fn start(what: impl Into<String>) -> Self {
        // Drawn on stderr, and only when that is a terminal.
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(what.into());
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
