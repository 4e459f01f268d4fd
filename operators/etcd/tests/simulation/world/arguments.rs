//! [`Arguments`]: what a member is started with, read from the command line of etcd.

use std::collections::BTreeMap;

/// The flags of etcd that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) name: String,
    pub(crate) token: String,
    pub(crate) existing: bool,
    /// Peer URLs by name.
    pub(crate) initial_cluster: BTreeMap<String, String>,
    pub(crate) peer_url: String,
    pub(crate) client_url: String,
    pub(crate) data_dir: String,
}

impl Arguments {
    /// Reads `--flag=value` and `--flag value`.
    pub(crate) fn parse<'a>(line: impl IntoIterator<Item = &'a str>) -> Self {
        let mut flags: BTreeMap<&str, &str> = BTreeMap::new();
        let mut line = line.into_iter().peekable();
        while let Some(word) = line.next() {
            let Some(flag) = word.strip_prefix("--") else {
                continue;
            };
            match flag.split_once('=') {
                Some((flag, value)) => flags.insert(flag, value),
                None => flags.insert(flag, line.next().unwrap_or_default()),
            };
        }
        let flag = |name: &str| flags.get(name).copied().unwrap_or_default().to_owned();
        let members = flag("initial-cluster");
        let members = members.split(',').filter_map(|pair| pair.split_once('='));
        Self {
            name: flag("name"),
            token: flag("initial-cluster-token"),
            existing: flag("initial-cluster-state") == "existing",
            initial_cluster: members
                .map(|(name, url)| (name.to_owned(), url.to_owned()))
                .collect(),
            peer_url: flag("initial-advertise-peer-urls"),
            client_url: flag("advertise-client-urls"),
            data_dir: flag("data-dir"),
        }
    }
}
