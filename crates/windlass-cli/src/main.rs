//! The `windlass` command: parses, calls, prints.

mod bundled;
mod commands;
mod down;
mod error;
mod image;
mod images;
#[cfg(test)]
mod pages;
mod program;
mod progress;
mod project;
mod samples;
mod scaffold;
mod shim;
mod state;
mod status;
mod table;
mod up;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use commands::{alpha, completion, create, deploy, image as oci, init, operator, run};

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
    #[command(subcommand)]
    Alpha(alpha::Alpha),
    Completion(completion::Completion),
    /// Print the version
    Version,
}

fn main() -> ExitCode {
    if let Some(code) = shim::become_one() {
        return code;
    }
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Up(up) => up.run().await,
        Command::Down(down) => down.run().await,
        Command::Status(status) => status.run().await,
        Command::Init(init) => init.run(),
        Command::Create(create) => create.run(),
        Command::Manifests(manifests) => manifests.run(),
        Command::Install(install) => install.run(),
        Command::Uninstall(uninstall) => uninstall.run(),
        Command::Run(run) => run.run().await,
        Command::Image(image) => image.run(),
        Command::Deploy(deploy) => deploy.run().await,
        Command::Undeploy(undeploy) => undeploy.run().await,
        Command::Explain(explain) => explain.run(),
        Command::Alpha(alpha) => alpha.run(),
        Command::Completion(completion) => {
            completion.run(Cli::command());
            Ok(())
        }
        Command::Version => {
            println!("windlass {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error::Error::Told) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
