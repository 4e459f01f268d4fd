//! The bodies, as kubewatch 2.15 makes them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::notice::Reason;
use crate::transport::Post;

const TEXT: &str = "A `Pod` in namespace `new` has been `Created`:\n`foo`";

fn notice() -> Notice {
    Notice {
        kind: "Pod".to_owned(),
        api_version: "v1".to_owned(),
        namespace: "new".to_owned(),
        name: "foo".to_owned(),
        reason: Reason::Created,
        id: "uid-7-create".to_owned(),
        object: Some(Arc::new(json!({ "metadata": { "name": "foo" } }))),
        old: None,
        text: None,
    }
}

fn post(handler: &str) -> Post {
    let spec = crate::read(&format!("handler:\n  {handler}\n")).unwrap();
    let now = "2030-01-01T00:00:00Z".parse().unwrap();
    match Handler::all(&spec).unwrap()[0].outgoing(&notice(), now) {
        Outgoing::Post(post) => post,
        Outgoing::Mail(mail) => panic!("a mail: {mail:?}"),
    }
}

fn body(handler: &str) -> Value {
    let post = post(handler);
    assert_eq!(post.content_type, "application/json");
    serde_json::from_str(&post.body).unwrap()
}

#[test]
fn webhook_body_is_that_of_kubewatch() {
    let expected = json!({
        "eventmeta": { "kind": "Pod", "name": "foo", "namespace": "new", "reason": "Created" },
        "text": TEXT,
        "time": "2030-01-01T00:00:00Z",
    });
    assert_eq!(body("webhook: {url: 'http://a/'}"), expected);
}

#[test]
fn cloud_event_body_is_that_of_kubewatch() {
    let expected = json!({
        "specversion": "1.0", "type": "KUBERNETES_TOPOLOGY_CHANGE",
        "source": "https://github.com/aantn/kubewatch", "subject": "", "id": "uid-7-create",
        "time": "2030-01-01T00:00:00Z", "datacontenttype": "application/json",
        "data": {
            "operation": "create", "kind": "Pod", "clusterUid": "TODO", "description": TEXT,
            "apiVersion": "v1", "obj": { "metadata": { "name": "foo" } }, "oldObj": null,
        },
    });
    assert_eq!(body("cloudevent: {url: 'http://a/'}"), expected);
}

#[test]
fn slack_webhook_body_is_that_of_kubewatch() {
    let full =
        "slackwebhook: {slackwebhookurl: 'http://a/', channel: '#c', username: u, emoji: ':e:'}";
    let expected = json!({
        "username": "u", "icon_emoji": ":e:", "channel": "#c", "text": TEXT,
        "replace_original": false, "delete_original": false,
    });
    assert_eq!(body(full), expected);
}

#[test]
fn slack_form_is_that_of_kubewatch() {
    let post = post("slack: {token: 't', channel: '#c'}");
    assert_eq!(post.url, "https://slack.com/api/chat.postMessage");
    assert_eq!(post.content_type, "application/x-www-form-urlencoded");
    assert!(
        post.body.starts_with("as_user=true&attachments=%5B%7B"),
        "{}",
        post.body
    );
    assert!(
        post.body.ends_with("&channel=%23c&token=t"),
        "{}",
        post.body
    );
}

#[test]
fn mattermost_body_is_that_of_kubewatch() {
    let body = body("mattermost: {room: c, url: 'http://a/', username: u}");
    let attachment = json!([{ "title": TEXT, "color": "#00FF00" }]);
    assert_eq!(
        (&body["channel"], &body["username"], &body["text"]),
        (&json!("c"), &json!("u"), &json!(""))
    );
    assert_eq!(body["attachments"], attachment);
}

#[test]
fn flock_body_is_that_of_kubewatch() {
    let expected = json!({
        "notification": "Kubewatch Alert", "text": "Kubewatch Alert",
        "attachments": [{ "title": TEXT, "color": "#00FF00", "views": { "flockml": "" } }],
    });
    assert_eq!(body("flock: {url: 'http://a/'}"), expected);
}

#[test]
fn teams_body_is_that_of_kubewatch() {
    let expected = json!({
        "@type": "MessageCard", "@context": "http://schema.org/extensions", "themeColor": "2DC72D",
        "summary": "kubewatch notification received", "title": "kubewatch",
        "sections": [{ "activityTitle": TEXT, "facts": null, "markdown": true }],
    });
    assert_eq!(body("msteams: {webhookurl: 'http://a/'}"), expected);
}

#[test]
fn lark_and_hipchat_bodies_are_those_of_kubewatch() {
    let expected = json!({ "msg_type": "text", "content": { "text": TEXT } });
    assert_eq!(body("lark: {webhookurl: 'http://a/'}"), expected);
    let room = "hipchat: {token: t, room: r, url: 'http://a/v2/'}";
    let expected =
        json!({ "color": "green", "message": TEXT, "notify": true, "from": "kubewatch" });
    assert_eq!(body(room), expected);
    assert_eq!(post(room).url, "http://a/v2/room/r/notification");
    assert_eq!(post(room).authorization.as_deref(), Some("Bearer t"));
}

#[test]
fn file_of_kubewatch_is_read_with_long_and_short_names() {
    let long = "handler:\n  slack:\n    token: \"\"\n    channel: \"\"\n  webhook:\n    url: http://a/\n\
        resource:\n  deployment: false\n  replicationcontroller: true\n  services: true\n  pod: true\n\
        \x20 persistentvolume: false\n  namespace: true\n  ingress: true\nnamespace: \"\"\n";
    let short = "handler: {webhook: {url: http://a/}}\n\
        resource: {rc: true, svc: true, po: true, ns: true, ing: true}\n";
    assert_eq!(crate::read(long).unwrap(), crate::read(short).unwrap());
    assert_eq!(crate::read("").unwrap(), WatchSpec::default());
}

#[test]
fn variables_of_kubewatch_complete_the_file() {
    let variables = |name: &str| match name {
        "KW_POD" | "KW_SERVICE_ACCOUNT" => Some("true".to_owned()),
        "KW_DEPLOYMENT" => Some("yes".to_owned()),
        "KW_WEBHOOK_URL" => Some("http://env/".to_owned()),
        "KW_SLACK_CHANNEL" => Some("#c".to_owned()),
        "ADVANCED_FILTERS" => Some("1".to_owned()),
        _ => None,
    };
    let spec = WatchSpec::default().with_variables(&variables);
    let watched = &spec.resource;
    assert!(watched.pod && watched.serviceaccount && !watched.deployment);
    assert!(spec.advancedfilters);
    let handlers = Handler::all(&spec).unwrap();
    assert_eq!(handlers.len(), 1, "a channel alone configures nothing");
    assert_eq!(spec.handler.webhook.url, "http://env/");
}
