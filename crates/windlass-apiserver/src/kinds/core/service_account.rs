//! `ServiceAccount`.

use serde_json::Value;

use crate::kinds::{Strategy, Writing};
use crate::validation::warnings::pod as pod_warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ServiceAccount;

impl Strategy for ServiceAccount {
    fn answers_deleted(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value, _: &Writing<'_>) -> Vec<String> {
        keep_secret_names(object);
        Vec::new()
    }

    fn prepare_update(&self, new: &mut Value, _: &Value) {
        keep_secret_names(new);
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pod_warnings::of_account(object)
    }
}

/// Of the secrets of an account only their names count.
fn keep_secret_names(account: &mut Value) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten() {
        if let Some(secret) = secret.as_object_mut() {
            secret.retain(|field, _| field == "name");
        }
    }
}
