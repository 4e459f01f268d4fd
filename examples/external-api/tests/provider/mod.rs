//! A simulation of the provider.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use external_api_operator::NameService;
use windlass::Result;
use windlass_cluster::TestCluster;

/// The records there are, kept beside a cluster.
#[derive(Default)]
pub(crate) struct Provider(Mutex<BTreeMap<String, String>>);

impl Provider {
    pub(crate) fn beside(cluster: &TestCluster) -> Arc<Self> {
        let provider = Arc::new(Self::default());
        cluster.keep(Arc::clone(&provider));
        provider
    }

    pub(crate) fn address_of(&self, host: &str) -> Option<String> {
        self.0.lock().unwrap().get(host).cloned()
    }

    pub(crate) fn set(&self, host: &str, address: &str) {
        self.0
            .lock()
            .unwrap()
            .insert(host.to_owned(), address.to_owned());
    }
}

impl NameService for Provider {
    async fn put(&self, host: &str, address: &str) -> Result<()> {
        self.set(host, address);
        Ok(())
    }

    async fn delete(&self, host: &str) -> Result<()> {
        self.0.lock().unwrap().remove(host);
        Ok(())
    }
}
