//! Builds, scales and heals etcd clusters from `EtcdCluster` custom resources.
//!
//! | step | where |
//! | --- | --- |
//! | the kind: what is asked for, what there is, what is under way | [`kind`] |
//! | what is asked of etcd | [`etcd`] |
//! | names and URLs of members | [`member`] |
//! | what is known when the next step is decided | [`view`] |
//! | which one step is next, and why | [`decision`], [`refusal`] |
//! | what a cluster consists of in Kubernetes | [`objects`] |
//! | what a person is told | [`status`], [`told`] |
//! | the shell that looks, decides, writes down and acts | [`reconciler`] |
//!
//! Everything but the last is pure functions; etcd itself is behind a trait, so that tests can put a
//! simulation in its place.

pub mod backup;
pub mod decision;
pub mod etcd;
mod kind;
pub mod member;
mod objects;
mod reconciler;
mod refusal;
pub mod restore;
mod review;
pub mod snapshot;
mod status;
pub mod store;
mod told;
pub mod view;

use std::{sync::Arc, time::Duration};

use windlass::{Controller, Operator, Webhook};

use self::{
    backup::{BackupKeeper, EtcdBackup},
    etcd::Etcd,
    reconciler::Caretaker,
    restore::{EtcdRestore, Restorer},
    store::Stores,
};
pub use self::{
    kind::{
        Action, EtcdCluster, EtcdClusterSpec, EtcdClusterStatus, Intent, MemberRecord,
        MembersStatus, PodPolicy, Storage,
    },
    objects::{CLUSTER, CLUSTER_UID, MEMBER},
};

/// The operator's name.
const NAME: &str = "etcd-operator";

/// How many clusters are looked at at once. Most of the time of a look is spent waiting for etcd, so
/// a cluster that is slow to answer takes nothing from another.
const AT_ONCE: usize = 256;

/// How many backups are taken at once: each of them holds some parts in memory.
const BACKUPS_AT_ONCE: usize = 4;

/// Each attempt has a limit of its own, which is never longer.
const LONGEST_BACKUP: Duration = Duration::from_hours(25);

/// The operator.
pub fn operator() -> Operator {
    operator_with(
        Arc::new(etcd::EtcdClient::default()),
        Arc::new(store::Remote::default()),
    )
}

/// The image of this program, which the pods of seeds need.
fn own_image() -> String {
    windlass::run::own_image(NAME, env!("CARGO_PKG_VERSION"))
}

/// The operator, with another way to etcd and to stores.
pub fn operator_with(etcd: Arc<dyn Etcd>, stores: Arc<dyn Stores>) -> Operator {
    let (backed_up, restored) = (Arc::clone(&etcd), Arc::clone(&etcd));
    let (kept_in, restored_from) = (Arc::clone(&stores), Arc::clone(&stores));
    Operator::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .controller(
            Controller::of::<EtcdCluster>()
                .named("cluster")
                .concurrency(AT_ONCE)
                .reconciler(move |declare| Caretaker::declare(declare, Arc::clone(&etcd))),
        )
        .controller(
            Controller::of::<EtcdBackup>()
                .named("backup")
                .concurrency(BACKUPS_AT_ONCE)
                .timeout(LONGEST_BACKUP)
                .reconciler(move |declare| {
                    BackupKeeper::declare(declare, Arc::clone(&backed_up), Arc::clone(&kept_in))
                }),
        )
        .controller(
            Controller::of::<EtcdRestore>()
                .named("restore")
                .concurrency(BACKUPS_AT_ONCE)
                .timeout(LONGEST_BACKUP)
                .reconciler(move |declare| {
                    Restorer::declare(declare, Arc::clone(&restored), Arc::clone(&restored_from))
                }),
        )
        .helper(restore::fetch::NAME, move |arguments: Vec<String>| {
            let stores = Arc::clone(&stores);
            async move {
                let argument = arguments.first().map_or("", String::as_str);
                let fetched = restore::fetch::fetch(&*stores, argument).await;
                fetched.map_err(windlass::Error::other)
            }
        })
        .program("etcd-cluster-operator", ["cluster"])
        .program("etcd-backup-operator", ["backup"])
        .program("etcd-restore-operator", ["restore"])
        .webhook(Webhook::of::<EtcdCluster>().validating(review::judge))
        .sample(&EtcdCluster::new(
            "example-etcd-cluster",
            EtcdClusterSpec {
                size: 3,
                version: kind::VERSION.to_owned(),
                ..EtcdClusterSpec::default()
            },
        ))
}
