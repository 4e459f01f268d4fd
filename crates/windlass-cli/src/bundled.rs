//! The operators that come with the command.

use clap::ValueEnum;
use windlass::Operator;

/// An operator that `up --with` can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bundled {
    Memcached,
}

/// What `up --with` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum With {
    /// Memcached servers: cache.example.com/v1
    Memcached,
    /// Every operator that comes with the command
    All,
}

impl With {
    pub(crate) fn operators(self) -> &'static [Bundled] {
        match self {
            Self::Memcached | Self::All => &[Bundled::Memcached],
        }
    }
}

impl Bundled {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memcached => "memcached",
        }
    }

    pub(crate) fn operator(self) -> Operator {
        match self {
            Self::Memcached => memcached_operator::operator(),
        }
    }

    /// YAML to try it with.
    pub(crate) fn sample(self) -> &'static str {
        match self {
            Self::Memcached => memcached_operator::SAMPLE,
        }
    }
}
