//! `windlass explore`: an operator, as a black box, run again and again with faults.

use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use windlass_explore::explore::{Exploration, Finding, Kept, Options, Progress, Report};
use windlass_explore::scenario::{Scenario, duration};
use windlass_explore::{Base, Pace, Subject, Template, html, report};

use crate::error::{Error, Result, at};
use crate::interrupt::Signals;
use crate::progress::Step;

/// How often a log is written to.
const LINE: Duration = Duration::from_secs(15);
/// Exit code when something was found.
const FOUND: u8 = 1;
/// Exit code when nothing can be judged.
const UNUSABLE: u8 = 2;

/// Run any operator again and again, each time with another fault, and report what goes wrong
///
/// The operator is any program that takes a kubeconfig, in any language. Each run has an API server
/// of its own, which takes milliseconds to start and needs no pods: the first runs are undisturbed,
/// the others meet one fault (then two) at a point where it can make a difference. What ends badly is
/// run again, and once more with a pause in place of the fault, before it is reported.
///
/// In the command, `{kubeconfig}` is the path of a kubeconfig (KUBECONFIG is set to it as well),
/// `{port}`, `{port2}` … are free ports, and `{dir}` is a folder of the run.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass explore scenario.yaml -- ./operator --kubeconfig {kubeconfig}
  windlass explore --crds config/crd --sample config/samples/web.yaml -- ./operator
  windlass explore scenario.yaml --replay f3a9 -- ./operator --kubeconfig {kubeconfig}

Exit codes: 0 nothing was found, 1 something was, 2 it cannot be judged (such as an operator that
fails undisturbed)")]
pub(crate) struct Explore {
    /// What a user does, as YAML: objects to begin with, and steps
    #[arg(required_unless_present = "sample", conflicts_with = "sample")]
    scenario: Option<PathBuf>,
    /// Definitions of the operator's kinds, when there is no scenario: a file or a folder
    #[arg(long, requires = "sample")]
    crds: Option<PathBuf>,
    /// An object to apply, delete and apply again, when there is no scenario
    #[arg(long, requires = "crds")]
    sample: Option<PathBuf>,
    /// How many plans are run at most
    #[arg(long, default_value_t = 1_000)]
    plans: usize,
    /// For how long new plans are begun, such as 90s or 10m
    #[arg(long, default_value = "5m")]
    time: String,
    /// How many runs there are at a time. Default: 1, or 2 when the command has {port}
    #[arg(long)]
    jobs: Option<usize>,
    /// End after so many findings
    #[arg(long)]
    findings: Option<usize>,
    /// How long a difference may stay before it counts
    #[arg(long, default_value = "20s")]
    patience: String,
    /// Change each field of what is applied first, too, as far as the definitions know it: changed and
    /// taken back, it must be as before
    #[arg(long)]
    fields: bool,
    /// Run one plan only: its four letters, or its file
    #[arg(long, value_name = "ID")]
    replay: Option<String>,
    /// How often that plan is run
    #[arg(long, default_value_t = 1, requires = "replay")]
    times: usize,
    /// Where plans of findings are kept, and the report is written
    #[arg(long, default_value = "explore")]
    out: PathBuf,
    /// Environment variable for the operator, as NAME=VALUE; placeholders work here, too
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// The operator and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

impl Explore {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let mut signals = Signals::listen()?;
        let explored = signals.unless(Box::pin(self.explore())).await;
        explored.unwrap_or_else(|| {
            Err(Error::Interrupted(
                "the runs under way were ended".to_owned(),
            ))
        })
    }

    async fn explore(&self) -> Result<ExitCode> {
        let other = |error: &dyn std::fmt::Display| Error::Other(error.to_string());
        let mut scenario = match (&self.scenario, &self.crds, &self.sample) {
            (Some(path), ..) => Scenario::read(path),
            (None, Some(crds), Some(sample)) => Scenario::of_sample(crds, sample),
            _ => {
                return Err(Error::Other(
                    "name a scenario, or --crds and --sample".to_owned(),
                ));
            }
        }
        .map_err(|error| other(&error))?;
        let subject = Subject::process(self.template()?);
        let kept = self.kept()?;
        if let Some(kept) = &kept {
            scenario = kept.scenario(&scenario).map_err(Error::Other)?;
        }
        let budget = time("--time", &self.time)?;
        let pace = Pace {
            patience: time("--patience", &self.patience)?,
            ..Pace::real()
        };
        let explored = self
            .judge(&scenario, &subject, pace, budget, kept.as_ref())
            .await;
        match explored {
            Ok(report) => self.conclude(&report, kept.is_some()),
            Err(unusable) => {
                eprintln!("cannot judge: {unusable}");
                Ok(ExitCode::from(UNUSABLE))
            }
        }
    }

