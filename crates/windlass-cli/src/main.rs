//! The `windlass` command: parses, calls, prints.

mod bundled;
mod down;
mod error;
mod images;
mod progress;
mod samples;
mod shim;
mod state;
mod status;
mod table;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A toolkit for Kubernetes operators, with a cluster to run them on.
#[derive(Parser)]
#[command(
    name = "windlass",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
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
        Command::Version => {
            println!("windlass {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
