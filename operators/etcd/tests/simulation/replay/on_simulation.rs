//! Steps played on the simulation, and chosen there.

use std::sync::Arc;
use std::time::Duration;

use etcd_operator::etcd::Etcd;
use rand::{Rng, RngExt};
use tokio::time::sleep;

use super::step::{SLOTS, Slots, Step, tell, tell_error, tell_status};
use crate::world::{Arguments, Fair, Version, World};

/// After this time members count as connected for long enough, and everything has come to rest.
const REST: Duration = Duration::from_secs(8);

pub(super) struct Simulation {
    world: World,
    slots: Slots,
    written: u32,
}

impl Simulation {
    pub(super) fn new(version: Version, slots: Slots) -> Self {
        Self {
            world: World::new(version, Arc::new(Fair)),
            slots,
            written: 0,
        }
    }

    /// The next step: mostly one that makes sense.
    pub(super) fn choose(&self, number: usize, random: &mut impl Rng) -> Step {
        let start = |slot, existing| Step::Start {
            slot,
            existing,
            stale: false,
        };
        if number == 0 {
            return start(0, false);
        }
        let slot = random.random_range(0..SLOTS);
        let (members, learners) = self.members();
        let idle = (0..SLOTS).find(|slot| members.contains(slot) && !self.runs(*slot));
        match random.random_range(0..100) {
            0..20 => match idle {
                Some(slot) => start(slot, true),
                None => Step::Put,
            },
            20..40 => match (0..SLOTS).find(|slot| !members.contains(slot)) {
                Some(slot) => Step::Add {
                    slot,
                    learner: random.random_range(0..4) > 0,
                },
                None => Step::List,
            },
            40..55 => Step::Promote {
                slot: learners.first().copied().unwrap_or(slot),
            },
            55..63 => Step::Stop { slot },
            63..71 => Step::Remove { slot },
            71..76 => Step::MoveLeader { slot },
            76..78 => Step::Wipe { slot },
            78..80 => Step::Start {
                slot,
                existing: true,
                stale: true,
            },
            80..85 => Step::Status { slot },
            85..90 => Step::Put,
            90..95 => Step::Get,
            _ => Step::List,
        }
    }

    fn runs(&self, slot: usize) -> bool {
        self.world.runs(&Slots::name(slot))
    }

    /// Who belongs to the cluster, as the one knows that knows most; and who of them learns.
    fn members(&self) -> (Vec<usize>, Vec<usize>) {
        let slot = |url: &String| self.slots.slot(url);
        let known = self.world.members_known();
        let of = |learner: bool| known.iter().filter(move |one| !learner || one.learner);
        let slots = |learner| {
            of(learner)
                .filter_map(|one| slot(one.peer_urls.first()?))
                .collect()
        };
        (slots(false), slots(true))
    }

    async fn start(&self, slot: usize, arguments: Arguments) -> String {
        let (name, world) = (Slots::name(slot), &self.world);
        if world.runs(&name) {
            return "runs already".to_owned();
        }
        let started = world.start(&name, &name, arguments, "");
        sleep(REST).await;
        let ended = world.ended();
        let ended = ended.into_iter().find(|(process, _)| *process == name);
        let exit = started.err().or(ended.map(|(_, exit)| exit));
        if exit.is_some() { "exited" } else { "runs" }.to_owned()
    }

    pub(super) async fn play(&mut self, step: &Step) -> String {
        let (clients, world) = (self.slots.clients(), self.world.clone());
        let id = |slot: usize| {
            let peer = self.slots.peer(slot);
            let known = world.members_known();
            let found = known.iter().find(|one| one.peer_urls.contains(&peer));
            // One that nobody knows.
            found.map_or(1, |one| one.id)
        };
        let answer = match *step {
            Step::Start {
                slot,
                existing,
                stale,
            } => {
                let told = Slots::told(slot, existing, stale, &self.members().0);
                self.start(slot, self.slots.arguments(slot, existing, &told))
                    .await
            }
            Step::Rejoin { slot } => {
                self.start(slot, self.slots.arguments(slot, true, &[]))
                    .await
            }
            Step::Stop { slot } => {
                world.stop(&Slots::name(slot));
                sleep(REST).await;
                "done".to_owned()
            }
            Step::Wipe { slot } => {
                let name = Slots::name(slot);
                if world.runs(&name) {
                    return "runs".to_owned();
                }
                world.lose_folder(&name);
                "done".to_owned()
            }
            Step::Add { slot, learner } => {
                let urls = [self.slots.peer(slot)];
                tell(&world.add_member(&clients, &urls, learner).await)
            }
            Step::Promote { slot } => tell(&world.promote_member(&clients, id(slot)).await),
            Step::Remove { slot } => {
                let removed = tell(
                    &world
                        .remove_member(&self.slots.clients_before(slot), id(slot))
                        .await,
                );
                sleep(REST).await;
                let ended = world
                    .ended()
                    .iter()
                    .any(|(process, _)| *process == Slots::name(slot));
                format!("{removed}, ended {ended}")
            }
            Step::MoveLeader { slot } => {
                let mut leader = None;
                for client in &clients {
                    let status = world.status(client).await;
                    if status.is_ok_and(|status| status.leader == Some(status.member_id)) {
                        leader = Some(client);
                    }
                }
                match leader {
                    Some(leader) => tell(&world.move_leader(leader, id(slot)).await),
                    None => "no leader".to_owned(),
                }
            }
            Step::List => self.slots.tell_members(&world.members(&clients).await),
            Step::Status { slot } => tell_status(&world.status(&clients[slot]).await),
            Step::Put => {
                self.written += 1;
                let mut answers = Vec::new();
                for client in &clients {
                    let value = self.written.to_string();
                    answers.push(tell(&world.put(client, "key", &value).await));
                }
                answers.join(", ")
            }
            Step::Get => {
                let mut answers = Vec::new();
                for client in &clients {
                    let found = world.get(client, "key").await;
                    answers.push(
                        found.map_or_else(|error| tell_error(&error), |found| format!("{found:?}")),
                    );
                }
                answers.join(", ")
            }
        };
        // What is due now is not taken for something that the next step did.
        sleep(Duration::from_millis(1)).await;
        answer
    }
}