    async fn judge(
        &self,
        scenario: &Scenario,
        subject: &Subject,
        pace: Pace,
        budget: Duration,
        kept: Option<&Kept>,
    ) -> Result<Report, windlass_explore::Unusable> {
        let step = Step::start("playing the scenario undisturbed");
        let base = Base::prepare(scenario, pace).await?;
        let exploration = Exploration::begin(&base, scenario, subject).await?;
        drop(step);
        if let Some(kept) = kept {
            let _step = Step::start(format!("playing plan {}", kept.id));
            return exploration.replay(kept, self.times).await;
        }
        let names_ports = self
            .command
            .iter()
            .chain(&self.env)
            .any(|word| word.contains("{port"));
        let options = Options {
            plans: self.plans,
            time: Some(budget),
            jobs: self.jobs.unwrap_or(if names_ports { 2 } else { 1 }),
            findings: self.findings.unwrap_or(usize::MAX),
            fields: self.fields,
            ..Options::default()
        };
        let (mut step, mut shown) = (None, Instant::now());
        let is_terminal = std::io::stderr().is_terminal();
        exploration
            .run(&options, |progress| match progress {
                // In a log, a line now and then is enough.
                Progress::Doing(what) if is_terminal || shown.elapsed() > LINE => {
                    drop(step.take());
                    step = Some(Step::start(what));
                    shown = Instant::now();
                }
                Progress::Doing(_) => {}
                Progress::Found(finding) => {
                    drop(step.take());
                    println!(
                        "{}",
                        report::finding_text(&finding, &self.replays(&finding.kept))
                    );
                }
            })
            .await
    }

    /// Writes and prints what was found.
    fn conclude(&self, report: &Report, is_replay: bool) -> Result<ExitCode> {
        if is_replay {
            println!(
                "{} of {} runs of this plan end badly",
                report.failed, report.runs
            );
            for finding in &report.findings {
                print!(
                    "{}",
                    report::finding_text(finding, &self.replays(&finding.kept))
                );
            }
        } else {
            for Finding { kept, .. } in &report.findings {
                let text = serde_saphyr::to_string(kept)
                    .map_err(|error| Error::Other(format!("cannot write a plan: {error}")))?;
                write(&self.out.join(format!("{}.yaml", kept.id)), &text)?;
            }
            let path = self.out.join("report.html");
            write(&path, &html::page(report, &self.command.join(" ")))?;
            print!("{}", report::head(report));
            for race in &report.races {
                println!("RACE        {race}");
            }
            println!("report      {}", path.display());
        }
        let is_sound = report.is_sound() && report.races.is_empty();
        Ok(if is_sound {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FOUND)
        })
    }

    /// The command that replays a plan.
    fn replays(&self, kept: &Kept) -> String {
        let what = match (&self.scenario, &self.crds, &self.sample) {
            (None, Some(crds), Some(sample)) => {
                format!("--crds {} --sample {}", crds.display(), sample.display())
            }
            (scenario, ..) => scenario
                .as_deref()
                .unwrap_or(Path::new(""))
                .display()
                .to_string(),
        };
        let command = self.command.join(" ");
        format!("windlass explore {what} --replay {} -- {command}", kept.id)
    }

    fn kept(&self) -> Result<Option<Kept>> {
        let Some(id) = &self.replay else {
            return Ok(None);
        };
        let named = PathBuf::from(id);
        let path = if named.exists() {
            named
        } else {
            self.out.join(format!("{id}.yaml"))
        };
        let text = fs::read_to_string(&path).map_err(at(&path))?;
        let kept = serde_saphyr::from_str(&text);
        let kept = kept
            .map_err(|error| Error::Other(format!("cannot parse {}: {error}", path.display())))?;
        Ok(Some(kept))
    }

    fn template(&self) -> Result<Template> {
        let env = self.env.iter().map(|pair| {
            let pair = pair.split_once('=');
            pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
        });
        let env: Option<Vec<(String, String)>> = env.collect();
        let env = env.ok_or_else(|| Error::Other("--env: expected NAME=VALUE".to_owned()))?;
        let folder = std::env::current_dir().map_err(at(Path::new(".")))?;
        Ok(Template {
            words: self.command.clone(),
            folder,
            env,
        })
    }
}

fn time(flag: &str, text: &str) -> Result<Duration> {
    duration(text)
        .ok_or_else(|| Error::Other(format!("{flag}: {text:?} is no time such as 90s or 10m")))
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    fs::write(path, text).map_err(at(path))
}
