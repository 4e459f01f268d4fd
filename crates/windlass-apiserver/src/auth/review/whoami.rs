//! `SelfSubjectReview`: who am I?

use serde_json::{Value, json};

use super::user_info;
use crate::verbs::Call;

pub(super) fn answer(call: &Call<'_>, review: &Value) -> Value {
    json!({
        "kind": review["kind"],
        "apiVersion": review["apiVersion"],
        "metadata": {"creationTimestamp": call.server.clock().now_seconds()},
        "status": {"userInfo": user_info(call.who)},
    })
}
