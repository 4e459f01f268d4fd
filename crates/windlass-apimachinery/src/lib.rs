//! What a Kubernetes API server and its clients share.
//!
//! | module | what |
//! | --- | --- |
//! | [`quantity`] | amounts: `100m`, `1.5Gi` |
//! | [`selector`], [`labels`] | label and field selectors, and the labels they match |
//! | [`names`], [`cel_names`], [`capability`] | names of objects and labels, of fields in CEL, of Linux capabilities |
//! | [`field`], [`object_meta`] | field errors, and the rules of `metadata` that hold for every kind |
//! | [`object`], [`place`], [`equality`] | looks into an object, paths in it, when two are the same |
//! | [`json`], [`go`], [`timestamp`], [`findings`] | bodies as the API server reads them, and how it words what it found |
//! | [`clock`], [`random`] | wall time and randomness, which tests replace |
//! | [`connections`] | which connection of a server is closed when there are too many |
//! | [`verb`] | what a request does |
//! | [`steps`] | counts the steps of walks over objects, for tests that bound them |

pub mod capability;
pub mod cel_names;
pub mod clock;
pub mod connections;
pub mod equality;
pub mod field;
pub mod findings;
pub mod go;
pub mod json;
pub mod labels;
pub mod names;
pub mod object;
pub mod object_meta;
pub mod place;
pub mod quantity;
pub mod random;
pub mod selector;
pub mod steps;
pub mod timestamp;
pub mod verb;

pub use clock::Clock;
pub use labels::{Labelled, Labels};
pub use quantity::Quantity;
pub use random::Random;
pub use verb::Verb;
