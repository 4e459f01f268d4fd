//! A receiver in the process of the test: it remembers messages, and can be down or refuse them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kubewatch_operator::transport::{Outgoing, SendError, Transport};
use serde_json::Value;

#[derive(Default)]
pub(crate) struct Receiver {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    messages: Vec<(String, Value)>,
    answer: Answer,
}

/// What the receiver does with messages.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Answer {
    #[default]
    Accept,
    Fail,
    Refuse,
}

impl Receiver {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn answer(&self, answer: Answer) {
        self.state.lock().unwrap().answer = answer;
    }

    /// The bodies of all messages that were accepted, each with where it went.
    pub(crate) fn messages(&self) -> Vec<(String, Value)> {
        self.state.lock().unwrap().messages.clone()
    }

    /// What webhooks were told: `Pod web Created`.
    pub(crate) fn lines(&self) -> Vec<String> {
        let messages = self.messages();
        let bodies = messages.iter().map(|(_, body)| body);
        bodies
            .filter_map(|body| {
                let meta = body.get("eventmeta")?;
                let text = |field: &str| meta[field].as_str().unwrap_or_default();
                Some(format!(
                    "{} {} {}",
                    text("kind"),
                    text("name"),
                    text("reason")
                ))
            })
            .collect()
    }

    /// Forgets all messages, and returns their lines.
    pub(crate) fn take(&self) -> Vec<String> {
        let lines = self.lines();
        self.state.lock().unwrap().messages.clear();
        lines
    }
}

#[async_trait]
impl Transport for Receiver {
    async fn send(&self, outgoing: &Outgoing) -> Result<(), SendError> {
        let mut state = self.state.lock().unwrap();
        match state.answer {
            Answer::Fail => return Err(SendError::Failed("down".to_owned())),
            Answer::Refuse => return Err(SendError::Refused("400 Bad Request".to_owned())),
            Answer::Accept => {}
        }
        let message = match outgoing {
            Outgoing::Post(post) => {
                let body = serde_json::from_str(&post.body);
                (
                    post.url.clone(),
                    body.unwrap_or_else(|_| post.body.clone().into()),
                )
            }
            Outgoing::Mail(mail) => (mail.server.smarthost.clone(), mail.content.clone().into()),
        };
        state.messages.push(message);
        Ok(())
    }
}
