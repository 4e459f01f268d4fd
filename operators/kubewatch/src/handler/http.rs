//! HTTP servers that read JSON.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::json;

use crate::config::{Url, Webhook};
use crate::notice::Notice;
use crate::transport::{Outgoing, Post, Trust};

pub(super) fn webhook(of: &Webhook, notice: &Notice, now: Timestamp) -> Outgoing {
    let body = json!({
        "eventmeta": {
            "kind": notice.kind,
            "name": notice.name,
            "namespace": notice.namespace,
            "reason": notice.reason.to_string(),
        },
        "text": notice.message(),
        "time": now,
    });
    let mut post = Post::json(&of.url, &body);
    post.trust = match (of.tlsskip, of.cert.as_str()) {
        (true, _) => Trust::Anyone,
        (false, "") => Trust::System,
        (false, file) => Trust::File(PathBuf::from(file)),
    };
    Outgoing::Post(post)
}

pub(super) fn cloud_event(of: &Url, notice: &Notice, now: Timestamp) -> Outgoing {
    let body = json!({
        "specversion": "1.0",
        "type": "KUBERNETES_TOPOLOGY_CHANGE",
        "source": "https://github.com/aantn/kubewatch",
        "subject": "",
        "id": notice.id,
        "time": now,
        "datacontenttype": "application/json",
        "data": {
            "operation": notice.reason.operation(),
            "kind": notice.kind,
            "clusterUid": "TODO",
            "description": notice.message(),
            "apiVersion": notice.api_version,
            "obj": notice.object.as_deref(),
            "oldObj": notice.old.as_deref(),
        },
    });
    Outgoing::Post(Post::json(&of.url, &body))
}
