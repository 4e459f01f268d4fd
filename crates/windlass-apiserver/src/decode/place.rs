//! Where in an object something stands: as clients write it, and as Go names it in errors, which
//! leaves out list positions and map keys.
//!
//! It is put into words only when something is wrong, so that reading a good object costs no text.

use std::fmt::Write as _;

#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Root,
    Field(&'a Place<'a>, &'a str),
    Entry(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// Whether no field led here.
    pub(super) fn is_root(&self) -> bool {
        match self {
            Place::Root => true,
            Place::Field(..) => false,
            Place::Entry(parent, _) | Place::Item(parent, _) => parent.is_root(),
        }
    }

    /// As clients write it.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        self.write(&mut path, true);
        path
    }

    /// As Go names it.
    pub(super) fn fields(&self) -> String {
        let mut fields = String::new();
        self.write(&mut fields, false);
        fields
    }

    fn write(&self, to: &mut String, with_keys: bool) {
        match self {
            Place::Root => {}
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
            Place::Item(parent, index) => {
                parent.write(to, with_keys);
                if with_keys {
                    // Writing to a String does not fail.
                    let _ = write!(to, "[{index}]");
                }
            }
        }
    }
}
