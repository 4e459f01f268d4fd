//! `TokenReview`: whose token is this?

use serde_json::{Value, json};

use super::user_info;
use crate::auth::account::{self, TokenError};
use crate::status::{ApiError, Result};
use crate::verbs::Call;

pub(super) fn answer(call: &Call<'_>, mut review: Value) -> Result<Value> {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(ApiError::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let audiences: Vec<String> = match review["spec"]["audiences"].as_array() {
        Some(given) if !given.is_empty() => given
            .iter()
            .filter_map(|audience| audience.as_str().map(str::to_owned))
            .collect(),
        _ => vec![call.server.accounts().issuer().to_owned()],
    };
    review["status"] = match account::authenticate(call.server, token, &audiences) {
        Ok((who, audiences)) => json!({
            "authenticated": true,
            "user": user_info(&who),
            "audiences": audiences,
        }),
        Err(TokenError::Invalid) => json!({"user": {}, "error": TokenError::Invalid.to_string()}),
        Err(error) => {
            json!({"user": {}, "error": format!("[{}, {error}]", TokenError::Invalid)})
        }
    };
    Ok(review)
}
