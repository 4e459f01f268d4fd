//! kubewatch's environment variables: what the configuration leaves out is taken from them.
//!
//! The same names are the keys of the Secret that a [`Watch`](crate::Watch) refers to.

use crate::config::WatchSpec;

/// Where values are looked up by name: the environment, or a Secret.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

impl WatchSpec {
    /// This configuration, with what it leaves out taken from variables.
    #[must_use]
    pub fn with_variables(mut self, lookup: Lookup<'_>) -> Self {
        let watched = &mut self.resource;
        for (wanted, name) in [
            (&mut watched.daemonset, "KW_DAEMONSET"),
            (&mut watched.replicaset, "KW_REPLICASET"),
            (&mut watched.namespace, "KW_NAMESPACE"),
            (&mut watched.deployment, "KW_DEPLOYMENT"),
            (&mut watched.pod, "KW_POD"),
            (
                &mut watched.replicationcontroller,
                "KW_REPLICATION_CONTROLLER",
            ),
            (&mut watched.services, "KW_SERVICE"),
            (&mut watched.job, "KW_JOB"),
            (&mut watched.persistentvolume, "KW_PERSISTENT_VOLUME"),
            (&mut watched.secret, "KW_SECRET"),
            (&mut watched.configmap, "KW_CONFIGMAP"),
            (&mut watched.ingress, "KW_INGRESS"),
            (&mut watched.node, "KW_NODE"),
            (&mut watched.serviceaccount, "KW_SERVICE_ACCOUNT"),
            (&mut watched.clusterrole, "KW_CLUSTER_ROLE"),
            (&mut watched.clusterrolebinding, "KW_CLUSTER_ROLE_BINDING"),
        ] {
            *wanted |= lookup(name).as_deref() == Some("true");
        }
        let advanced = lookup("ADVANCED_FILTERS");
        self.advancedfilters |= matches!(
            advanced.as_deref(),
            Some("1" | "t" | "T" | "TRUE" | "true" | "True")
        );
        self.fill_handlers(lookup);
        self
    }

    fn fill_handlers(&mut self, lookup: Lookup<'_>) {
        let fill = |field: &mut String, names: &[&str]| {
            if field.is_empty() {
                let mut values = names.iter().filter_map(|name| lookup(name));
                *field = values.next().unwrap_or_default();
            }
        };
        let of = &mut self.handler;
        fill(
            &mut of.slackwebhook.slackwebhookurl,
            &["KW_SLACK_WEBHOOK_URL"],
        );
        // These say how a message looks, and configure no handler.
        if !of.slackwebhook.slackwebhookurl.is_empty() {
            fill(&mut of.slackwebhook.channel, &["KW_SLACK_CHANNEL"]);
            fill(&mut of.slackwebhook.username, &["KW_SLACK_USERNAME"]);
            fill(&mut of.slackwebhook.emoji, &["KW_SLACK_EMOJI"]);
        }
        fill(&mut of.slack.token, &["SLACK_TOKEN", "KW_SLACK_TOKEN"]);
        if !of.slack.token.is_empty() {
            fill(
                &mut of.slack.channel,
                &["SLACK_CHANNEL", "KW_SLACK_CHANNEL"],
            );
            fill(&mut of.slack.title, &["KW_SLACK_TITLE"]);
        }
        fill(&mut of.hipchat.token, &["KW_HIPCHAT_TOKEN"]);
        fill(&mut of.hipchat.room, &["KW_HIPCHAT_ROOM"]);
        fill(&mut of.hipchat.url, &["KW_HIPCHAT_URL"]);
        fill(&mut of.mattermost.channel, &["KW_MATTERMOST_CHANNEL"]);
        fill(&mut of.mattermost.url, &["KW_MATTERMOST_URL"]);
        fill(&mut of.mattermost.username, &["KW_MATTERMOST_USERNAME"]);
        fill(&mut of.flock.url, &["KW_FLOCK_URL"]);
        fill(&mut of.webhook.url, &["KW_WEBHOOK_URL"]);
        fill(&mut of.webhook.cert, &["KW_WEBHOOK_CERT"]);
        fill(&mut of.cloudevent.url, &["KW_CLOUDEVENT_URL"]);
        fill(&mut of.msteams.webhookurl, &["KW_MSTEAMS_WEBHOOKURL"]);
        fill(&mut of.lark.webhookurl, &["KW_LARK_WEBHOOK_URL"]);
        fill(&mut of.smtp.auth.password, &["KW_SMTP_PASSWORD"]);
        fill(&mut of.smtp.auth.secret, &["KW_SMTP_SECRET"]);
    }
}
