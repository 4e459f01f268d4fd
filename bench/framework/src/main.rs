//! `make bench-framework`: the same operator on Windlass and on its peers, on one API server, one
//! after the other, and what each of them took, side by side.
//!
//! Which operator runs first matters: the API server's store and caches grow while it runs. So there
//! are several rounds, every other one in the opposite order, and the tables show medians.

mod count;
mod process;
mod rounds;
mod table;
mod world;

use std::{env, process::ExitCode};

use kube::{Client, Config};

use self::{process::Subject, rounds::Rounds, table::Column, world::World};

#[tokio::main]
async fn main() -> ExitCode {
    match bench().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-framework: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What can go wrong in a benchmark is for people to read.
type Anything<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A number from the environment, for shorter runs.
fn number(name: &str, default: u32) -> u32 {
    let given = env::var(name).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(default)
}

/// `NAME=PROGRAM [ARGUMENT…]` for each operator.
async fn bench() -> Anything<()> {
    let subjects: Vec<Subject> = env::args()
        .skip(1)
        .filter_map(|text| Subject::parse(&text))
        .collect();
    if subjects.is_empty() {
        return Err("give each operator as NAME=PROGRAM [ARGUMENT…]".into());
    }
    let rounds = Rounds {
        widgets: number("BENCH_WIDGETS", 2000),
        singles: number("BENCH_SINGLES", 200),
        cached: number("BENCH_CACHED", 10_000),
        times: number("BENCH_ROUNDS", 4).max(1),
        idle_seconds: number("BENCH_IDLE_SECONDS", 10),
    };
    let world = World::new(Client::try_from(Config::infer().await?)?).await?;
    let mut columns: Vec<Column> = subjects.iter().map(Column::new).collect();
    world.clear().await?;
    // Nobody's: the first operator should not find a server that has done nothing yet.
    eprintln!("warming up");
    world.create_widgets(rounds.widgets).await?;
    for round in 0..rounds.times {
        for nth in order(subjects.len(), round) {
            let (subject, column) = (&subjects[nth], &mut columns[nth]);
            let (round, name) = (round + 1, &subject.name);
            eprintln!("round {round}: {name}, {} widgets", rounds.widgets);
            world.clear().await?;
            let play = rounds.play(&world, subject).await?;
            // For a run that is broken off.
            eprintln!("  {}", table::line(&play));
            column.plays.push(play);
        }
    }
    world.clear().await?;
    eprintln!("filling the API server with {} Deployments", rounds.cached);
    let bytes = world.fill(rounds.cached).await?;
    for round in 0..rounds.times {
        for nth in order(subjects.len(), round) {
            let (subject, column) = (&subjects[nth], &mut columns[nth]);
            if let Some(play) = column.plays.get_mut(round as usize) {
                play.cached = rounds.hold(subject, play.empty).await?;
            }
        }
    }
    world.clear().await?;
    print!("{}", table::of(&rounds, bytes, &columns));
    Ok(())
}

/// The places of the operators in a round: as they were given, or the last one first.
fn order(subjects: usize, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..subjects).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}
