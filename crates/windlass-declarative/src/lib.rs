//! Operators without code: what belongs to an object is a function of it.
//!
//! | noun | what it is |
//! | --- | --- |
//! | [`Renderer`] | computes, from a parent and what is there, what should be there: a hook, a chart, a plan |
//! | [`Input`] | what a renderer is given: the parent, its children, what is related to it |
//! | [`Desired`] | what a renderer answers: objects in stages, a status, labels, a timer |
//! | [`Declarative`] | a renderer as a controller of the framework |
//! | [`Inventory`] | what was made for a parent, where owner references do not say so |
//!
//! The engine does the rest, and keeps these rules whatever the renderer:
//!
//! - The finalizer and the inventory are written before the first object is.
//! - An object is deleted only after a render that succeeded and all of whose stages were applied.
//!   A renderer that fails deletes nothing.
//! - What is in a stage is applied when everything in the stages before it is ready.
//! - Deletion needs the renderer only if the renderer asked for that
//!   ([`Renderer::finalizes`]).
//! - Objects are written by server-side apply with one field manager, and only if that would change
//!   them. A reconcile sees what the one before it wrote.

mod apply;
mod declarative;
mod deletion;
mod desired;
mod engine;
pub mod helm;
mod input;
mod inventory;
pub mod metacontroller;
mod recorded;
mod renderer;

pub use self::{
    declarative::Declarative,
    desired::{Check, Desired, Method, Ready, Wanted},
    input::{Input, Objects},
    inventory::{Entry, Inventory, Outcome},
    recorded::ParentInventory,
    renderer::{Renderer, RendererContext},
};
