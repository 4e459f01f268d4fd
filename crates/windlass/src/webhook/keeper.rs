//! [`Keeper`]: keeps the certificate current, and everybody's trust in it.
//!
//! It is woken by every change of the Secret, of the configurations and of the definitions, and
//! when something is due. The replica that leads writes; the others show what it has written.
//! Writes name the version they are made from, so that two that believe to lead do no harm.

use std::{path::PathBuf, sync::Arc, time::Duration};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::Secret,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};
use tracing::{info, warn};
use windlass_manifests::{Description, Part, Rule, webhook};

use super::{
    certificate::{Due, Kept, Terms, plan},
    server::Shown,
    serving::Serving,
};
use crate::{
    Key, Kind, Result, cache::Store, declare::Grant, error::Class, handle::Verb, kind::KindInfo,
    watch::Scope,
};

/// How long API servers may take to hear of a `caBundle`.
const HEARD: Duration = Duration::from_mins(1);
/// How soon a failed write is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Watches what it keeps.
pub(crate) struct Keeper {
    serving: Arc<Serving>,
    /// The Secret, unless the certificate comes from elsewhere.
    secret: Option<(Arc<Store>, Key)>,
    /// Where the certificate comes from, if not from the Secret.
    folder: Option<PathBuf>,
    /// What says whom the API server trusts.
    trusting: Vec<(Arc<Store>, Key)>,
    woken: Arc<Notify>,
    names: Vec<String>,
}

/// What keeping takes, as RBAC rules.
pub(crate) fn part(description: &Description) -> Part {
    let mut rules: Vec<Rule> = Vec::new();
    let mut allow = |grant: Grant, names: Vec<String>, why: &str| {
        let mut rule = grant.rule(why);
        rule.names = names.into_iter().collect();
        rules.push(rule);
    };
    let verbs = [Verb::List, Verb::Watch, Verb::Update];
    let name = || vec![description.name.clone()];
    let secret = vec![webhook::secret_name(&description.name)];
    allow(
        Grant::of::<Secret>(verbs),
        secret,
        "keeps the webhook certificate in it",
    );
    let trust = "keeps their caBundle current";
    if description.webhooks.iter().any(|hook| hook.mutating) {
        allow(
            Grant::of::<MutatingWebhookConfiguration>(verbs),
            name(),
            trust,
        );
    }
    if description.webhooks.iter().any(|hook| !hook.mutating) {
        allow(
            Grant::of::<ValidatingWebhookConfiguration>(verbs),
            name(),
            trust,
        );
    }
    if !description.conversions.is_empty() {
        let grant = Grant::of::<CustomResourceDefinition>(verbs);
        allow(grant, description.conversions.clone(), trust);
    }
    Part {
        name: webhook::service_name(&description.name),
        purpose: "serves the operator's webhooks".to_owned(),
        watches: Vec::new(),
        rules,
    }
}

impl Keeper {
    pub(super) fn new(serving: &Arc<Serving>, folder: Option<PathBuf>) -> Self {
        let description = &serving.description;
        let (namespace, woken) = (serving.namespace(), Arc::new(Notify::new()));
        let watched = |store: Arc<Store>| {
            let woken = Arc::clone(&woken);
            store.subscribe(move |_| woken.notify_one());
            store
        };
        let named = |kind: KindInfo, name: &str| {
            let scope = Scope::all().field("metadata.name", name);
            let store = watched(serving.caches.store(&kind, &scope));
            (store, Key::from_parts(None, name))
        };
        let secret = folder.is_none().then(|| {
            let name = webhook::secret_name(&description.name);
            let scope = Scope::all()
                .namespace(namespace.clone())
                .field("metadata.name", &name);
            let store = watched(serving.caches.store(&KindInfo::of::<Secret>(), &scope));
            (store, Key::from_parts(Some(&namespace), &name))
        });
        let mut trusting = Vec::new();
        if description.webhooks.iter().any(|hook| hook.mutating) {
            let kind = KindInfo::of::<MutatingWebhookConfiguration>();
            trusting.push(named(kind, &description.name));
        }
        if description.webhooks.iter().any(|hook| !hook.mutating) {
            let kind = KindInfo::of::<ValidatingWebhookConfiguration>();
            trusting.push(named(kind, &description.name));
        }
        for definition in &description.conversions {
            trusting.push(named(crd(), definition));
        }
        let service = webhook::service_name(&description.name);
        let host = format!("{service}.{namespace}.svc");
        Self {
            serving: Arc::clone(serving),
            secret,
            folder,
            trusting,
            woken,
            names: vec![host.clone(), format!("{host}.cluster.local")],
        }
    }

    /// Keeps at it for ever.
    pub(super) async fn run(self, shown: &Shown) {
        let activity = self.serving.environment.activity.clone();
        let mut busy = Some(activity.busy("webhook certificate"));
        for (store, _) in self.secret.iter().chain(&self.trusting) {
            store.synced().await;
        }
        let (mut loaded, mut trusted_since) = (None, None);
        loop {
            let wait = match self.keep(shown, &mut loaded, &mut trusted_since).await {
                Ok(wait) => wait,
                // Somebody else wrote first; what they wrote wakes us.
                Err(error) if error.class() == Class::Conflict => RETRY,
                Err(error) => {
                    warn!(%error, "the webhook certificate is not up to date");
                    RETRY
                }
            };
            busy.take();
            let leading = &self.serving.signals.leading;
            let stands_by = !leading.is_cancelled();
            // A renewal in two months is nothing that anybody waits for.
            tokio::select! {
                biased;
                () = self.woken.notified() => {}
                () = leading.cancelled(), if stands_by => {}
                () = tokio::time::sleep(wait) => {}
            }
            busy = Some(activity.busy("webhook certificate"));
        }
    }

