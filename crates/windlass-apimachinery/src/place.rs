//! Where in an object something stands: as clients write it, and as Go names it in errors, which
//! leaves out list positions and map keys.
//!
//! A place is a chain of borrowed steps. It is put into words only when something is wrong, so that
//! reading a good object costs no text: a path is as long as a client makes its keys, and an object
//! has as many places.

use std::fmt::{self, Write as _};

use crate::steps::steps;

/// Where something stands in an object.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// The object itself.
    Root,
    /// Where the object itself stands.
    At(&'a str),
    /// `parent.name`, or `name` at the root.
    Field(&'a Place<'a>, &'a str),
    /// The same of a map, whose keys Go does not name.
    Entry(&'a Place<'a>, &'a str),
    /// `parent.name`, also at the root.
    Dotted(&'a Place<'a>, &'a str),
    /// `parent[name]`.
    Key(&'a Place<'a>, &'a str),
    /// `parent[0]`.
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// Whether no field led here.
    pub fn is_root(&self) -> bool {
        match self {
            Place::Root => true,
            Place::At(_) | Place::Field(..) | Place::Dotted(..) | Place::Key(..) => false,
            Place::Entry(parent, _) | Place::Item(parent, _) => parent.is_root(),
        }
    }

    /// Whether its path is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Place::Root => true,
            Place::At(path) => path.is_empty(),
            _ => false,
        }
    }

    /// As clients write it.
    pub fn path(&self) -> String {
        let mut path = String::new();
        self.write(&mut path, true);
        steps(path.len());
        path
    }

    /// As Go names it.
    pub fn fields(&self) -> String {
        let mut fields = String::new();
        self.write(&mut fields, false);
        steps(fields.len());
        fields
    }

    fn write(&self, to: &mut String, with_keys: bool) {
        // Writing to a String does not fail.
        match self {
            Place::Root => {}
            Place::At(path) => to.push_str(path),
            Place::Field(parent, name) => {
                parent.write(to, with_keys);
                if !to.is_empty() {
                    to.push('.');
                }
                to.push_str(name);
            }
            Place::Entry(parent, key) => {
                parent.write(to, with_keys);
                if with_keys {
                    to.push('.');
                    to.push_str(key);
                }
            }
            Place::Dotted(parent, name) => {
                parent.write(to, with_keys);
                let _ = write!(to, ".{name}");
            }
            Place::Key(parent, key) => {
                parent.write(to, with_keys);
                let _ = write!(to, "[{key}]");
            }
            Place::Item(parent, index) => {
                parent.write(to, with_keys);
                if with_keys {
                    let _ = write!(to, "[{index}]");
                }
            }
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path())
    }
}

impl From<Place<'_>> for String {
    fn from(place: Place<'_>) -> Self {
        place.path()
    }
}

impl From<&Place<'_>> for String {
    fn from(place: &Place<'_>) -> Self {
        place.path()
    }
}
