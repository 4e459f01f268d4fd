//! The lives of the operator in a run: it is started, killed, and started again when it ends.

use std::fs;
use std::path::PathBuf;

use kube::Client;
use kube::api::DeleteParams;
use serde_json::json;
use tokio::time::Instant;
use windlass_apiserver::Identity;

use super::{NAMESPACE, Unusable, World, machine};
use crate::edge::user;
use crate::judge::Wrong;
use crate::process::Process;
use crate::scenario::Named;
use crate::subject::{Kind, Life};

/// How often an operator that ends by itself is started again.
const RESTARTS: usize = 4;

impl World<'_> {
    pub(super) fn start(&mut self) -> Result<(), Unusable> {
        let number = self.edge.born();
        let user = user(number);
        self.again = None;
        self.life = Some(match &self.subject.0 {
            Kind::Process(template) => {
                let kubeconfig = self.kubeconfig(&user)?;
                let started =
                    Process::start(template, self.folder.path(), &kubeconfig, &mut self.ports);
                let program = template.words.first().cloned().unwrap_or_default();
                let started = started.map_err(|error| Unusable::Machine {
                    what: "start the operator",
                    why: format!("{program}: {error}"),
                })?;
                Life::Process(Box::new(started))
            }
            Kind::Function(function) => {
                let identity = Identity::new(user, ["system:masters".to_owned()]);
                let client = Client::new(self.ground.server.in_process(identity), NAMESPACE);
                Life::Function(tokio::spawn(function(client)))
            }
        });
        Ok(())
    }

    /// A kubeconfig for the operator in this life.
    fn kubeconfig(&self, user: &str) -> Result<PathBuf, Unusable> {
        let cannot = machine("write a kubeconfig");
        let made = self.base.authority.client(user, "system:masters");
        let made = made.map_err(|error| cannot(&error))?;
        let address = self.serving.as_ref().map(|serving| serving.address);
        let server = address
            .map(|address| format!("https://{address}"))
            .unwrap_or_default();
        let base64 = |text: &str| {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.encode(text)
        };
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "explore", "cluster": {
                "server": server,
                "certificate-authority-data": base64(&self.base.authority.pem().certificate),
            }}],
            "users": [{"name": "operator", "user": {
                "client-certificate-data": base64(&made.certificate),
                "client-key-data": base64(&made.key),
            }}],
            "contexts": [{"name": "explore", "context": {
                "cluster": "explore", "user": "operator", "namespace": NAMESPACE,
            }}],
            "current-context": "explore",
        });
        let path = self.folder.path().join("kubeconfig");
        fs::write(&path, config.to_string()).map_err(|error| cannot(&error))?;
        Ok(path)
    }

    /// Kills the operator, and lets its leases be over: they would be, in time.
    pub(super) async fn kill(&mut self) {
        self.edge.died(None);
        if let Some(mut life) = self.life.take() {
            life.kill().await;
        }
        self.end_leases().await;
    }

    /// Lets the leases of the operator be over: they would be, in time.
    async fn end_leases(&self) {
        for (resource, namespace, name) in self.edge.locks() {
            let (api_version, kind) = match resource.as_str() {
                "leases.coordination.k8s.io" => ("coordination.k8s.io/v1", "Lease"),
                "configmaps" => ("v1", "ConfigMap"),
                _ => ("v1", "Endpoints"),
            };
            let named = Named {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                name: name.clone(),
                namespace: Some(namespace),
            };
            if let Ok(api) = self.ground.api(&named).await {
                let _ = api.delete(&name, &DeleteParams::default()).await;
            }
        }
    }

    /// Does what the plan asks for, and starts an operator again that has ended.
    pub(super) async fn tend(&mut self) -> Result<Option<Wrong>, Unusable> {
        if self.edge.is_to_be_killed() {
            self.kill().await;
            if !self.edge.is_down() {
                self.start()?;
            }
            return Ok(None);
        }
        if self.edge.is_to_be_replaced() {
            if let Some(mut life) = self.life.take() {
                life.stop();
                self.former = Some(life);
            }
            self.end_leases().await;
            self.start()?;
            return Ok(None);
        }
        if !self.edge.is_overtaken()
            && let Some(mut former) = self.former.take()
        {
            // It finds that its lease is over, and ends.
            former.kill().await;
        }
        if let Some(life) = &mut self.life
            && let Some(why) = life.ended().await
        {
            self.life = None;
            self.ends += 1;
            self.edge.died(Some(why.clone()));
            let panicked = ["panic:", "panicked", "goroutine "]
                .iter()
                .any(|text| why.contains(text));
            if panicked || self.ends >= RESTARTS {
                return Ok(Some(Wrong::Crashed(why)));
            }
            self.again = Some(Instant::now() + self.base.pace.pause);
        }
        if self.again.is_some_and(|again| Instant::now() >= again) {
            // Its lease would be over in time, too.
            self.kill().await;
            self.start()?;
        }
        Ok(None)
    }
}
