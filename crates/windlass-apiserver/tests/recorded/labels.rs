//! Names for values that differ from run to run: each is called after the step that first showed it.
//!
//! `<uid:create>` is the uid first seen in the step `create`, `<uid:list#2>` the second new one of
//! the step `list`. So a value keeps its name through a case, and a server that makes one value too
//! many in one step does not shift the names of all that follow.

/// The names given so far to one sort of value.
pub(crate) struct Labels<T> {
    sort: &'static str,
    known: Vec<(T, String)>,
    /// The step being named, and how many new values it has shown.
    step: (String, usize),
}

impl<T: PartialEq> Labels<T> {
    pub(crate) fn new(sort: &'static str) -> Self {
        Self {
            sort,
            known: Vec::new(),
            step: (String::new(), 0),
        }
    }

    /// New values are called after this step from now on.
    pub(crate) fn enter(&mut self, step: &str) {
        self.step = (step.to_owned(), 0);
    }

    /// The name of a value, given now if it is new.
    pub(crate) fn name(&mut self, value: T) -> String {
        if let Some(name) = self.find(&value) {
            return name.to_owned();
        }
        self.step.1 += 1;
        let (step, count) = &self.step;
        let name = match count {
            1 => format!("<{}:{step}>", self.sort),
            _ => format!("<{}:{step}#{count}>", self.sort),
        };
        self.known.push((value, name.clone()));
        name
    }

    pub(crate) fn find(&self, value: &T) -> Option<&str> {
        self.known
            .iter()
            .find(|(known, _)| known == value)
            .map(|(_, name)| name.as_str())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&T, &str)> {
        self.known
            .iter()
            .map(|(value, name)| (value, name.as_str()))
    }
}
