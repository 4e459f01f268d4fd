//! How messages leave: a trait, so that tests receive them; and the network.

mod network;
mod smtp;
mod tls;

use std::path::PathBuf;

use async_trait::async_trait;
use serde_json::Value;

use crate::config::Smtp;
pub use network::Network;

/// What is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Outgoing {
    /// An HTTP request.
    Post(Post),
    /// A mail.
    Mail(Mail),
}

/// An HTTP request.
#[derive(Clone, Debug, PartialEq)]
pub struct Post {
    /// Where to.
    pub url: String,
    /// What it carries.
    pub content_type: &'static str,
    /// Who sends it.
    pub authorization: Option<String>,
    /// What it carries.
    pub body: String,
    /// Whom to believe that they are the receiver.
    pub trust: Trust,
}

/// Whom to believe that they are the receiver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// The authorities of the system.
    System,
    /// The authorities in a file.
    File(PathBuf),
    /// Anyone.
    Anyone,
}

/// A mail.
#[derive(Clone, Debug, PartialEq)]
pub struct Mail {
    /// The server, sender and receivers.
    pub server: Smtp,
    /// Headers and text.
    pub content: String,
}

/// Why something could not be sent. No message holds a URL: the secret of a webhook is a part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It may be accepted later.
    #[error("cannot send message: {0}")]
    Failed(String),
    /// It will never be accepted.
    #[error("message was refused: {0}")]
    Refused(String),
}

/// Sends what is to be sent.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends one message; returns once the receiver has accepted it.
    async fn send(&self, outgoing: &Outgoing) -> Result<(), SendError>;
}

impl Post {
    pub(crate) fn json(url: &str, body: &Value) -> Self {
        Self {
            url: url.to_owned(),
            content_type: "application/json",
            authorization: None,
            body: body.to_string(),
            trust: Trust::System,
        }
    }

    pub(crate) fn form(url: &str, fields: &[(&str, &str)]) -> Self {
        let fields = fields.iter();
        let fields: Vec<String> = fields
            .map(|(name, value)| format!("{name}={}", escaped(value)))
            .collect();
        Self {
            url: url.to_owned(),
            content_type: "application/x-www-form-urlencoded",
            authorization: None,
            body: fields.join("&"),
            trust: Trust::System,
        }
    }
}

/// A value of a form.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte));
            }
            b' ' => text.push('+'),
            _ => {
                use std::fmt::Write as _;
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}
