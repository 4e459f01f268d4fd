//! The provider's API over HTTP: `PUT` and `DELETE` of `/records/HOST`.

use http::{Method, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use windlass::{Error, Result};

use crate::NameService;

/// The environment variable that names the API's address.
pub const ADDRESS: &str = "NAME_SERVICE";

/// A client of the provider.
pub struct HttpClient {
    address: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl HttpClient {
    /// A client of the API at this address, such as `http://127.0.0.1:8053`.
    pub fn new(address: impl Into<String>) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let address = address.into();
        Self { address, client }
    }

    /// A client of the API that the environment names.
    pub fn from_env() -> Self {
        Self::new(std::env::var(ADDRESS).unwrap_or_else(|_| "http://127.0.0.1:8053".to_owned()))
    }

    async fn send(&self, method: Method, host: &str, body: String) -> Result<StatusCode> {
        let uri = format!("{}/records/{host}", self.address);
        let request = Request::builder().method(method).uri(uri);
        let answer = self.client.request(request.body(Full::from(body))?).await?;
        Ok(answer.status())
    }
}

impl NameService for HttpClient {
    async fn put(&self, host: &str, address: &str) -> Result<()> {
        match self.send(Method::PUT, host, address.to_owned()).await? {
            status if status.is_success() => Ok(()),
            // It will not be taken next time either: wait until the object changes.
            status if status.is_client_error() => {
                Err(Error::terminal(format!("cannot put {host}: {status}")))
            }
            status => Err(Error::other(format!("cannot put {host}: {status}"))),
        }
    }

    async fn delete(&self, host: &str) -> Result<()> {
        match self.send(Method::DELETE, host, String::new()).await? {
            status if status.is_success() || status == StatusCode::NOT_FOUND => Ok(()),
            status => Err(Error::other(format!("cannot delete {host}: {status}"))),
        }
    }
}
