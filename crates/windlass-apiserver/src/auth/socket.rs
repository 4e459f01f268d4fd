//! Tokens among the subprotocols of a WebSocket, where browsers can put them: they set no headers.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, HeaderName};
use http::{HeaderMap, HeaderValue};

use crate::status::{ApiError, Result};

const PROTOCOL: HeaderName = HeaderName::from_static("sec-websocket-protocol");
const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// Moves a token to where others have theirs; the other subprotocols stay. One of them must be
/// there, or there would be none to agree on.
pub(crate) fn move_token(headers: &mut HeaderMap) -> Result<()> {
    let is_token = |protocol: &&str| protocol.starts_with(PREFIX);
    let offered: Vec<String> = headers
        .get_all(&PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|protocol| protocol.trim().to_owned())
        .collect();
    let mut tokens = offered.iter().map(String::as_str).filter(is_token);
    let Some(token) = tokens.next() else {
        return Ok(());
    };
    let others = offered.iter().map(String::as_str);
    let others: Vec<&str> = others.filter(|protocol| !is_token(protocol)).collect();
    let decoded = URL_SAFE_NO_PAD.decode(&token[PREFIX.len()..]);
    let decoded = decoded.ok().and_then(|token| String::from_utf8(token).ok());
    let (Some(decoded), None, false) = (decoded, tokens.next(), others.is_empty()) else {
        return Err(ApiError::unauthorized());
    };
    if decoded.is_empty() || headers.contains_key(AUTHORIZATION) {
        return Ok(());
    }
    let invalid = |_| ApiError::unauthorized();
    let bearer = HeaderValue::from_str(&format!("Bearer {decoded}")).map_err(invalid)?;
    let others = HeaderValue::from_str(&others.join(",")).map_err(invalid)?;
    headers.insert(AUTHORIZATION, bearer);
    headers.insert(PROTOCOL, others);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offering(protocols: &str) -> (Result<()>, HeaderMap) {
        let mut headers = HeaderMap::new();
        headers.insert(PROTOCOL, HeaderValue::from_str(protocols).unwrap());
        (move_token(&mut headers), headers)
    }

    #[test]
    fn token_among_subprotocols_becomes_a_bearer_token() {
        let (moved, headers) =
            offering("base64url.bearer.authorization.k8s.io.YS5iLmM, v4.channel.k8s.io");
        assert!(moved.is_ok());
        assert_eq!(headers[AUTHORIZATION], "Bearer a.b.c");
        assert_eq!(headers[&PROTOCOL], "v4.channel.k8s.io");
    }

    #[test]
    fn token_is_refused_alone_twice_or_in_another_encoding() {
        for offered in [
            "base64url.bearer.authorization.k8s.io.YS5iLmM",
            "base64url.bearer.authorization.k8s.io.YQ,base64url.bearer.authorization.k8s.io.YQ,x",
            "base64url.bearer.authorization.k8s.io.?,x",
        ] {
            assert!(offering(offered).0.is_err(), "{offered}");
        }
    }

    #[test]
    fn other_subprotocols_are_left_alone() {
        let (moved, headers) = offering("v5.channel.k8s.io,v4.channel.k8s.io");
        assert!(moved.is_ok() && !headers.contains_key(AUTHORIZATION));
        assert_eq!(headers[&PROTOCOL], "v5.channel.k8s.io,v4.channel.k8s.io");
    }
}
