//! `GET /containerLogs/<namespace>/<pod>/<container>`: what a container has written.

use std::io;

use futures::{TryStreamExt, stream};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::{Body, Server, text};
use crate::log::{LogOptions, Reader};
use crate::runtime::Runtime;

/// Answers with a log, or with why there is none.
pub(super) async fn logs<R: Runtime>(
    server: &Server<R>,
    namespace: &str,
    pod: &str,
    container: &str,
    query: &str,
) -> Response<Body> {
    let options = match LogOptions::from_query(query) {
        Ok(options) => options,
        Err(error) => return text(StatusCode::BAD_REQUEST, error.to_string()),
    };
    let Some(found) = server.directory.find(namespace, pod) else {
        let message = format!("pod \"{pod}\" not found");
        return text(StatusCode::NOT_FOUND, message);
    };
    let spec = found.spec.as_ref();
    let known = spec.is_some_and(|spec| {
        let init = spec.init_containers.iter().flatten();
        let mut all = init.chain(&spec.containers);
        all.any(|known| known.name == container)
    });
    if !known {
        let message = format!("container \"{container}\" is not in pod \"{pod}\"");
        return text(StatusCode::NOT_FOUND, message);
    }
    let uid = found.metadata.uid.as_deref().unwrap_or_default();
    let Some(log) = server.runtime.log(uid, container, options.previous) else {
        // As kubelet puts it.
        let message = if options.previous {
            format!("previous terminated container \"{container}\" in pod \"{pod}\" not found")
        } else {
            let reason = waiting_reason(&found, container);
            format!("container \"{container}\" in pod \"{pod}\" is waiting to start: {reason}")
        };
        return text(StatusCode::BAD_REQUEST, message);
    };
    let now = server.clock.now();
    match Reader::open(&log.path, &options, now, log.progress).await {
        Ok(reader) => {
            let pieces = stream::try_unfold(reader, |mut reader| async move {
                let piece = reader.next().await?;
                Ok::<_, io::Error>(piece.map(|piece| (piece, reader)))
            });
            let body = StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync();
            let mut response = Response::new(body);
            response.headers_mut().insert(
                http::header::CONTENT_TYPE,
                http::HeaderValue::from_static("text/plain; charset=utf-8"),
            );
            response
        }
        Err(error) => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("cannot open the log: {error}"),
        ),
    }
}

fn waiting_reason(pod: &k8s_openapi::api::core::v1::Pod, container: &str) -> String {
    let status = pod.status.as_ref();
    let mut statuses = status.iter().flat_map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    });
    statuses
        .find(|status| status.name == container)
        .and_then(|status| status.state.as_ref()?.waiting.as_ref()?.reason.clone())
        .unwrap_or_else(|| "ContainerCreating".to_owned())
}
