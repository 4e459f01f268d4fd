//! Progress on anything that takes longer than a second: a spinner on a terminal, a line in a log.

use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// What takes less is not worth a line.
const SHORT: Duration = Duration::from_secs(1);

/// One step under way; it ends when this value does.
pub(crate) struct Step(Shown);

enum Shown {
    Spinner(ProgressBar),
    /// Dropped when the step is over.
    Line(#[expect(dead_code, reason = "its end is what tells")] Sender<()>),
}

impl Step {
    pub(crate) fn start(what: impl Into<String>) -> Self {
        let what = what.into();
        // Facts go to standard output; this is not one.
        if std::io::stderr().is_terminal() {
            return Self(Shown::Spinner(spinner(what)));
        }
        let (over, end) = channel();
        std::thread::spawn(move || {
            if end.recv_timeout(SHORT) == Err(RecvTimeoutError::Timeout) {
                let _ = writeln!(std::io::stderr(), "{what} …");
            }
        });
        Self(Shown::Line(over))
    }
}

fn spinner(what: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Shown::Spinner(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
