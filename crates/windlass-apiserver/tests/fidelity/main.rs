//! Random sequences of requests, on the real kube-apiserver and on ours: every answer and every
//! watch event must be the same.
//!
//! `make fidelity` starts a real server and plays `SEQUENCES` of fifty operations each from `SEED`,
//! both in the environment. A sequence on which the two differ is shrunk to the few steps that
//! matter and printed as a case for `tests/recorded/cases`. What differs on purpose is listed in
//! `explained.yaml` and in `docs/fidelity.md`.
//!
//! Run plainly, the test plays a fixed part on ours and compares with what the real server answered
//! when `make record` was last run; of those answers it keeps a digest each. Sequences on which ours
//! still differs are listed in `differing.txt`, which may only shrink.

// The recorded suite's own modules, of which this one needs a part.
#[allow(dead_code)]
#[path = "../recorded/case.rs"]
mod case;
#[allow(dead_code)]
#[path = "../recorded/compare.rs"]
mod compare;
mod coverage;
mod dice;
mod empty;
mod explained;
mod generate;
#[path = "../recorded/hooks.rs"]
mod hooks;
mod kinds;
#[path = "../recorded/labels.rs"]
mod labels;
#[path = "../recorded/normalise.rs"]
mod normalise;
mod pace;
mod play;
mod pointer;
mod recording;
#[allow(dead_code)]
#[path = "../recorded/run.rs"]
mod run;
mod schema;
#[path = "../recorded/servers.rs"]
mod servers;
mod shrink;
mod step;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use case::Step;
use compare::Difference;
use coverage::Coverage;
use dice::Dice;
use explained::Explained;
use kinds::Kind;
use normalise::Normal;
use pace::Pace;
use servers::Servers;

/// Operations of a sequence.
const LENGTH: usize = 50;
/// Sequences that share one definition: making one costs the real server more than using it.
const SHARING: usize = 40;
/// How many definitions are there at a time: each costs the real server as long as it is there.
const KEPT: usize = 8;
/// How often a sequence on which the two differ is played again before that is a difference.
const AGAIN: usize = 3;
/// The part that is recorded.
const FIXED: usize = 150;
const FIXED_SEED: u64 = 1;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fidelity")
}

/// One sequence, and what must be there for it.
struct Sequence {
    name: String,
    definition: Value,
    custom: Kind,
    steps: Vec<Step>,
}

fn sequence(built_in: &[Kind], seed: u64, number: usize) -> Sequence {
    let batch = number / SHARING;
    let group = format!("b{batch}.s{seed}.example.com");
    let (definition, custom) =
        schema::definition(&mut Dice::seeded(mixed(seed, batch + 1_000_000)), &group);
    let mut dice = Dice::seeded(mixed(seed, number));
    let mut kinds: Vec<&Kind> = Vec::new();
    while kinds.len() < 3 {
        let kind = dice.one(built_in);
        if !kinds.iter().any(|known| known.plural == kind.plural) {
            kinds.push(kind);
        }
    }
    kinds.push(&custom);
    let steps = generate::sequence(&mut dice, &kinds, LENGTH);
    Sequence {
        name: format!("q{number}-s{seed}"),
        definition,
        custom: custom.clone(),
        steps,
    }
}

fn mixed(seed: u64, number: usize) -> u64 {
    seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(number as u64)
}

/// Plays steps on a server of ours made for them, in virtual time.
fn on_ours(
    name: &str,
    sequence: &Sequence,
    steps: &[Step],
    pace: &Pace,
) -> Result<Vec<Normal>, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?
        .block_on(async {
            let hooks = hooks::Scripted::new(BTreeMap::default());
            let servers = Servers::ours(case::Server::Plain, hooks);
            play::define(&servers, &sequence.definition, &sequence.custom).await?;
            play::play(&servers, name, steps, pace).await
        })
}

#[test]
fn fixed_sequences_answer_as_recorded() {
    let built_in = Kind::read(&folder().join("kinds.yaml"));
    let explained = Explained::read(&folder().join("explained.yaml"));
    if let Some(kubeconfig) = std::env::var_os("WINDLASS_RECORD") {
        let found = Mutex::new(BTreeMap::new());
        on_real(Path::new(&kubeconfig), FIXED, |servers, number| {
            let sequence = sequence(&built_in, FIXED_SEED, number);
            let found = &found;
            let explained = &explained;
            async move {
                play::define(&servers, &sequence.definition, &sequence.custom)
                    .await
                    .expect("a definition");
                let pace = Pace::noted();
                let mut answers = play::play(&servers, &sequence.name, &sequence.steps, &pace)
                    .await
                    .expect("a sequence");
                play::clear(&servers, &sequence.name, &sequence.steps)
                    .await
                    .expect("clearing");
                explained.strip(&mut answers);
                found
                    .lock()
                    .expect("no panic")
                    .insert(number, recording::digests(&answers));
            }
        });
        recording::write(
            &folder().join("recorded.txt"),
            &found.into_inner().expect("no panic"),
        );
        return;
    }
    let recorded = recording::read(&folder().join("recorded.txt"));
    assert_eq!(recorded.len(), FIXED, "run `make record`");
    let known = recording::numbers(&folder().join("differing.txt"));
    let mut report = String::new();
    for (number, expected) in recorded {
        let sequence = sequence(&built_in, FIXED_SEED, number);
        let at_once = Pace::noted().again();
        let mut answers =
            on_ours(&sequence.name, &sequence, &sequence.steps, &at_once).expect("ours answers");
        explained.strip(&mut answers);
        let compare = format!("make fidelity SEED={FIXED_SEED} FIRST={number} SEQUENCES=1");
        match recording::difference(&expected, &answers) {
            Some(text) if !known.contains(&number) => {
                let _ = write!(report, "sequence {number}: {text}\n  compare: {compare}\n");
            }
            None if known.contains(&number) => {
                let _ = writeln!(
                    report,
                    "sequence {number} agrees now: take it off differing.txt"
                );
            }
            Some(_) | None => {}
        }
    }
    assert!(
        report.is_empty(),
        "not answered as the real server did, or no longer differing:\n{report}"
    );
    println!(
        "{} of {FIXED} sequences answered as recorded",
        FIXED - known.len()
    );
}

