//! Everything a container needs before it can be started: address, tokens, volumes, environment.

use k8s_openapi::api::core::v1::{Container, Pod, ServiceAccount};
use kube::Api;

use super::Worker;
use crate::env::{Facts, of_services, resolve};
use crate::pod::Refusal;
use crate::runtime::{Launch, Runtime, User};
use crate::volume::{Given, Ready, VolumeError, wishes};

/// Why a container cannot be started yet.
pub(super) struct Obstacle {
    pub(super) refusal: Refusal,
    pub(super) message: String,
}

impl Obstacle {
    fn configuration(message: impl Into<String>) -> Self {
        Self {
            refusal: Refusal::Configuration,
            message: message.into(),
        }
    }

    fn volume(name: &str, error: &VolumeError) -> Self {
        Self {
            refusal: Refusal::Volume,
            message: format!("MountVolume.SetUp failed for volume \"{name}\" : {error}"),
        }
    }
}

impl<R: Runtime> Worker<R> {
    /// Prepares a container.
    pub(super) async fn launch(
        &mut self,
        container: Container,
        run: i32,
    ) -> Result<Launch, Obstacle> {
        self.ask_tokens().await?;
        let ready = self.prepare_volumes()?;
        let address = self.runtime.set_up(&self.pod).await;
        let address = address.map_err(|error| Obstacle {
            refusal: Refusal::Sandbox,
            message: error.to_string(),
        })?;
        self.record.address = Some(address);
        let pod_ip = address.to_string();
        let mut base = of_services(&self.sources.services);
        base.extend(&self.runtime.environment(&self.pod, address));
        let facts = self.facts(&pod_ip);
        let environment = resolve(&container, &facts, &self.sources, base)
            .map_err(|error| Obstacle::configuration(error.to_string()))?;
        let user = user(&self.pod, &container);
        if must_not_be_root(&self.pod, &container) && user.uid == Some(0) {
            let why = "container's runAsUser breaks non-root policy";
            return Err(Obstacle::configuration(why));
        }
        let mounts = match &self.agency.volumes {
            Some(volumes) => volumes
                .mounts(&self.pod, &container, run, &environment, &ready)
                .map_err(|error| Obstacle::configuration(error.to_string()))?,
            None => Vec::new(),
        };
        Ok(Launch {
            pod: self.pod.clone(),
            container,
            run,
            environment,
            mounts,
            user,
        })
    }

    fn facts<'a>(&'a self, pod_ip: &'a str) -> Facts<'a> {
        Facts {
            pod: &self.pod,
            pod_ip,
            host_ip: &self.agency.identity.host_ip,
            node: self.agency.capacity,
        }
    }

    fn given<'a>(&'a self, pod_ip: &'a str) -> Given<'a> {
        Given {
            facts: self.facts(pod_ip),
            sources: &self.sources,
            tokens: &self.tokens,
        }
    }

    fn prepare_volumes(&self) -> Result<Ready, Obstacle> {
        let Some(volumes) = &self.agency.volumes else {
            return Ok(Ready::default());
        };
        let pod_ip = self.address();
        volumes
            .prepare(&self.given(&pod_ip))
            .map_err(|(name, error)| Obstacle::volume(&name, &error))
    }

    /// Brings the volumes that exist up to date with what they are made from.
    pub(super) fn refresh_volumes(&self) {
        if let Some(volumes) = &self.agency.volumes
            && self.record.is_alive()
        {
            let pod_ip = self.address();
            volumes.refresh(&self.given(&pod_ip));
        }
    }

    fn address(&self) -> String {
        let address = self.record.address;
        address
            .map(|address| address.to_string())
            .unwrap_or_default()
    }

    /// Asks for the tokens that the pod's volumes need and does not have yet.
    async fn ask_tokens(&mut self) -> Result<(), Obstacle> {
        if self.agency.volumes.is_none() {
            return Ok(());
        }
        let now = self.now();
        for (wish, volume) in wishes(&self.pod) {
            let fresh = self.tokens.get(&wish).is_some_and(|t| t.refresh_at > now);
            if fresh {
                continue;
            }
            match wish.ask(&self.accounts(), &self.pod, now).await {
                Ok(token) => {
                    self.tokens.insert(wish, token);
                }
                Err(error) => {
                    let error = VolumeError::Token(error.to_string());
                    return Err(Obstacle::volume(&volume, &error));
                }
            }
        }
        Ok(())
    }

    /// Replaces the tokens whose time has come; one that cannot be had now is asked for later.
    pub(super) async fn refresh_tokens(&mut self) {
        let now = self.now();
        let due = self.tokens.values().any(|token| token.refresh_at <= now);
        if due && self.record.is_alive() {
            if let Err(obstacle) = self.ask_tokens().await {
                tracing::warn!(
                    pod = self.name(),
                    obstacle.message,
                    "cannot refresh a token"
                );
                for token in self.tokens.values_mut() {
                    token.refresh_at = token.refresh_at.max(super::later(now, super::RETRY.1));
                }
            }
            self.refresh_volumes();
        }
    }

    fn accounts(&self) -> Api<ServiceAccount> {
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// Whom a container runs as: its own wish before its pod's.
pub(crate) fn user(pod: &Pod, container: &Container) -> User {
    let own = container.security_context.as_ref();
    let spec = pod.spec.as_ref();
    let shared = spec.and_then(|spec| spec.security_context.as_ref());
    let number = |value: Option<i64>| value.and_then(|value| u32::try_from(value).ok());
    let uid = own.and_then(|context| context.run_as_user);
    let gid = own.and_then(|context| context.run_as_group);
    let more = shared.iter().flat_map(|context| {
        let groups = context.supplemental_groups.iter().flatten().copied();
        groups.chain(context.fs_group)
    });
    User {
        uid: number(uid.or_else(|| shared?.run_as_user)),
        gid: number(gid.or_else(|| shared?.run_as_group)),
        groups: more.filter_map(|group| u32::try_from(group).ok()).collect(),
    }
}

fn must_not_be_root(pod: &Pod, container: &Container) -> bool {
    let own = container.security_context.as_ref();
    let spec = pod.spec.as_ref();
    let shared = spec.and_then(|spec| spec.security_context.as_ref());
    own.and_then(|context| context.run_as_non_root)
        .or_else(|| shared?.run_as_non_root)
        .unwrap_or_default()
}
