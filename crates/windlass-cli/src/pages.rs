//! A page per command in `docs/commands`, made from the same definitions as `--help`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory as _};

use crate::Cli;

/// The pages by file name.
fn pages() -> Vec<(String, String)> {
    let mut cli = Cli::command();
    cli.build();
    let mut pages = vec![("README.md".to_owned(), index(&cli))];
    for command in cli
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
    {
        let mut text = String::new();
        page(&mut text, command, &[], 1);
        pages.push((format!("{}.md", command.get_name()), text));
    }
    pages
}

fn index(cli: &Command) -> String {
    let mut text = String::from(
        "# Commands\n\nWritten from the definitions of the commands; `windlass COMMAND --help` prints the same.\n\n| command | what it does |\n| --- | --- |\n",
    );
    for command in cli
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
    {
        let name = command.get_name();
        let about = command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        let _ = writeln!(text, "| [`windlass {name}`]({name}.md) | {about} |");
    }
    text.push_str("\n## Exit codes\n\n| code | meaning |\n| --- | --- |\n| 0 | done |\n| 1 | it failed; one sentence on standard error says why, and what to do |\n| 2 | the command line was not understood |\n| 130 | it was ended by Ctrl-C or a signal; what it had begun is taken back |\n");
    text
}

fn page(text: &mut String, command: &Command, above: &[&str], depth: usize) {
    let mut path = above.to_vec();
    path.push(command.get_name());
    let name = format!("windlass {}", path.join(" "));
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(text, "{} {name}\n\n{}\n", "#".repeat(depth), about.trim());
    let own: Vec<&Command> = command
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
        .collect();
    if own.is_empty() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").trim();
        let _ = writeln!(text, "```console\n{usage}\n```\n");
    }
    let shown = |argument: &&Arg| argument.get_id() != "help";
    let arguments: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    if !arguments.is_empty() {
        text.push_str("| | |\n| --- | --- |\n");
        for argument in arguments {
            let _ = writeln!(text, "| `{}` | {} |", named(argument), described(argument));
        }
        text.push('\n');
    }
    if let Some(examples) = command.get_after_help() {
        let examples = examples.to_string();
        let lines = examples
            .lines()
            .skip(1)
            .map(|line| line.strip_prefix("  ").unwrap_or(line));
        let lines: Vec<&str> = lines.collect();
        let _ = writeln!(text, "```console\n{}\n```\n", lines.join("\n"));
    }
    for command in own {
        page(text, command, &path, depth + 1);
    }
    let trimmed = text.trim_end().len();
    text.truncate(trimmed);
    text.push('\n');
    if depth > 1 {
        text.push('\n');
    }
}

fn named(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let value = values.first().map(ToString::to_string).unwrap_or_default();
    let takes = argument.get_action().takes_values();
    let short = argument.get_short().map(|short| format!("-{short}, "));
    let short = short.unwrap_or_default();
    match argument.get_long() {
        Some(long) if takes => format!("{short}--{long} {value}"),
        Some(long) => format!("{short}--{long}"),
        None => value,
    }
}

fn described(argument: &Arg) -> String {
    let help = argument
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut text = help.replace('|', "\\|");
    let possible: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|_| argument.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !possible.is_empty() {
        let _ = write!(text, " ({})", possible.join(", "));
    }
    let defaults = argument.get_default_values();
    if let (Some(default), true) = (defaults.first(), argument.get_action().takes_values()) {
        let _ = write!(text, "; default `{}`", default.to_string_lossy());
    }
    for alias in argument.get_visible_aliases().into_iter().flatten() {
        let _ = write!(text, "; also `--{alias}`");
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(text, "; also `{}`", variable.to_string_lossy());
    }
    text
}

#[test]
fn the_pages_of_the_commands_are_current() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands");
    for (name, text) in pages() {
        let path = folder.join(&name);
        if std::env::var_os("WINDLASS_WRITE_PAGES").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "docs/commands/{name} is stale: run `WINDLASS_WRITE_PAGES=1 cargo test -p windlass-cli pages`"
        );
    }
}

#[test]
fn every_command_has_an_example_and_every_flag_a_help() {
    fn check(command: &Command, path: &str) {
        let own: Vec<&Command> = command
            .get_subcommands()
            .filter(|one| one.get_name() != "help")
            .collect();
        for command in &own {
            check(command, &format!("{path} {}", command.get_name()));
        }
        assert!(
            command.get_about().is_some(),
            "{path} does not say what it does"
        );
        if own.is_empty() {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(help.starts_with("Example"), "{path} has no example");
        }
        for argument in command.get_arguments() {
            assert!(
                argument.get_help().is_some(),
                "{path}: {} has no help",
                argument.get_id()
            );
        }
    }
    check(&Cli::command(), "windlass");
}
