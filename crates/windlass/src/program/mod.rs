//! The program every operator binary is.
//!
//! `main` parses the command line and does what it says. Everything it prints or installs is
//! derived from the operator value.

mod install;
mod log;
mod manifests;
mod output;
mod run;
#[cfg(feature = "webhooks")]
mod webhooks;
mod workers;

use std::{
    ffi::OsString,
    io::{self, Write},
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use windlass_manifests::{Manifest, explain, facts, role, to_yaml};

use self::output::Output;
use crate::{Operator, Result};

/// The command line of an operator.
#[derive(Debug, Parser)]
#[command(about = "A Kubernetes operator built with Windlass.")]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the operator against the current kubeconfig, or in the cluster it is deployed to.
    Run(run::Run),
    /// Print every manifest, or write them into folders: CRDs, roles, deployment, samples.
    Manifests(manifests::Manifests),
    /// Install the operator's CRDs into the cluster of the current kubeconfig, unless that would
    /// break what is there.
    Install(install::Install),
    /// Remove the operator's CRDs, and with them every object of these kinds.
    Uninstall(Output),
    /// Print the operator's role: exactly what it may do.
    Rbac,
    /// Say what the operator watches and may do, and why.
    Explain(Output),
    /// Print the operator's version.
    Version(Output),
    /// Do something in a pod that the operator made.
    #[command(hide = true)]
    Helper {
        /// What.
        name: String,
        /// With what.
        arguments: Vec<String>,
    },
}

/// Makes the program of an operator: a function `main` that calls [`main`](fn@crate::main), and,
/// with the feature `allocator`, an allocator that is fast for the many small pieces that operators
/// allocate.
///
/// ```no_run
/// # use windlass::Operator;
/// windlass::main!(operator);
///
/// fn operator() -> Operator {
///     Operator::new("example")
/// }
/// ```
#[macro_export]
macro_rules! main {
    ($operator:expr $(,)?) => {
        $crate::__allocator!();

        fn main() -> ::std::process::ExitCode {
            $crate::main($operator)
        }
    };
}

#[cfg(feature = "allocator")]
#[doc(hidden)]
#[macro_export]
macro_rules! __allocator {
    () => {
        #[global_allocator]
        static ALLOCATOR: $crate::run::Allocator = $crate::run::Allocator;
    };
}

#[cfg(not(feature = "allocator"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __allocator {
    () => {};
}

/// Runs an operator binary: parses the command line and does what it says (`run`, `manifests`,
/// `install`, `uninstall`, `rbac`, `explain`, `version`). [`main!`](crate::main!) makes the whole
/// program; this is for those that have an allocator of their own, or something to do before.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     windlass::main(operator)
/// }
/// # fn operator() -> windlass::Operator { windlass::Operator::new("example") }
/// ```
pub fn main(operator: impl FnOnce() -> Operator) -> ExitCode {
    main_from(operator, std::env::args_os())
}

/// As [`main`](fn@crate::main), with another command line than that of the process: for a program
/// of which the operator is one command. The first argument is the name of the program.
pub fn main_from(
    operator: impl FnOnce() -> Operator,
    line: impl IntoIterator<Item = OsString>,
) -> ExitCode {
    let line: Vec<OsString> = line.into_iter().collect();
    let operator = match operator().as_program(&called_by(&line)) {
        Ok(operator) => operator,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            return ExitCode::FAILURE;
        }
    };
    let name = operator.name().to_owned();
    let example = format!(
        "Example:\n  {name} install && {name} run      # on this machine, against the current kubeconfig\n  \
         {name} manifests | kubectl apply -f -"
    );
    let command = Line::command()
        .display_name(name.clone())
        .bin_name(name.clone())
        .after_help(example);
    let line = command
        .try_get_matches_from(line)
        .and_then(|matches| Line::from_arg_matches(&matches));
    let line = match line {
        Ok(line) => line,
        Err(error) => error.exit(),
    };
    let operator = match chosen(operator, &line.command) {
        Ok(operator) => operator,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{name}: {error}");
            return ExitCode::FAILURE;
        }
    };
    match obey(&operator, line.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The name that the program is called by.
fn called_by(line: &[OsString]) -> String {
    let name = line
        .first()
        .map(std::path::Path::new)
        .and_then(std::path::Path::file_name);
    name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The operator with the controllers that `run` is asked for.
fn chosen(operator: Operator, command: &Command) -> Result<Operator> {
    match command {
        Command::Run(options) if !options.controllers.is_empty() => {
            operator.with_controllers(&options.controllers)
        }
        _ => Ok(operator),
    }
}

fn obey(operator: &Operator, command: Command) -> Result<()> {
    let description = operator.description();
    match command {
        Command::Run(options) => {
            // Dropped after the runtime: it sends what is left.
            let _log = log::start(operator, options.log_json)?;
            block_on(run::run(operator, &options))
        }
        Command::Install(options) => block_on(install::install(operator, &options)),
        Command::Uninstall(output) => block_on(install::uninstall(operator, output)),
        Command::Manifests(options) => block_on(async {
            // Files are written whole, all of them: Ctrl-C waits for that moment.
            let _held = signal(SignalKind::interrupt());
            manifests::obey(operator, options)
        }),
        Command::Rbac => {
            let role =
                Manifest::of(&role::cluster_role(&description)).map_err(crate::Error::other)?;
            print(&to_yaml(&[role]).map_err(crate::Error::other)?)
        }
        Command::Explain(output) => output.print(&facts(&description), &explain(&description)),
        Command::Helper { name, arguments } => block_on(async {
            let said = operator.help(&name, arguments).await?;
            print(&format!("{said}\n"))
        }),
        Command::Version(output) => {
            let (name, version) = (&description.name, &description.version);
            let facts = json!({"name": name, "version": version});
            output.print(&facts, &format!("{name} {version}\n"))
        }
    }
}

fn print(text: &str) -> Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(crate::Error::other),
    }
}

fn block_on(work: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(crate::Error::other)?.block_on(work)
}
