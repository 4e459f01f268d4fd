//! The operators that come with the command.

use clap::ValueEnum;
use windlass::Operator;
use windlass_declarative::metacontroller::{self, Options};

/// An operator that `up --with` can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bundled {
    Demo,
    Etcd,
    Kubewatch,
    Memcached,
    Metacontroller,
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
    /// Controllers whose logic is a hook: metacontroller.k8s.io/v1alpha1
    Metacontroller,
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
            Self::Metacontroller => &[Bundled::Metacontroller],
            Self::Sidecarset => &[Bundled::Sidecarset],
            Self::Usage => &[Bundled::Usage],
            Self::All => &[
                Bundled::Demo,
                Bundled::Etcd,
                Bundled::Kubewatch,
                Bundled::Memcached,
                Bundled::Metacontroller,
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
            Self::Metacontroller => "metacontroller",
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
            // Programs are run for those who may run pods here, which are programs as well.
            Self::Metacontroller => metacontroller::operator(Options {
                exec: true,
                ..Options::default()
            }),
            Self::Sidecarset => sidecarset_operator::operator(),
            Self::Usage => usage_operator::operator(),
        }
    }
}
