//! `make bench-framework`: the same operator on Windlass and on its peers, on one API server, one
//! after the other, and what each of them took, side by side. Figures, never verdicts.

mod count;
mod process;
mod rounds;
mod table;
mod world;

use std::{env, process::ExitCode};

use kube::{Client, Config};

use self::{process::Subject, rounds::Rounds, world::World};

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
        idle_seconds: number("BENCH_IDLE_SECONDS", 10),
    };
    let world = World::new(Client::try_from(Config::infer().await?)?).await?;
    let mut columns = Vec::new();
    for subject in &subjects {
        eprintln!("{}: {} widgets", subject.name, rounds.widgets);
        world.clear().await?;
        columns.push(rounds.play(&world, subject).await?);
    }
    world.clear().await?;
    eprintln!("filling the API server with {} Deployments", rounds.cached);
    let bytes = world.fill(rounds.cached).await?;
    for (subject, column) in subjects.iter().zip(&mut columns) {
        column.cached = Some(rounds.hold(subject, column.empty).await?);
    }
    world.clear().await?;
    print!("{}", table::of(&rounds, bytes, &columns));
    Ok(())
}