    /// Does one round; how long nothing is due then.
    async fn keep(
        &self,
        shown: &Shown,
        loaded: &mut Option<Kept>,
        trusted_since: &mut Option<Instant>,
    ) -> Result<Duration> {
        let Some((store, key)) = &self.secret else {
            // Whoever put the certificate there may have put its CA there, too.
            if let Some(folder) = &self.folder
                && let Ok(bundle) = std::fs::read_to_string(folder.join("ca.crt"))
            {
                self.publish(&bundle).await?;
            }
            return Ok(RETRY);
        };
        let Some(secret) = store.get(key) else {
            warn!(secret = %key, "the Secret for the webhook certificate is missing: apply the manifests");
            return Ok(Duration::MAX);
        };
        let secret = secret.value();
        let kept = Kept::read(&secret["data"]).filter(|kept| is_usable(kept, key));
        let trusted = match &kept {
            Some(kept) => {
                if loaded.as_ref() != Some(kept) {
                    shown.set(&kept.serving)?;
                    *loaded = Some(kept.clone());
                    *trusted_since = None;
                }
                self.publish(&kept.bundle()).await?
            }
            None => false,
        };
        if trusted {
            trusted_since.get_or_insert_with(Instant::now);
        } else {
            *trusted_since = None;
        }
        let published = trusted_since.is_some_and(|since| since.elapsed() >= HEARD);
        let now = self.serving.environment.clock.now();
        let terms = Terms {
            names: &self.names,
            now,
            lives: self.serving.lives,
        };
        let due = plan(kept.as_ref(), &self.names, now, published);
        let made = match (due, kept) {
            (Due::Nothing(until), kept) => {
                let has_next = kept.is_some_and(|kept| kept.has_next());
                let wait = until.duration_since(now).try_into().unwrap_or(RETRY);
                return Ok(if has_next { HEARD } else { wait });
            }
            (Due::Issue, _) | (_, None) => Kept::issue(terms)?,
            (Due::Renew, Some(mut kept)) => {
                kept.renew(terms)?;
                kept
            }
            (Due::Introduce, Some(mut kept)) => {
                kept.introduce(terms)?;
                kept
            }
            (Due::Promote, Some(mut kept)) => {
                kept.promote(terms)?;
                kept
            }
        };
        if !self.leads() {
            // Whoever leads writes it, and the watch tells of it.
            return Ok(Duration::MAX);
        }
        info!(secret = %key, ?due, "writing the webhook certificate");
        let mut secret = secret;
        secret["data"] = made.write();
        let requests = &self.serving.requests;
        requests.replace(&store.kind, key, None, secret).await?;
        // The watch tells of it, and wakes us.
        Ok(RETRY)
    }

    /// Whether this replica may write.
    fn leads(&self) -> bool {
        self.serving.signals.leading.is_cancelled()
    }

    /// Makes everybody trust the bundle; tells whether they did already.
    async fn publish(&self, bundle: &str) -> Result<bool> {
        let bundle = Value::from(STANDARD.encode(bundle));
        let mut trusted = true;
        for (store, key) in &self.trusting {
            let Some(object) = store.get(key) else {
                warn!(kind = %store.kind, name = %key, "webhook configuration not found: the API server does not call this operator");
                trusted = false;
                continue;
            };
            let mut object = object.value();
            if trust(&mut object, &bundle) {
                trusted = false;
                if !self.leads() {
                    continue;
                }
                info!("updated caBundle of {}/{}", store.kind, key.name());
                let requests = &self.serving.requests;
                requests.replace(&store.kind, key, None, object).await?;
            }
        }
        Ok(trusted)
    }
}

/// Whether what the Secret holds can be shown and vouches for itself; what does not is issued anew.
fn is_usable(kept: &Kept, secret: &Key) -> bool {
    match kept.check() {
        Ok(()) => true,
        Err(error) => {
            warn!(%secret, %error, "the webhook certificate in the Secret cannot be used, replacing it");
            false
        }
    }
}

fn crd() -> KindInfo {
    fn of<K: Kind>() -> KindInfo {
        KindInfo::of::<K>()
    }
    of::<CustomResourceDefinition>()
}

/// Sets every `caBundle` of an object; tells whether one was another.
fn trust(object: &mut Value, bundle: &Value) -> bool {
    let mut changed = false;
    let mut set = |config: &mut Value| {
        if config.is_object() && config["caBundle"] != *bundle {
            config["caBundle"] = bundle.clone();
            changed = true;
        }
    };
    if let Some(webhooks) = object["webhooks"].as_array_mut() {
        for webhook in webhooks {
            set(&mut webhook["clientConfig"]);
        }
    }
    if object["spec"]["conversion"]["webhook"].is_object() {
        set(&mut object["spec"]["conversion"]["webhook"]["clientConfig"]);
    }
    changed
}
