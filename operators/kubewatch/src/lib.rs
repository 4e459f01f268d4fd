//! kubewatch: sends what happens to objects to chats, mail and HTTP servers.
//!
//! | step | where |
//! | --- | --- |
//! | what to watch and where to send it: the file, and the kind | [`config`], [`environment`], [`file`] |
//! | the kinds that can be watched | [`resource`] |
//! | what happened to the objects of a kind, from a known version on | [`source`] |
//! | nothing secret leaves | [`redact`] |
//! | which changes are worth a message | [`filter`], [`advanced`] |
//! | what a message looks like at each receiver | [`handler`] |
//! | how it is sent | [`transport`] |
//! | sending in order, again and again, with limits | [`delivery`] |
//! | how far messages have got, over restarts | [`ledger`], [`progress`] |
//! | all of these together | [`engine`] |
//! | an engine for each `Watch`, and its status | [`controller`], [`report`] |

mod advanced;
pub mod config;
mod controller;
mod delivery;
mod engine;
mod environment;
mod file;
mod filter;
mod handler;
mod ledger;
mod notice;
mod progress;
mod redact;
mod report;
mod resource;
mod sample;
mod source;
pub mod transport;

use std::sync::Arc;

use windlass::{Controller, Operator};

pub use self::config::{Watch, WatchSpec, WatchStatus};
use self::controller::{Wake, Watcher, rights};
pub use self::file::read;
use self::transport::{Network, Transport};

/// The operator, for `Watch` objects.
pub fn operator() -> Operator {
    operator_with(Arc::new(Network))
}

/// The operator, with something else than the network to send with.
pub fn operator_with(transport: Arc<dyn Transport>) -> Operator {
    let wake = Wake::default();
    let woken = wake.clone();
    let declare =
        move |declare: &mut windlass::Declare<Watch>| Watcher::declare(declare, &transport, &wake);
    Operator::new("kubewatch-operator")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(
            Controller::of::<Watch>()
                .reconciler(declare)
                .source("engines", move || woken.open()),
        )
        .sample(&sample::watch())
}

/// The program: the operator, and what `.kubewatch.yaml` and the environment ask for.
pub fn program() -> Operator {
    let transport: Arc<dyn Transport> = Arc::new(Network);
    let of_file = Arc::clone(&transport);
    operator_with(transport).task("file", rights(), move |context| {
        file::run(context, Arc::clone(&of_file))
    })
}

/// The operator for one configuration instead of a file, with something else than the network.
pub fn operator_of(config: WatchSpec, transport: Arc<dyn Transport>) -> Operator {
    Operator::new("kubewatch-operator")
        .version(env!("CARGO_PKG_VERSION"))
        .task("file", rights(), move |context| {
            file::run_config(context, config.clone(), Arc::clone(&transport))
        })
}
