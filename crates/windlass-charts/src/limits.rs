//! How much a chart may ask for, so that no template runs away.

/// The limits of one rendering.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How much work the templates may do together: about one step for each node that is evaluated
    /// and for each 32 bytes that a function makes.
    pub steps: u64,
    /// How deeply templates may include one another.
    pub depth: usize,
    /// How many bytes the templates may write together, and how long one text may be.
    pub size: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 50_000_000,
            depth: 2_000,
            size: 64 << 20,
        }
    }
}
