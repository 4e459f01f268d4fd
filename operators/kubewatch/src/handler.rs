//! The receivers, and the bodies they are sent: those of kubewatch, field by field.

mod chat;
mod http;
mod mail;

use std::fmt;

use jiff::Timestamp;

use crate::config::{Handlers, Smtp, Url, WatchSpec, Webhook, WebhookUrl};
use crate::config::{Hipchat, Mattermost, Slack, SlackWebhook};
use crate::notice::Notice;
use crate::transport::Outgoing;

/// Why a configuration cannot be run.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A handler lacks a field.
    #[error("cannot configure handler {handler}: {field} is missing")]
    Missing {
        handler: &'static str,
        field: &'static str,
    },
    /// No handler is configured.
    #[error("cannot send messages: no handler is configured")]
    NoHandler,
    /// Nothing is watched.
    #[error("cannot watch anything: no resource is configured")]
    NoResource,
    /// The filter is no expression.
    #[error("cannot read filter: {0}")]
    Filter(String),
    /// The selector is no selector.
    #[error("cannot read selector: {0}")]
    Selector(String),
}

/// A receiver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Handler {
    Slack(Slack),
    SlackWebhook(SlackWebhook),
    Hipchat(Hipchat),
    Mattermost(Mattermost),
    Flock(Url),
    Webhook(Webhook),
    CloudEvent(Url),
    MsTeams(WebhookUrl),
    Smtp(Smtp),
    Lark(WebhookUrl),
}

impl Handler {
    /// The receivers that are configured.
    pub(crate) fn all(config: &WatchSpec) -> Result<Vec<Self>, ConfigError> {
        let Handlers {
            slack,
            slackwebhook,
            hipchat,
            mattermost,
            flock,
            webhook,
            cloudevent,
            msteams,
            smtp,
            lark,
        } = config.handler.clone();
        let mut all = Vec::new();
        if any([&slack.token, &slack.channel]) {
            all.push(Self::Slack(slack));
        }
        if any([&slackwebhook.slackwebhookurl, &slackwebhook.channel]) {
            all.push(Self::SlackWebhook(slackwebhook));
        }
        if any([&hipchat.room, &hipchat.token]) {
            all.push(Self::Hipchat(hipchat));
        }
        if any([&mattermost.channel, &mattermost.url]) {
            all.push(Self::Mattermost(mattermost));
        }
        if any([&flock.url]) {
            all.push(Self::Flock(flock));
        }
        if any([&webhook.url]) {
            all.push(Self::Webhook(webhook));
        }
        if any([&cloudevent.url]) {
            all.push(Self::CloudEvent(cloudevent));
        }
        if any([&msteams.webhookurl]) {
            all.push(Self::MsTeams(msteams));
        }
        if any([&smtp.smarthost, &smtp.to]) {
            all.push(Self::Smtp(smtp));
        }
        if any([&lark.webhookurl]) {
            all.push(Self::Lark(lark));
        }
        if all.is_empty() {
            return Err(ConfigError::NoHandler);
        }
        all.iter().try_for_each(Self::check)?;
        Ok(all)
    }

    /// Its name in the configuration.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Slack(_) => "slack",
            Self::SlackWebhook(_) => "slackwebhook",
            Self::Hipchat(_) => "hipchat",
            Self::Mattermost(_) => "mattermost",
            Self::Flock(_) => "flock",
            Self::Webhook(_) => "webhook",
            Self::CloudEvent(_) => "cloudevent",
            Self::MsTeams(_) => "msteams",
            Self::Smtp(_) => "smtp",
            Self::Lark(_) => "lark",
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let required: &[(&'static str, &String)] = match self {
            Self::Slack(of) => &[("token", &of.token), ("channel", &of.channel)],
            Self::SlackWebhook(of) => &[("slackwebhookurl", &of.slackwebhookurl)],
            Self::Hipchat(of) => &[("token", &of.token), ("room", &of.room)],
            Self::Mattermost(of) => &[
                ("channel", &of.channel),
                ("url", &of.url),
                ("username", &of.username),
            ],
            Self::Smtp(of) => &[
                ("to", &of.to),
                ("from", &of.from),
                ("smarthost", &of.smarthost),
            ],
            _ => &[],
        };
        let missing = required.iter().find(|(_, value)| value.is_empty());
        let handler = self.name();
        missing.map_or(Ok(()), |(field, _)| {
            Err(ConfigError::Missing { handler, field })
        })
    }

    /// What is sent about a change.
    pub(crate) fn outgoing(&self, notice: &Notice, now: Timestamp) -> Outgoing {
        match self {
            Self::Slack(of) => chat::slack(of, notice),
            Self::SlackWebhook(of) => chat::slack_webhook(of, notice),
            Self::Hipchat(of) => chat::hipchat(of, notice),
            Self::Mattermost(of) => chat::mattermost(of, notice),
            Self::Flock(of) => chat::flock(of, notice),
            Self::MsTeams(of) => chat::msteams(of, notice),
            Self::Lark(of) => chat::lark(of, notice),
            Self::Webhook(of) => http::webhook(of, notice, now),
            Self::CloudEvent(of) => http::cloud_event(of, notice, now),
            Self::Smtp(of) => mail::mail(of, notice, now),
        }
    }
}

impl fmt::Display for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn any<const N: usize>(values: [&String; N]) -> bool {
    values.into_iter().any(|value| !value.is_empty())
}

#[cfg(test)]
mod tests;
