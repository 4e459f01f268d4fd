//! The cluster of the current kubeconfig, which may be any.

use std::time::Duration;

use kube::{Client, Config};

use crate::error::{Error, Result};
use crate::progress::Step;

/// How long a cluster may take to say that it is there.
const LIMIT: Duration = Duration::from_secs(15);

/// A client of the current kubeconfig's cluster, which has answered.
pub(crate) async fn reached() -> Result<Client> {
    let config = Config::infer().await.map_err(|error| {
        Error::Other(format!(
            "no cluster is chosen: {error}; start one with `windlass up` and set KUBECONFIG as it says"
        ))
    })?;
    let url = config.cluster_url.to_string();
    let url = url.trim_end_matches('/').to_owned();
    let unreachable = |why: String| Error::Unreachable {
        url: url.clone(),
        why,
    };
    let client = Client::try_from(config).map_err(|error| unreachable(error.to_string()))?;
    let _step = Step::start(format!("asking the cluster at {url}"));
    match tokio::time::timeout(LIMIT, client.apiserver_version()).await {
        Ok(Ok(_)) => Ok(client),
        // Who may not ask for the version has reached it all the same.
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => Ok(client),
        Ok(Err(error)) => Err(unreachable(innermost(&error))),
        Err(_) => Err(unreachable(format!(
            "no answer within {} s",
            LIMIT.as_secs()
        ))),
    }
}

/// What a client's error is about in the end: `connection refused` rather than `service error`.
fn innermost(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return status.message.clone();
    }
    let mut found: &dyn std::error::Error = error;
    while let Some(source) = found.source() {
        found = source;
    }
    // A connector tells the system's reason in its own words, and does not give it as a source.
    found.to_string()
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn the_reason_is_told_without_the_layers_around_it() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = kube::Error::ReadEvents(refused);
        assert_eq!(error.source().unwrap().to_string(), "connection refused");
        assert_eq!(innermost(&error), "connection refused");
    }
}
