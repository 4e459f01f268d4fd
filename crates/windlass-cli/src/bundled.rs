//! The operators that come with the command.

use clap::ValueEnum;
use windlass::Operator;

/// An operator that `up --with` can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bundled {
    Demo,
    Etcd,
    Kubewatch,
    Memcached,
    Sidecarset,
    Usage,
}

/// What `up --with` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum With {
    /// The tutorial's operator: demo.example.com/v1
    Demo,
    /// Etcd clusters: etcd.database.coreos.com/v1beta2
    Etcd,
    /// Messages about changes: kubewatch.example.com/v1alpha1
    Kubewatch,
    /// Memcached servers: cache.example.com/v1
    Memcached,
    /// Sidecar containers for pods: apps.kruise.io/v1alpha1
    Sidecarset,
    /// Reports of what pods request and use: usage.example.com/v1alpha1
    Usage,
    /// Every operator that comes with the command
    All,
}

impl With {
    pub(crate) fn operators(self) -> &'static [Bundled] {
        match self {
            Self::Demo => &[Bundled::Demo],
            Self::Etcd => &[Bundled::Etcd],
            Self::Kubewatch => &[Bundled::Kubewatch],
            Self::Memcached => &[Bundled::Memcached],
            Self::Sidecarset => &[Bundled::Sidecarset],
            Self::Usage => &[Bundled::Usage],
            Self::All => &[
                Bundled::Demo,
                Bundled::Etcd,
                Bundled::Kubewatch,
                Bundled::Memcached,
                Bundled::Sidecarset,
                Bundled::Usage,
            ],
        }
    }
}

impl Bundled {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Etcd => "etcd",
            Self::Kubewatch => "kubewatch",
            Self::Memcached => "memcached",
            Self::Sidecarset => "sidecarset",
            Self::Usage => "usage",
        }
    }

    pub(crate) fn operator(self) -> Operator {
        match self {
            Self::Demo => demo_operator::operator(),
            Self::Etcd => etcd_operator::operator(),
            Self::Kubewatch => kubewatch_operator::operator(),
            Self::Memcached => memcached_operator::operator(),
            Self::Sidecarset => sidecarset_operator::operator(),
            Self::Usage => usage_operator::operator(),
        }
    }
}
