//! What a cluster can do, as templates see it.

use futures::stream::{FuturesUnordered, StreamExt as _};
use kube::Client;
use windlass::{Error, Result};
use windlass_charts::Capabilities;

/// Asks the API server for its version and for everything it serves.
pub(super) async fn of(client: Client) -> Result<Capabilities> {
    let version = client.apiserver_version().await.map_err(Error::other)?;
    let mut versions = Vec::new();
    for version in client
        .list_core_api_versions()
        .await
        .map_err(Error::other)?
        .versions
    {
        versions.push(version);
    }
    let groups = client.list_api_groups().await.map_err(Error::other)?;
    for group in groups.groups {
        versions.extend(
            group
                .versions
                .into_iter()
                .map(|version| version.group_version),
        );
    }
    let mut lists: FuturesUnordered<_> = versions
        .iter()
        .map(|version| {
            let client = client.clone();
            async move {
                let list = if version.contains('/') {
                    client.list_api_group_resources(version).await
                } else {
                    client.list_core_api_resources(version).await
                };
                (version.clone(), list)
            }
        })
        .collect();
    let mut api_versions = versions.clone();
    while let Some((version, list)) = lists.next().await {
        // A version that an extension serves may be away; what it has is not known then.
        let Ok(list) = list else { continue };
        let kinds = list.resources.into_iter();
        let kinds = kinds.filter(|resource| !resource.name.contains('/'));
        api_versions.extend(kinds.map(|resource| format!("{version}/{}", resource.kind)));
    }
    api_versions.sort();
    api_versions.dedup();
    Ok(Capabilities {
        kube_version: version.git_version,
        api_versions,
    })
}
