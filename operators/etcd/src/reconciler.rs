//! The shell around the decision: looks, decides, writes down, takes one step.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::join_all;
use k8s_openapi::api::{
    core::v1::{PersistentVolumeClaim, Pod, Service},
    policy::v1::PodDisruptionBudget,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use windlass::{
    Action, Context, Declare, Error, Key, Reconciler, Result,
    handle::{Controlled, Delete},
};

use crate::{
    decision::{Decision, LATER, SOON, Step, decide},
    etcd::{Etcd, EtcdError, MemberStatus, Membership},
    kind::{EtcdCluster, EtcdClusterStatus},
    member::{CLIENT_PORT, Names},
    objects,
    restore::Plan,
    status, told,
    view::{ClaimView, PodView, View},
};

pub(crate) struct Caretaker {
    etcd: Arc<dyn Etcd>,
    alarms: told::Alarms,
    pods: Controlled<Pod>,
    claims: Controlled<PersistentVolumeClaim>,
    services: Controlled<Service>,
    budgets: Controlled<PodDisruptionBudget>,
}

impl Caretaker {
    pub(crate) fn declare(declare: &mut Declare<EtcdCluster>, etcd: Arc<dyn Etcd>) -> Self {
        Self {
            etcd,
            alarms: told::Alarms::default(),
            pods: declare.controls(),
            claims: declare.controls(),
            services: declare.controls(),
            budgets: declare.controls(),
        }
    }

    /// Takes the step that was decided.
    async fn take(
        &self,
        decision: &Decision,
        view: &View<'_>,
        ctx: &Context<EtcdCluster>,
    ) -> Result<Action> {
        match &decision.step {
            // Written already, with the status.
            Step::Record(_) | Step::Forget | Step::Reincarnate(_) => {}
            Step::CreateSeed(plan) => {
                let image = crate::own_image();
                let version = view.version();
                let seed = objects::seed(view.names, view.spec, version, plan, &image);
                self.pods.apply(ctx, seed).await?;
            }
            Step::CreateClaim { member } => {
                if let Some(storage) = &view.spec.storage {
                    let claim = objects::claim(view.names, member, storage);
                    self.claims.apply(ctx, claim).await?;
                }
            }
            Step::CreatePod {
                member,
                start,
                peers,
            } => {
                let version = view.version();
                let pod = objects::pod(view.names, view.spec, version, member, *start, peers);
                self.pods.apply(ctx, pod).await?;
            }
            Step::RequireData { member } => {
                if let Some(pod) = self.pods.get(ctx, member.as_str()).await? {
                    let patch = objects::require_data(&pod);
                    self.pods.patch(ctx, &pod, patch).await?;
                }
            }
            Step::DeletePod { member } => {
                if let Some(pod) = self.pods.get(ctx, member.as_str()).await? {
                    self.pods.delete(ctx, &pod, Delete::background()).await?;
                }
            }
            Step::DeleteClaim { member } => {
                if let Some(claim) = self.claims.get(ctx, member.as_str()).await? {
                    self.claims
                        .delete(ctx, &claim, Delete::background())
                        .await?;
                }
            }
            Step::AddMember { .. }
            | Step::PromoteMember { .. }
            | Step::MoveLeader { .. }
            | Step::RemoveMember { .. } => return self.call(decision, view).await,
            Step::Await(again) => return Ok(Action::in_progress(*again)),
            Step::Wait | Step::Stop | Step::Rest => return Ok(Action::done().requeue_after(LATER)),
        }
        Ok(Action::in_progress(Duration::ZERO))
    }

    /// Asks etcd for a change. Whether it was made is seen in the list the next time.
    async fn call(&self, decision: &Decision, view: &View<'_>) -> Result<Action> {
        let endpoints = endpoints(view);
        let made = match &decision.step {
            Step::AddMember { member } => {
                let urls = [view.names.peer_url(member)];
                self.etcd
                    .add_member(&endpoints, &urls, true)
                    .await
                    .map(|_| ())
            }
            Step::PromoteMember { id, .. } => self.etcd.promote_member(&endpoints, *id).await,
            Step::RemoveMember { member, id } => {
                // Not through the member itself: it ends before it has answered.
                let own = endpoint_of(view, member);
                let others: Vec<String> = endpoints
                    .iter()
                    .filter(|one| Some(*one) != own.as_ref())
                    .cloned()
                    .collect();
                self.etcd.remove_member(&others, *id).await
            }
            Step::MoveLeader { from, id, .. } => match endpoint_of(view, from) {
                Some(leader) => self.etcd.move_leader(&leader, *id).await,
                None => Ok(()),
            },
            _ => Ok(()),
        };
        match made {
            // Done before, perhaps by a call whose answer was lost.
            Ok(())
            | Err(EtcdError::PeerUrlExists | EtcdError::MemberNotFound | EtcdError::NotLeader) => {
                Ok(Action::in_progress(Duration::ZERO))
            }
            Err(
                EtcdError::LearnerNotReady
                | EtcdError::Unhealthy { .. }
                | EtcdError::TooManyLearners,
            ) => Ok(Action::in_progress(SOON)),
            Err(error) => Err(Error::other(format!(
                "{}: {error}; etcd's list of members is read again, and the step is taken again if it was not done",
                decision.message
            ))),
        }
    }

    /// What every member says of itself, and what a majority says of them all.
    async fn ask(&self, view: &mut View<'_>) {
        let asked = view.pods.iter().filter(|(_, pod)| pod.ours && !pod.ended);
        let asked = asked.filter_map(|(name, pod)| Some((name.clone(), url(pod)?)));
        let asked: Vec<(String, String)> = asked.collect();
        let answers = join_all(asked.iter().map(|(_, url)| self.etcd.status(url))).await;
        let mut silent = Vec::new();
        let mut answered: BTreeMap<String, MemberStatus> = BTreeMap::new();
        for ((name, _), answer) in asked.into_iter().zip(answers) {
            match answer {
                Ok(status) => {
                    if status.leader.is_none() {
                        silent.push(format!("{name} follows no leader"));
                    }
                    answered.insert(name, status);
                }
                Err(error) => silent.push(format!("{name}: {error}")),
            }
        }
        view.answers = answered;
        let endpoints = endpoints(view);
        view.membership = match self.members(&endpoints).await {
            Ok(told) => told,
            Err(error) => {
                silent.push(error.to_string());
                None
            }
        };
        if silent.is_empty() {
            silent.push("no member runs".to_owned());
        }
        view.silence = silent.join("; ");
    }

    async fn members(&self, endpoints: &[String]) -> Result<Option<Membership>, EtcdError> {
        if endpoints.is_empty() {
            return Ok(None);
        }
        self.etcd.members(endpoints).await.map(Some)
    }
}

impl Reconciler for Caretaker {
    type Object = EtcdCluster;

    async fn reconcile(&self, cluster: &EtcdCluster, ctx: &Context<EtcdCluster>) -> Result<Action> {
        let recorded = cluster.status.clone().unwrap_or_default();
        // What fails from here on leaves the rest of the status as it is.
        ctx.set_status(&recorded)?;
        let (name, namespace) = (cluster.name_any(), cluster.namespace().unwrap_or_default());
        let uid = cluster.uid().unwrap_or_default();
        let token = recorded.token.clone().unwrap_or_else(|| uid.clone());
        let plan = Plan::of(cluster).map_err(Error::terminal)?;
        let labels = objects::labels(&name);
        let pods = self.pods.candidates(ctx, labels.clone()).await?;
        let claims = self.claims.candidates(ctx, labels).await?;
        let mut view = View {
            names: Names {
                cluster: &name,
                namespace: &namespace,
                uid: &token,
            },
            spec: &cluster.spec,
            plan,
            recorded: &recorded,
            membership: None,
            silence: String::new(),
            answers: BTreeMap::new(),
            pods: pods
                .iter()
                .filter(|pod| !is_former(pod.labels(), pod.owner_references(), &uid, &token))
                .map(|pod| (pod.name_any(), PodView::of(pod, &uid)))
                .collect(),
            claims: claims
                .iter()
                .filter(|one| !is_former(one.labels(), one.owner_references(), &uid, &token))
                .map(|claim| (claim.name_any(), ClaimView::of(claim, &uid)))
                .collect(),
            now: ctx.clock().now(),
        };
        self.ask(&mut view).await;
        view.now = ctx.clock().now();
        let decision = decide(&view);
        let status = status::status_of(cluster, &view, &decision);
        // Before anything is done: who comes after a crash has to know.
        ctx.write_status(&status).await?;
        if let Some(event) = told::event(&self.alarms, view.names, &decision, &recorded, &status) {
            ctx.event(event);
        }
        self.keep_up(&view, &status, ctx).await?;
        self.take(&decision, &view, ctx).await
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        self.alarms.forget(key);
        Ok(())
    }
}

impl Caretaker {
    /// Services and the budget, once there is something to serve.
    async fn keep_up(
        &self,
        view: &View<'_>,
        status: &EtcdClusterStatus,
        ctx: &Context<EtcdCluster>,
    ) -> Result<()> {
        let begun = status.cluster_id.is_some();
        if view.spec.paused || !(begun || status.intent.is_some()) {
            return Ok(());
        }
        let names = view.names;
        self.services.apply(ctx, objects::peers(names)).await?;
        let voters = status
            .roster
            .iter()
            .filter(|member| !member.learner)
            .count();
        let size = usize::try_from(view.spec.size).unwrap_or(0);
        self.budgets
            .apply(ctx, objects::budget(names, size.max(voters)))
            .await?;
        // A cluster that begins again lets clients in when it has all its members.
        let clients = objects::clients(names, begun && status.seed.is_none());
        self.services.apply(ctx, clients).await?;
        Ok(())
    }
}

/// Whether something belongs to an incarnation before this one: it is kept, and is not looked at.
fn is_former(
    labels: &BTreeMap<String, String>,
    owners: &[OwnerReference],
    uid: &str,
    token: &str,
) -> bool {
    let ours = owners
        .iter()
        .any(|owner| owner.controller == Some(true) && owner.uid == uid);
    ours && labels
        .get(objects::CLUSTER_UID)
        .is_some_and(|of| of != token)
}

/// Where the members that follow a leader are reached, those with a vote first.
fn endpoints(view: &View<'_>) -> Vec<String> {
    let mut members: Vec<(bool, &String)> = view
        .answers
        .iter()
        .filter(|(_, answer)| answer.leader.is_some())
        .map(|(name, answer)| (answer.learner, name))
        .collect();
    members.sort_unstable();
    let urls = members
        .into_iter()
        .filter_map(|(_, name)| endpoint_of(view, name));
    urls.collect()
}

fn endpoint_of(view: &View<'_>, member: &str) -> Option<String> {
    view.pods.get(member).and_then(url)
}

fn url(pod: &PodView) -> Option<String> {
    let address = pod.address.as_ref()?;
    Some(if address.contains(':') {
        format!("http://[{address}]:{CLIENT_PORT}")
    } else {
        format!("http://{address}:{CLIENT_PORT}")
    })
}
