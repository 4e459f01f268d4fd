//! The garbage collector: what nobody owns any more goes.
//!
//! An object names its owners by uid. When all of them are gone it goes too (**background**). An
//! owner deleted in the **foreground** waits, by a finalizer, until the dependents that block it
//! are gone; one deleted as an **orphan** waits until its dependents no longer name it. References
//! to an owner that never was, that is another object of the same name, or that lives in another
//! namespace count as references to one that is gone.
//!
//! The [`graph`] holds what the watches show of every object's metadata and says what is worth
//! looking at; the [`verdict`] says what becomes of it; the [`collector`] asks, verifies and acts;
//! [`kinds`] are watched as their definitions come and go.

mod collector;
mod graph;
mod kinds;
mod monitor;
mod queue;
mod request;
mod verdict;

use windlass::{
    Operator,
    handle::{Access, Verb},
};

use self::collector::Collector;

/// Adds the garbage collector.
pub(crate) fn add_to(operator: Operator) -> Operator {
    let verbs = [
        Verb::Get,
        Verb::List,
        Verb::Watch,
        Verb::Patch,
        Verb::Delete,
    ];
    operator.task("garbage-collector", [Access::everything(verbs)], |ctx| {
        let collector = Collector::new(ctx);
        async move { Ok(collector.run().await?) }
    })
}
