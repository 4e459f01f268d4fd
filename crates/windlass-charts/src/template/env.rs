//! What all templates of one rendering share: limits, randomness, time, and a cluster if there is one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use jiff::Zoned;
use rand_chacha::ChaCha20Rng;

use super::error::Error;
use crate::Lookup;
use crate::limits::Limits;

pub(crate) struct Env {
    pub(crate) strict: bool,
    pub(crate) now: Zoned,
    pub(crate) random: RefCell<ChaCha20Rng>,
    pub(crate) lookup: Option<std::sync::Arc<dyn Lookup>>,
    /// How often each template is being included right now.
    pub(crate) included: RefCell<BTreeMap<String, usize>>,
    pub(crate) limits: Limits,
    steps: Cell<u64>,
    depth: Cell<usize>,
    written: Cell<usize>,
}

impl Env {
    pub(crate) fn new(
        strict: bool,
        now: Zoned,
        random: ChaCha20Rng,
        lookup: Option<std::sync::Arc<dyn Lookup>>,
        limits: Limits,
    ) -> Self {
        Self {
            strict,
            now,
            random: RefCell::new(random),
            lookup,
            included: RefCell::default(),
            limits,
            steps: Cell::new(0),
            depth: Cell::new(0),
            written: Cell::new(0),
        }
    }

    /// Counts work, and stops what does too much.
    pub(crate) fn step(&self, count: usize) -> Result<(), Error> {
        let steps = self.steps.get().saturating_add(count as u64);
        self.steps.set(steps);
        if steps > self.limits.steps {
            return Err(Error::limit(format!(
                "rendering takes more than {} steps",
                self.limits.steps
            )));
        }
        Ok(())
    }

    /// Begins a template within others.
    pub(crate) fn enter(&self) -> Result<(), Error> {
        let depth = self.depth.get() + 1;
        if depth > self.limits.depth {
            return Err(Error::limit(format!(
                "templates are nested more than {} deep",
                self.limits.depth
            )));
        }
        self.depth.set(depth);
        Ok(())
    }

    pub(crate) fn leave(&self) {
        self.depth.set(self.depth.get().saturating_sub(1));
    }

    /// Counts output.
    pub(crate) fn wrote(&self, bytes: usize) -> Result<(), Error> {
        let written = self.written.get().saturating_add(bytes);
        self.written.set(written);
        self.fits(written)
    }

    /// Refuses a text that is larger than anything may be.
    pub(crate) fn fits(&self, bytes: usize) -> Result<(), Error> {
        if bytes > self.limits.size {
            return Err(Error::limit(format!(
                "rendering makes more than {} bytes",
                self.limits.size
            )));
        }
        Ok(())
    }
}
