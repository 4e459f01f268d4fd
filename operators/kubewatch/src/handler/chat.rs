//! Chats.

use serde_json::{Value, json};

use crate::config::{Hipchat, Mattermost, Slack, SlackWebhook, Url, WebhookUrl};
use crate::notice::{Notice, Status};
use crate::transport::{Outgoing, Post};

const SLACK_API: &str = "https://slack.com/api/chat.postMessage";
const HIPCHAT_API: &str = "https://api.hipchat.com/v2/";
const MATTERMOST_ICON: &str =
    "https://raw.githubusercontent.com/kubernetes/kubernetes/master/logo/logo_with_border.png";

/// One of three colors by status.
fn color(notice: &Notice, [normal, warning, danger]: [&'static str; 3]) -> &'static str {
    match notice.reason.status() {
        Status::Normal => normal,
        Status::Warning => warning,
        Status::Danger => danger,
    }
}

pub(super) fn slack(of: &Slack, notice: &Notice) -> Outgoing {
    let title = match of.title.as_str() {
        "" => "kubewatch",
        title => title,
    };
    let attachments = json!([{
        "color": color(notice, ["good", "warning", "danger"]),
        "fields": [{ "title": title, "value": notice.message(), "short": false }],
        "mrkdwn_in": ["fields"],
        "blocks": Value::Null,
    }]);
    let attachments = attachments.to_string();
    let fields = [
        ("as_user", "true"),
        ("attachments", &attachments),
        ("channel", &of.channel),
        ("token", &of.token),
    ];
    Outgoing::Post(Post::form(SLACK_API, &fields))
}

pub(super) fn slack_webhook(of: &SlackWebhook, notice: &Notice) -> Outgoing {
    let mut body =
        json!({ "text": notice.message(), "replace_original": false, "delete_original": false });
    for (field, value) in [
        ("username", &of.username),
        ("icon_emoji", &of.emoji),
        ("channel", &of.channel),
    ] {
        if !value.is_empty() {
            body[field] = value.as_str().into();
        }
    }
    Outgoing::Post(Post::json(&of.slackwebhookurl, &body))
}

pub(super) fn hipchat(of: &Hipchat, notice: &Notice) -> Outgoing {
    let body = json!({
        "color": color(notice, ["green", "yellow", "red"]),
        "message": notice.message(),
        "notify": true,
        "from": "kubewatch",
    });
    let root = match of.url.as_str() {
        "" => HIPCHAT_API,
        url => url,
    };
    let url = format!(
        "{}/room/{}/notification",
        root.trim_end_matches('/'),
        of.room
    );
    let mut post = Post::json(&url, &body);
    post.authorization = Some(format!("Bearer {}", of.token));
    Outgoing::Post(post)
}

pub(super) fn mattermost(of: &Mattermost, notice: &Notice) -> Outgoing {
    let body = json!({
        "channel": of.channel,
        "username": of.username,
        "icon_url": MATTERMOST_ICON,
        "text": "",
        "attachments": [{
            "title": notice.message(),
            "color": color(notice, ["#00FF00", "#FFFF00", "#FF0000"]),
        }],
    });
    Outgoing::Post(Post::json(&of.url, &body))
}

pub(super) fn flock(of: &Url, notice: &Notice) -> Outgoing {
    let body = json!({
        "notification": "Kubewatch Alert",
        "text": "Kubewatch Alert",
        "attachments": [{
            "title": notice.message(),
            "color": color(notice, ["#00FF00", "#FFFF00", "#FF0000"]),
            "views": { "flockml": "" },
        }],
    });
    Outgoing::Post(Post::json(&of.url, &body))
}

pub(super) fn msteams(of: &WebhookUrl, notice: &Notice) -> Outgoing {
    let body = json!({
        "@type": "MessageCard",
        "@context": "http://schema.org/extensions",
        "themeColor": color(notice, ["2DC72D", "DEFF22", "8C1A1A"]),
        "summary": "kubewatch notification received",
        "title": "kubewatch",
        "sections": [{ "activityTitle": notice.message(), "facts": Value::Null, "markdown": true }],
    });
    Outgoing::Post(Post::json(&of.webhookurl, &body))
}

pub(super) fn lark(of: &WebhookUrl, notice: &Notice) -> Outgoing {
    let body = json!({ "msg_type": "text", "content": { "text": notice.message() } });
    Outgoing::Post(Post::json(&of.webhookurl, &body))
}
