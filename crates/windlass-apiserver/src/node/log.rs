//! `GET …/pods/<name>/log`: fetched from the node and passed on as it comes.

use futures::StreamExt;
use http::StatusCode;
use http_body_util::BodyExt;

use super::{address_of, client, container_of, encode};
use crate::http::{Answer, Body, BodyError};
use crate::status::{ApiError, Result};
use crate::verbs::Call;

/// Query parameters of a log request that the node understands.
const PARAMETERS: &[&str] = &[
    "follow",
    "previous",
    "tailLines",
    "limitBytes",
    "sinceSeconds",
    "sinceTime",
    "timestamps",
];

/// Answers with a log.
pub(crate) async fn logs(call: &Call<'_>) -> Result<Answer> {
    let pod = call.find()?.value();
    let container = container_of(&pod, call)?;
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        // Nothing has run yet, so nothing was logged.
        return Ok(Answer::text(StatusCode::OK, ""));
    }
    let address = address_of(call, node)?;
    let client = client(call, node)?;
    let namespace = call.request.namespace.as_deref().unwrap_or_default();
    let parameters: Vec<String> = PARAMETERS
        .iter()
        .filter_map(|name| Some(format!("{name}={}", encode(call.query.get(name)?))))
        .collect();
    let path = format!(
        "/containerLogs/{namespace}/{}/{container}?{}",
        call.name(),
        parameters.join("&")
    );
    let unreachable = |error: String| {
        ApiError::internal(format!(
            "Get \"https://{}:{}{}\": {error}",
            address.host,
            address.port,
            path.strip_suffix('?').unwrap_or(&path)
        ))
    };
    let response = client.send(&address, &path, &[]).await.map_err(unreachable)?;
    if !response.status().is_success() {
        let code = response.status();
        let said = response
            .into_body()
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        return Err(ApiError::new(
            code,
            if code == StatusCode::NOT_FOUND {
                "NotFound"
            } else {
                "BadRequest"
            },
            said,
        ));
    }
    let chunks = response
        .into_body()
        .into_data_stream()
        .map(|chunk| chunk.map_err(|error| BodyError(error.to_string())));
    Ok(Answer::stream("text/plain", Body::stream(chunks)))
}

