//! A simulation of the provider.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use external_api_operator::{Provider, operator};
use http::{Method, Request, StatusCode};
use windlass::{Operator, Result};
use windlass_cluster::TestCluster;

/// The records there are, kept beside a cluster.
#[derive(Default)]
pub(crate) struct NameService(Mutex<BTreeMap<String, String>>);

impl NameService {
    /// The operator of a cluster, with a name service of its own.
    pub(crate) fn operator_beside(cluster: &TestCluster) -> Operator {
        let service = Arc::new(Self::default());
        cluster.keep(Arc::clone(&service));
        operator("http://names.example.com".to_owned(), service)
    }

    pub(crate) fn address_of(&self, host: &str) -> Option<String> {
        self.0.lock().unwrap().get(host).cloned()
    }

    pub(crate) fn set(&self, host: &str, address: &str) {
        let mut records = self.0.lock().unwrap();
        records.insert(host.to_owned(), address.to_owned());
    }
}

impl Provider for NameService {
    async fn send(&self, request: Request<String>) -> Result<StatusCode> {
        assert_eq!(request.uri().host(), Some("names.example.com"));
        let host = request.uri().path().strip_prefix("/records/").unwrap();
        Ok(match *request.method() {
            Method::PUT if request.body().is_empty() => StatusCode::BAD_REQUEST,
            Method::PUT => {
                self.set(host, request.body());
                StatusCode::NO_CONTENT
            }
            Method::DELETE => match self.0.lock().unwrap().remove(host) {
                Some(_) => StatusCode::NO_CONTENT,
                None => StatusCode::NOT_FOUND,
            },
            _ => StatusCode::METHOD_NOT_ALLOWED,
        })
    }
}
