//! What all templates of one rendering share: limits, randomness, time, and a cluster if there is one.
//!
//! Random values depend on the seed and on where they are asked for: the file and the line of each
//! function call that leads there, and how often that place asked before. So a part of a chart that
//! is switched on, or a line that is added, changes no random value elsewhere.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use jiff::Zoned;
use rand::SeedableRng as _;
use rand_chacha::ChaCha20Rng;
use ring::digest;

use super::error::Error;
use super::node::Source;
use crate::Lookup;
use crate::limits::Limits;

pub(crate) struct Env {
    pub(crate) strict: bool,
    pub(crate) now: Zoned,
    seed: [u8; 32],
    /// The calls that are being evaluated, the outermost first, and where they are written.
    calls: RefCell<Vec<Call>>,
    /// How often each place asked for random values.
    draws: RefCell<HashMap<[u8; 32], u64>>,
    pub(crate) lookup: Option<std::sync::Arc<dyn Lookup>>,
    /// How often each template is being included right now.
    pub(crate) included: RefCell<BTreeMap<String, usize>>,
    pub(crate) limits: Limits,
    /// The variables of the environment, where templates may see them.
    pub(crate) environment: Option<BTreeMap<String, String>>,
    steps: Cell<u64>,
    depth: Cell<usize>,
    written: Cell<usize>,
}

impl Env {
    pub(crate) fn new(
        strict: bool,
        now: Zoned,
        seed: [u8; 32],
        lookup: Option<std::sync::Arc<dyn Lookup>>,
        limits: Limits,
    ) -> Self {
        Self {
            strict,
            now,
            seed,
            // The outermost is no call: it is what draws outside of all calls.
            calls: RefCell::new(vec![Call::default()]),
            draws: RefCell::default(),
            lookup,
            included: RefCell::default(),
            limits,
            environment: None,
            steps: Cell::new(0),
            depth: Cell::new(0),
            written: Cell::new(0),
        }
    }

    /// Begins a call that is written at a place of a template.
    pub(crate) fn enter_call(&self, source: &Rc<Source>, at: usize) {
        self.calls.borrow_mut().push(Call {
            place: Some((Rc::clone(source), at)),
            random: None,
        });
    }

    pub(crate) fn leave_call(&self) {
        self.calls.borrow_mut().pop();
    }

    /// The random values of the call that is being evaluated.
    pub(crate) fn random(&self) -> RefMut<'_, ChaCha20Rng> {
        RefMut::map(self.calls.borrow_mut(), |calls| {
            if calls.last().is_none_or(|call| call.random.is_none()) {
                let random = self.random_of(calls);
                match calls.last_mut() {
                    Some(call) => call.random = Some(Box::new(random)),
                    None => calls.push(Call {
                        place: None,
                        random: Some(Box::new(random)),
                    }),
                }
            }
            let last = calls.len() - 1;
            calls[last]
                .random
                .get_or_insert_with(|| Box::new(ChaCha20Rng::from_seed(self.seed)))
                .as_mut()
        })
    }

    fn random_of(&self, calls: &[Call]) -> ChaCha20Rng {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(&self.seed);
        for (source, at) in calls.iter().filter_map(|call| call.place.as_ref()) {
            for part in [&*source.name, source.line(*at)] {
                context.update(part.as_bytes());
                context.update(&[0]);
            }
        }
        let mut counted = context.clone();
        let mut place = [0; 32];
        place.copy_from_slice(context.finish().as_ref());
        let mut draws = self.draws.borrow_mut();
        let count = draws.entry(place).or_default();
        counted.update(&count.to_le_bytes());
        *count += 1;
        let mut seed = [0; 32];
        seed.copy_from_slice(counted.finish().as_ref());
        ChaCha20Rng::from_seed(seed)
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

/// A call that is being evaluated.
#[derive(Default)]
struct Call {
    place: Option<(Rc<Source>, usize)>,
    random: Option<Box<ChaCha20Rng>>,
}
