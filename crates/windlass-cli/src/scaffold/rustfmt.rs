//! Laying out generated code with the toolchain's own rustfmt.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// The text as rustfmt lays it out; none where there is no rustfmt, or it cannot.
pub(super) fn format(text: &str) -> Option<String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.is_empty()).then_some(text)
}
