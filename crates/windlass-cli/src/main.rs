//! The `windlass` command: parses, calls, prints.

mod bundled;
mod cluster;
mod commands;
mod down;
mod envtest;
mod error;
mod helm;
mod image;
mod images;
mod interrupt;
mod output;
#[cfg(test)]
mod pages;
mod program;
mod progress;
mod project;
mod samples;
mod scaffold;
mod shim;
mod spelling;
mod state;
mod status;
mod table;
mod up;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use commands::{
    alpha, completion, create, deploy, envtest as assets, explore, image as oci, init,
    metacontroller, operator, rbac, render, run, version,
};

/// A toolkit for Kubernetes operators, with a cluster to run them on.
#[derive(Parser)]
#[command(name = "windlass", version, arg_required_else_help = true)]
#[command(
    after_help = "Examples:\n  windlass up --with memcached --sample --detach\n  windlass status\n  windlass down"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start the embedded cluster: an API server, controllers and a node on this machine
    Up(up::Up),
    /// Stop the cluster and everything that runs in it
    Down(down::Down),
    /// Show what runs in the cluster
    Status(status::Status),
    Init(init::Init),
    #[command(subcommand)]
    Create(create::Create),
    Manifests(operator::Manifests),
    Install(operator::Install),
    Uninstall(operator::Uninstall),
    Run(run::Run),
    #[command(subcommand)]
    Image(oci::Images),
    Deploy(deploy::Deploy),
    Undeploy(deploy::Undeploy),
    Explain(operator::Explain),
    Explore(explore::Explore),
    Render(render::Render),
    Rbac(rbac::Rbac),
    Metacontroller(metacontroller::Metacontroller),
    #[command(subcommand)]
    Alpha(alpha::Alpha),
    Envtest(assets::Envtest),
    Completion(completion::Completion),
    Version(version::Version),
}

fn main() -> ExitCode {
    if let Some(code) = shim::become_one() {
        return code;
    }
    if let Some(code) = envtest::become_one() {
        return code;
    }
    if let Some(code) = helm::become_one() {
        return code;
    }
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    let result = match Cli::parse_from(spelling::corrected(std::env::args_os())).command {
        Command::Up(up) => up.run().await,
        Command::Down(down) => down.run().await,
        Command::Status(status) => status.run().await,
        Command::Init(init) => init.run(),
        Command::Create(create) => create.run(),
        Command::Manifests(manifests) => manifests.run().await,
        Command::Install(install) => install.run().await,
        Command::Uninstall(uninstall) => uninstall.run().await,
        Command::Run(run) => run.run().await,
        Command::Image(image) => image.run().await,
        Command::Deploy(deploy) => Box::pin(deploy.run()).await,
        Command::Undeploy(undeploy) => undeploy.run().await,
        Command::Explain(explain) => explain.run().await,
        Command::Explore(explore) => match Box::pin(explore.run()).await {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Render(render) => render.run(),
        Command::Rbac(rbac) => rbac.run(),
        Command::Metacontroller(metacontroller) => match metacontroller.run() {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Alpha(alpha) => alpha.run(),
        Command::Envtest(envtest) => envtest.run(),
        Command::Completion(completion) => {
            completion.run(Cli::command());
            Ok(())
        }
        Command::Version(version) => {
            version.run();
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error::Error::Told) => ExitCode::FAILURE,
        Err(error) => {
            tell(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

/// One sentence on standard error, coloured where a person reads it.
fn tell(error: &error::Error) {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if std::io::stderr().is_terminal() && !plain {
        eprintln!("\x1b[1;31merror:\x1b[0m {error}");
    } else {
        eprintln!("error: {error}");
    }
}
