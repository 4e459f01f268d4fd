//! The operators that come with the command.

use clap::ValueEnum;
use windlass::Operator;

/// An operator that `up --with` can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Bundled {
    /// Memcached servers: cache.example.com/v1
    Memcached,
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
