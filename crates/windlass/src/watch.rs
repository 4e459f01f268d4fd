//! What a controller watches, and which objects a change triggers a reconcile of.
//!
//! References instead of mapping functions: the methods of [`Watched`] say how the reconciled
//! object refers to what it reads, and the framework keeps the index of the other direction,
//! including references to objects that do not exist yet, and labels that an object had before.
//!
//! | how | what a change triggers |
//! | --- | --- |
//! | [`Watched::referenced_by`] | the objects that name the changed object |
//! | [`Watched::selected_by`] | the objects whose selector matches its labels, before or after the change |
//! | [`Watched::mapped_to`] | the keys that a function computes from it |
//! | [`Watched::handled_by`] | what a function says that sees the old and the new object |
//! | [`Watched::triggering_all`] | every object of the controller |
//! | [`Watched::triggering_none`] | nothing: it is only read |
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
//! use windlass::{Controller, Watched, watch::{Predicate, Scope}};
//!
//! Controller::of_existing::<ConfigMap>()
//!     .reads(Secret::referenced_by(|map: &ConfigMap| map.metadata.name.clone()))
//!     .reads(
//!         Pod::selected_by(|map: &ConfigMap| map.metadata.labels.clone())
//!             .only(Predicate::labels_changed())
//!             .scoped(Scope::all().field("status.phase", "Running")),
//!     );
//! ```
//!
//! A [`Scope`] limits what is watched and kept in memory; controllers that use the same kind and
//! scope share one watch. A [`Predicate`] limits what triggers a reconcile; the cache follows
//! every change all the while. A [`Select`] says which objects of a cache a list returns.

pub use kube::core::{Expression, Selector};

pub use crate::declare::{Changed, IntoSelector, Predicate, Scope, Select, Watch, Watched};
