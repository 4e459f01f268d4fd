//! The simulated etcd against the real one: the same steps on both, and the same answers.
//!
//! Steps are chosen at random from a seed while they are played on the simulation, so that most of
//! them make sense; then they are played on real processes. Names stand for ids and URLs, and who
//! leads is not compared: that is chance.

mod on_real;
mod on_simulation;
mod step;

use std::path::Path;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::real::{minor, programs};
use crate::world::Version;
use on_real::Real;
use on_simulation::Simulation;
use step::{Played, Slots, Step};

/// How many steps a sequence has.
const STEPS: usize = 14;

fn version_of(program: &Path) -> Version {
    match minor(program).as_str() {
        "3.4" | "3.5" => Version::V3_4,
        _ => Version::V3_6,
    }
}

/// Steps from a seed, and what the simulation answers to them.
fn simulate(version: Version, slots: &Slots, seed: u64, steps: Option<Vec<Step>>) -> Vec<Played> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(async {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut simulation = Simulation::new(version, slots.clone());
        let mut played = Vec::new();
        let mut given = steps.map(Vec::into_iter);
        loop {
            let step = match &mut given {
                Some(steps) => steps.next(),
                None => {
                    (played.len() < STEPS).then(|| simulation.choose(played.len(), &mut random))
                }
            };
            let Some(step) = step else {
                return played;
            };
            let answer = simulation.play(&step).await;
            played.push(Played { step, answer });
        }
    })
}

/// Plays one sequence on both; what differed first.
async fn compare(program: &Path, seed: u64, steps: Option<Vec<Step>>) -> Result<usize, String> {
    let slots = Slots::new(seed);
    let expected = simulate_apart(version_of(program), slots.clone(), seed, steps);
    let mut real = Real::new(program, slots);
    let mut told = Vec::new();
    for (number, played) in expected.iter().enumerate() {
        let answer = real.play(&played.step).await;
        told.push(format!("{:>3} {:?} -> {answer}", number + 1, played.step));
        if answer != played.answer {
            return Err(format!(
                "seed {seed}, {}: step {} {:?}: the simulation says\n    {}\nreal etcd\n    {answer}\nafter\n{}\n{}",
                program.display(),
                number + 1,
                played.step,
                played.answer,
                told.join("\n"),
                real.logs(),
            ));
        }
    }
    Ok(expected.len())
}

/// The simulation has a clock of its own, and so a thread.
fn simulate_apart(
    version: Version,
    slots: Slots,
    seed: u64,
    steps: Option<Vec<Step>>,
) -> Vec<Played> {
    let thread = std::thread::spawn(move || simulate(version, &slots, seed, steps));
    thread.join().expect("the simulation")
}

/// Plays sequences at the same time, and says of each where it differed.
fn all(sequences: &[(u64, Option<Vec<Step>>)], at_once: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        for program in programs() {
            let (mut steps, mut differences) = (0, Vec::new());
            for some in sequences.chunks(at_once) {
                let played = some
                    .iter()
                    .map(|(seed, steps)| compare(&program, *seed, steps.clone()));
                for one in futures::future::join_all(played).await {
                    match one {
                        Ok(count) => steps += count,
                        Err(difference) => differences.push(difference),
                    }
                }
            }
            let count = sequences.len();
            println!(
                "{count} sequences, {steps} steps alike on the simulation and on {}",
                program.display()
            );
            assert!(
                differences.is_empty(),
                "{} of {count} differ:\n{}",
                differences.len(),
                differences.join("\n\n")
            );
        }
    });
}

#[test]
fn answers_as_real_etcd_does() {
    let sequences: Vec<_> = (1..=6).map(|seed| (seed, None)).collect();
    all(&sequences, 6);
}

#[test]
#[ignore = "takes half an hour: make etcd-replay"]
fn answers_as_real_etcd_does_for_long() {
    let from = std::env::var("WINDLASS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let from: u64 = from.unwrap_or(100);
    let sequences: Vec<_> = (from..from + 100).map(|seed| (seed, None)).collect();
    all(&sequences, 6);
}

/// What the operator's life depends on, each written down as steps.
#[test]
fn answers_as_real_etcd_does_where_it_matters_most() {
    let start = |slot, existing| Step::Start {
        slot,
        existing,
        stale: false,
    };
    let grow = |slot| {
        [
            Step::Add {
                slot,
                learner: true,
            },
            start(slot, true),
            Step::Promote { slot },
            Step::List,
        ]
    };
    let three: Vec<Step> = [start(0, false), Step::Put, Step::List]
        .into_iter()
        .chain(grow(1))
        .chain(grow(2))
        .collect();
    let after = |steps: &[Step]| Some([&three[..], steps].concat());
    let sequences = [
        // Begun, grown, and shrunk again by the leader.
        after(&[
            Step::MoveLeader { slot: 2 },
            Step::Remove { slot: 2 },
            Step::List,
            Step::Get,
        ]),
        // A member that has lost its folder cannot come back as who it was.
        after(&[
            Step::Stop { slot: 1 },
            Step::Wipe { slot: 1 },
            start(1, true),
            Step::List,
        ]),
        // Unless another leads by then: that one does not know what the member has forgotten.
        after(&[
            Step::Stop { slot: 1 },
            Step::Wipe { slot: 1 },
            Step::MoveLeader { slot: 2 },
            start(1, true),
            Step::List,
        ]),
        // One that is started without members to join comes back with its data, and only with it.
        after(&[
            Step::Stop { slot: 1 },
            Step::Rejoin { slot: 1 },
            Step::List,
            Step::Stop { slot: 1 },
            Step::Wipe { slot: 1 },
            Step::MoveLeader { slot: 2 },
            Step::Rejoin { slot: 1 },
            Step::List,
        ]),
        // One that was removed while it was away dies when it comes back.
        after(&[
            Step::Stop { slot: 1 },
            Step::Remove { slot: 1 },
            start(1, true),
            Step::List,
            Step::Get,
        ]),
        // Without a majority nothing is answered, and with it everything is there again.
        after(&[
            Step::Stop { slot: 0 },
            Step::Stop { slot: 1 },
            Step::List,
            Step::Put,
            Step::Status { slot: 2 },
            start(0, true),
            Step::List,
            Step::Get,
        ]),
        // Who is told of other members than there are does not join.
        Some(vec![
            start(0, false),
            Step::Add {
                slot: 1,
                learner: true,
            },
            Step::Start {
                slot: 1,
                existing: true,
                stale: true,
            },
            Step::Add {
                slot: 2,
                learner: true,
            },
            Step::Promote { slot: 1 },
            start(1, true),
            Step::Promote { slot: 1 },
            Step::Promote { slot: 1 },
            Step::Add {
                slot: 1,
                learner: false,
            },
            Step::Remove { slot: 0 },
            Step::List,
        ]),
        // Added with a vote and never started: one more would cost the majority.
        Some(vec![
            start(0, false),
            Step::Add {
                slot: 1,
                learner: false,
            },
            Step::List,
            Step::Add {
                slot: 2,
                learner: false,
            },
            start(1, true),
            Step::List,
            Step::Remove { slot: 1 },
            Step::Remove { slot: 1 },
            Step::Remove { slot: 0 },
            Step::List,
        ]),
    ];
    let sequences = (1000..).zip(sequences);
    let sequences: Vec<_> = sequences.collect();
    all(&sequences, 6);
}
