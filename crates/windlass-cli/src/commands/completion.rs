//! `windlass completion`.

use std::io;

use clap::{Args, Command};
use clap_complete::Shell;

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = "Examples:
  source <(windlass completion bash)
  windlass completion zsh > ~/.zfunc/_windlass
  windlass completion fish > ~/.config/fish/completions/windlass.fish")]
pub(crate) struct Completion {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completion {
    pub(crate) fn run(self, mut command: Command) {
        clap_complete::generate(self.shell, &mut command, "windlass", &mut io::stdout());
    }
}
