//! Webhooks outside the cluster: a folder with a certificate, and a registration by URL.

use std::{path::Path, time::Duration};

use k8s_openapi::{
    api::admissionregistration::v1::{
        MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tracing::{info, warn};
use windlass_manifests::{Description, Reach, webhook};

use super::{
    certificate::{Kept, Keyed, Lives, Terms},
    server::Shown,
    serving::{Serving, keyed},
};
use crate::{Error, Result};

/// How often a folder is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Shows the certificate of a folder, and again whenever it changes. One that cannot be used, or
/// is only half written yet, leaves the one before.
pub(super) async fn follow(folder: &Path, shown: &Shown) {
    let mut known: Option<Keyed> = None;
    loop {
        let read = |name: &str| std::fs::read_to_string(folder.join(name));
        match (read("tls.crt"), read("tls.key")) {
            (Ok(certificate), Ok(key)) => {
                let found = keyed(certificate, key);
                if known.as_ref() != Some(&found) {
                    match shown.set(&found) {
                        Ok(()) => info!(folder = %folder.display(), "webhook certificate loaded"),
                        Err(error) => {
                            warn!(%error, folder = %folder.display(), "kept the one before");
                        }
                    }
                    known = Some(found);
                }
            }
            (Err(error), _) | (_, Err(error)) => {
                shown.unreadable();
                warn!(%error, folder = %folder.display(), "cannot read the webhook certificate");
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// This operator, as the API server knows it while it runs on this machine.
pub(super) struct Registration<'a> {
    serving: &'a Serving,
    description: Description,
    reach: Reach,
    kept: Kept,
}

impl<'a> Registration<'a> {
    /// With a certificate of its own, which nobody but this process has.
    pub(super) fn new(serving: &'a Serving, host: &str, port: u16) -> Result<Self> {
        let now = serving.environment.clock.now();
        // A run on somebody's machine ends before this certificate does.
        let kept = Kept::issue(Terms {
            names: &[host.to_owned()],
            now,
            lives: Lives::default(),
        })?;
        let shown = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let url = format!("https://{shown}:{port}");
        let mut description = Description::clone(&serving.description);
        // Beside the configurations of an installed operator, not in their place.
        description.name = format!("{}-local", description.name);
        Ok(Self {
            serving,
            description,
            reach: Reach::Url(url, kept.bundle()),
            kept,
        })
    }

    pub(super) fn serving(&self) -> &Keyed {
        &self.kept.serving
    }

    pub(super) async fn add(&self) -> Result<()> {
        if let Reach::Url(url, _) = &self.reach {
            info!(url, "registering webhooks");
        }
        let params = PatchParams::apply(&self.description.name).force();
        let name = &self.description.name;
        if let Some(configuration) = webhook::mutating(&self.description, &self.reach) {
            self.mutating()
                .patch(name, &params, &Patch::Apply(&configuration))
                .await
                .map_err(|error| Error::api("apply", format!("mutating webhooks {name}"), error))?;
        }
        if let Some(configuration) = webhook::validating(&self.description, &self.reach) {
            self.validating()
                .patch(name, &params, &Patch::Apply(&configuration))
                .await
                .map_err(|error| {
                    Error::api("apply", format!("validating webhooks {name}"), error)
                })?;
        }
        let conversion = webhook::conversion(&self.description.name, &self.reach);
        let conversion = json!({"spec": {"conversion": conversion}});
        self.convert_by(&conversion).await
    }

    pub(super) async fn remove(&self) -> Result<()> {
        let name = &self.description.name;
        let gone = |result: kube::Result<()>, what: &str| match result {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(Error::api("delete", format!("{what} {name}"), error)),
            Ok(()) => Ok(()),
        };
        let delete = DeleteParams::default();
        if webhook::mutating(&self.description, &self.reach).is_some() {
            let deleted = self.mutating().delete(name, &delete).await;
            gone(deleted.map(|_| ()), "mutating webhooks")?;
        }
        if webhook::validating(&self.description, &self.reach).is_some() {
            let deleted = self.validating().delete(name, &delete).await;
            gone(deleted.map(|_| ()), "validating webhooks")?;
        }
        // Conversions go back to whoever serves the operator inside the cluster.
        let reach = Reach::Service(format!("{}-system", self.serving.description.name));
        let conversion = webhook::conversion(&self.serving.description.name, &reach);
        let mut conversion = json!({"spec": {"conversion": conversion}});
        let config = &mut conversion["spec"]["conversion"]["webhook"]["clientConfig"];
        config["url"] = Value::Null;
        config["caBundle"] = Value::Null;
        self.convert_by(&conversion).await
    }

    async fn convert_by(&self, conversion: &Value) -> Result<()> {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client());
        let mut patch = conversion.clone();
        let config = &mut patch["spec"]["conversion"]["webhook"]["clientConfig"];
        if config["service"].is_null() {
            config["service"] = Value::Null;
        }
        for name in &self.description.conversions {
            crds.patch(name, &PatchParams::default(), &Patch::Merge(&patch))
                .await
                .map_err(|error| Error::api("patch", format!("definition {name}"), error))?;
        }
        Ok(())
    }

    fn client(&self) -> kube::Client {
        self.serving.requests.client.clone()
    }

    fn mutating(&self) -> Api<MutatingWebhookConfiguration> {
        Api::all(self.client())
    }

    fn validating(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.client())
    }
}