#[test]
#[ignore = "needs the real server: make fidelity"]
fn sequences_answer_as_on_the_real_server() {
    let number = |name: &str, otherwise: usize| {
        std::env::var(name).map_or(otherwise, |text| {
            text.parse()
                .unwrap_or_else(|_| panic!("{name} is no number: {text}"))
        })
    };
    let kubeconfig = std::env::var_os("WINDLASS_FIDELITY")
        .expect("WINDLASS_FIDELITY names the real server's kubeconfig");
    let (seed, count, first) = (
        number("SEED", 2) as u64,
        number("SEQUENCES", 200),
        number("FIRST", 0),
    );
    let wanted = number("FAILURES", 10);
    let mut built_in = Kind::read(&folder().join("kinds.yaml"));
    if let Ok(only) = std::env::var("KINDS") {
        built_in.retain(|kind| only.split(',').any(|plural| plural == kind.plural));
        assert!(
            built_in.len() >= 3,
            "KINDS names at least three of kinds.yaml"
        );
    }
    let explained = Explained::read(&folder().join("explained.yaml"));
    let coverage = Mutex::new(Coverage::default());
    let failures = Mutex::new(BTreeMap::<String, (usize, String)>::new());
    let both = Mutex::new(Vec::<String>::new());
    let played = AtomicUsize::new(0);
    let began = std::time::Instant::now();
    on_real(Path::new(&kubeconfig), count, |servers, number| {
        let number = first + number;
        let (built_in, explained, coverage, failures, both, played) =
            (&built_in, &explained, &coverage, &failures, &both, &played);
        async move {
            let sequence = sequence(built_in, seed, number);
            if let Err(error) = play::define(&servers, &sequence.definition, &sequence.custom).await
            {
                panic!("{}: {error}", sequence.name);
            }
            // Definitions of which nobody can be using any more cost the real server dearly.
            if let Some(old) = number
                .checked_sub(KEPT * SHARING)
                .filter(|old| old % SHARING == 0)
            {
                let old = self::sequence(built_in, seed, old);
                play::undefine(&servers, &old.definition)
                    .await
                    .expect("removing a definition");
            }
            let judge = Judge {
                servers: &servers,
                sequence: &sequence,
                explained,
                tries: AtomicUsize::new(0),
            };
            let (real, differences) = judge.differences(&sequence.steps).await;
            coverage
                .lock()
                .expect("no panic")
                .add(&sequence.steps, &real);
            play::clear(&servers, &sequence.name, &sequence.steps)
                .await
                .expect("clearing");
            let done = played.fetch_add(1, Ordering::Relaxed) + 1;
            if done % 500 == 0 {
                eprintln!("{done} sequences, {:.0?}", began.elapsed());
            }
            let Some(difference) = first_of(&differences) else {
                return;
            };
            let class = class_of(difference);
            let whole = format!(
                "{}:\n    {}",
                difference.step,
                difference.lines.join("\n    ")
            );
            if judge.real_says_both().await {
                eprintln!("--- {}: the real server says both\n{whole}", sequence.name);
                both.lock()
                    .expect("no panic")
                    .push(format!("{}: {class}", sequence.name));
                return;
            }
            {
                let mut failures = failures.lock().expect("no panic");
                let known = failures.len();
                if let Some((times, _)) = failures.get_mut(&class) {
                    *times += 1;
                    return;
                }
                if known >= wanted {
                    failures.entry("(more)".into()).or_default().0 += 1;
                    return;
                }
                failures.insert(class.clone(), (1, String::new()));
            }
            let text = judge.shrunk(&class).await;
            eprintln!(
                "--- {} differs: {class}\n{whole}\nshrunk:\n{text}",
                sequence.name
            );
            if let Some((_, stored)) = failures.lock().expect("no panic").get_mut(&class) {
                *stored = text;
            }
        }
    });
    let mut coverage = coverage.into_inner().expect("no panic");
    if let Some(path) = std::env::var_os("COVERAGE") {
        coverage.accumulate(Path::new(&path));
    }
    println!("{coverage}");
    println!(
        "{}",
        empty::explain(&folder().join("empty.yaml"), &coverage.empty())
    );
    println!(
        "{} sequences of {LENGTH} operations from seed {seed} in {:.0?}",
        played.into_inner(),
        began.elapsed()
    );
    for (why, times) in explained.used() {
        println!("explained: {times} times: {why}");
    }
    let both = both.into_inner().expect("no panic");
    println!(
        "explained: {} times: the real server itself answers a sequence in two ways, one of which is ours",
        both.len()
    );
    for sequence in both {
        println!("  {sequence}");
    }
    let failures = failures.into_inner().expect("no panic");
    for (class, (times, _)) in &failures {
        println!("differs {times} times: {class}");
    }
    assert!(
        failures.is_empty(),
        "{} sorts of differences",
        failures.len()
    );
}

