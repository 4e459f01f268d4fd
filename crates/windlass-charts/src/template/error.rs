//! What goes wrong while a template is executed.

/// An error with what it happened within: the outermost part first.
///
/// Each part is the beginning of a message, of which the parts that follow are the rest.
#[derive(Clone, Debug)]
pub(crate) struct Error {
    /// From the inside out.
    parts: Vec<String>,
    /// Whether the outermost part says where in a template it happened.
    pub(crate) located: bool,
    /// Whether a limit was hit, which nothing may hide.
    pub(crate) limit: bool,
}

impl Error {
    /// An error that a function gives.
    pub(crate) fn plain(message: impl Into<String>) -> Self {
        Self {
            parts: vec![message.into()],
            located: false,
            limit: false,
        }
    }

    /// An error of a place in a template.
    pub(crate) fn located(message: String) -> Self {
        Self {
            located: true,
            ..Self::plain(message)
        }
    }

    /// What stops a template that would not end.
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self {
            limit: true,
            ..Self::plain(message)
        }
    }

    /// The same, within something that begins its message so.
    pub(crate) fn within(mut self, prefix: String, located: bool) -> Self {
        self.parts.push(prefix);
        self.located = located;
        self
    }

    /// The whole message.
    pub(crate) fn message(&self) -> String {
        self.parts.iter().rev().map(String::as_str).collect()
    }

    /// The messages from the outside in.
    pub(crate) fn chain(&self) -> impl Iterator<Item = String> + '_ {
        (1..=self.parts.len()).rev().map(|count| {
            self.parts[..count]
                .iter()
                .rev()
                .map(String::as_str)
                .collect()
        })
    }
}