/// The difference to look at: what a watch shows follows from what another step did.
fn first_of(differences: &[Difference]) -> Option<&Difference> {
    let own = |difference: &&Difference| !difference.step.contains("watch");
    differences.iter().find(own).or(differences.first())
}

/// What makes two differences the same bug: the operation and the places, without numbers and values.
fn class_of(difference: &Difference) -> String {
    let operation: Vec<&str> = difference.step.split(' ').skip(1).take(2).collect();
    let places: Vec<&str> = difference
        .lines
        .iter()
        .take(2)
        .map(|line| line.split(": ").next().unwrap_or_default())
        .collect();
    format!("{} at {}", operation.join(" "), places.join(", "))
}

struct Judge<'a> {
    servers: &'a Servers,
    sequence: &'a Sequence,
    explained: &'a Explained,
    tries: AtomicUsize,
}

impl Judge<'_> {
    /// Plays steps on both, in a namespace no other try has used.
    async fn differences(&self, steps: &[Step]) -> (Vec<Normal>, Vec<Difference>) {
        let attempt = self.tries.fetch_add(1, Ordering::Relaxed);
        let name = match attempt {
            0 => self.sequence.name.clone(),
            _ => format!("{}-{attempt}", self.sequence.name),
        };
        let pace = Pace::noted();
        let real = play::play(self.servers, &name, steps, &pace).await;
        let pace = pace.again();
        let ours = on_another_thread(|| on_ours(&name, self.sequence, steps, &pace));
        let (real, ours) = match (real, ours) {
            (Ok(real), Ok(ours)) => (real, ours),
            (real, ours) => panic!(
                "{name} cannot be played: real {:?}, ours {:?}",
                real.err(),
                ours.err()
            ),
        };
        let (mut stripped, mut ours) = (real.clone(), ours);
        self.explained.strip(&mut stripped);
        self.explained.strip(&mut ours);
        let differences = compare::compare(&stripped, &ours);
        (real, differences)
    }

    /// Whether the real server, asked again, answers as ours does: by its clock (a second may pass
    /// between two steps) or by chance it says one thing or the other, and both are right.
    async fn real_says_both(&self) -> bool {
        for _ in 0..AGAIN {
            if self.differences(&self.sequence.steps).await.1.is_empty() {
                return true;
            }
        }
        false
    }

    async fn shrunk(&self, class: &str) -> String {
        let fails = async |steps: Vec<Step>| {
            let (_, differences) = self.differences(&steps).await;
            first_of(&differences).is_some_and(|difference| class_of(difference) == class)
        };
        let steps = shrink::shrink(self.sequence.steps.clone(), fails).await;
        let (_, differences) = self.differences(&steps).await;
        let mut text = String::new();
        for difference in differences.iter().take(2) {
            let _ = writeln!(text, "{}:", difference.step);
            for line in difference.lines.iter().take(12) {
                let _ = writeln!(text, "    {line}");
            }
        }
        if steps.iter().any(|step| step.path.contains("/things")) {
            let _ = writeln!(
                text,
                "with {}",
                self.sequence.definition["spec"]["versions"]
            );
        }
        text.push_str(&shrink::script(&steps));
        text
    }
}

/// A runtime cannot start within another: ours gets a thread for its own.
fn on_another_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        scope
            .spawn(work)
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Plays `count` sequences on the real server, several at a time.
fn on_real<F, Fut>(kubeconfig: &Path, count: usize, each: F)
where
    F: Fn(Servers, usize) -> Fut + Sync,
    Fut: Future<Output = ()>,
{
    use futures::StreamExt as _;
    const THREADS: usize = 4;
    const AT_ONCE: usize = 8;
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime starts");
                runtime.block_on(async {
                    let servers =
                        Servers::real(kubeconfig, hooks::Scripted::new(BTreeMap::default())).await;
                    futures::stream::iter(std::iter::from_fn(|| {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        (number < count).then_some(number)
                    }))
                    .map(|number| each(servers.clone(), number))
                    .buffer_unordered(AT_ONCE)
                    .collect::<()>()
                    .await;
                });
            });
        }
    });
}
