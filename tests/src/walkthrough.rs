//! A walk-through of the docs, played as it stands: its commands are typed, its files written.
//!
//! In a page, a block marked `console` holds commands after `$ `; `console background` is another
//! terminal, whose last command goes on; a block marked with a language and a path is that file.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::{Folder, PATIENCE};

/// A block of a page.
#[derive(Debug, PartialEq, Eq)]
enum Block {
    Commands(String),
    Background(String),
    File { path: String, text: String },
}

/// The blocks of a page that are to be played, in order.
fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else {
            continue;
        };
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let commands = || {
            let typed = text.iter().filter_map(|line| line.strip_prefix("$ "));
            typed.collect::<Vec<_>>().join("\n")
        };
        match info.split_once(' ') {
            None if info == "console" => found.push(Block::Commands(commands())),
            Some(("console", "background")) => found.push(Block::Background(commands())),
            Some((_, path)) => found.push(Block::File {
                path: path.to_owned(),
                text: text.join("\n") + "\n",
            }),
            None => {}
        }
    }
    found
}

/// A terminal in a folder of its own, in which a person types.
pub struct Terminal {
    folder: Folder,
    background: Vec<Child>,
}

impl Terminal {
    /// An empty folder, with `windlass` and `kubectl` at hand.
    pub fn open(name: &str) -> Self {
        let terminal = Self {
            folder: Folder::new(name),
            background: Vec::new(),
        };
        terminal.prepare();
        terminal
    }

    /// Plays a page of `docs/walkthroughs`; every command in it has to succeed.
    pub fn play(page: &str) -> Self {
        let mut terminal = Self::open(&format!("walkthrough-{page}"));
        let page = root().join(format!("docs/walkthroughs/{page}.md"));
        let page = fs::read_to_string(&page).expect("the page is there");
        for block in blocks(&page) {
            match block {
                Block::Commands(commands) => terminal.run(&commands),
                Block::Background(commands) => terminal.start(&commands),
                Block::File { path, text } => {
                    let path = terminal.current().join(path);
                    fs::write(&path, text).expect("the file can be written");
                }
            }
        }
        terminal
    }

    /// What a command prints in the terminal of the page.
    pub fn ask(&self, command: &str) -> String {
        let output = self.output(command);
        assert!(
            output.status.success(),
            "{command} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn prepare(&self) {
        let bin = self.folder.path().join("bin");
        fs::create_dir_all(&bin).expect("a folder can be made");
        let kubectl = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
        let script = format!("#!/bin/sh\nexec {kubectl} \"$@\"\n");
        fs::write(bin.join("kubectl"), script).expect("a file can be written");
        self.ask_plainly("chmod +x bin/kubectl");
        fs::write(
            self.state("folder"),
            self.folder.path().display().to_string(),
        )
        .expect("state");
        fs::write(self.state("variables"), "").expect("state");
        // The crates of a checkout are the author's own here: built as fast as can be.
        let crates = [
            "windlass",
            "windlass-apiserver",
            "windlass-cluster",
            "windlass-node",
            "windlass-workloads",
        ];
        let config: String = crates
            .map(|name| format!("[profile.dev.package.{name}]\nopt-level = 0\n"))
            .concat();
        fs::create_dir_all(self.folder.path().join(".cargo")).expect("a folder can be made");
        fs::write(self.folder.path().join(".cargo/config.toml"), config).expect("configuration");
    }

    /// The commands of the project's CI.
    pub fn ci(&self) -> Vec<String> {
        let workflow = self.current().join(".github/workflows/ci.yml");
        let workflow = fs::read_to_string(workflow).expect("the project has CI");
        workflow
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- run: "))
            .map(str::to_owned)
            .collect()
    }

    /// What a command that has to fail says about it.
    pub fn refused(&self, command: &str) -> String {
        let output = self.output(command);
        assert!(!output.status.success(), "{command} succeeded");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn ask_plainly(&self, command: &str) {
        let status = Command::new("bash")
            .args(["-c", command])
            .current_dir(self.folder.path())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{command}");
    }

    fn state(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!(".{name}"))
    }

    /// The folder it is in now.
    pub fn current(&self) -> PathBuf {
        PathBuf::from(
            fs::read_to_string(self.state("folder"))
                .expect("state")
                .trim(),
        )
    }

    /// Types commands, which have to succeed.
    pub fn run(&self, commands: &str) {
        let script = format!(
            "{commands}\npwd > {}\nexport -p > {}\n",
            self.state("folder").display(),
            self.state("variables").display()
        );
        let status = self.shell(&script).status().expect("bash runs");
        assert!(status.success(), "one of these failed:\n{commands}");
    }

    /// Types commands in another terminal, where the last one goes on.
    pub fn start(&mut self, commands: &str) {
        let child = self
            .shell(commands)
            .process_group(0)
            .spawn()
            .expect("bash runs");
        self.background.push(child);
    }

    /// Ends what goes on in the other terminals, as Ctrl-C does there, and waits for it.
    pub fn interrupt(&mut self) {
        for mut child in self.background.drain(..) {
            let group = format!("-{}", child.id());
            let _ = Command::new("kill").args(["-INT", "--", &group]).status();
            let _ = child.wait();
        }
    }

    /// Types a command, presses Ctrl-C after a while, and tells how it ended and what it printed.
    pub fn interrupted(&self, command: &str, after: Duration) -> Output {
        let child = self
            .shell(&format!("exec {command}"))
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("bash runs");
        crate::becomes(&child, command.split(' ').next().unwrap_or_default());
        std::thread::sleep(after);
        // A terminal tells everybody in the group; nobody is left there after the end.
        let group = format!("-{}", child.id());
        let _ = Command::new("kill")
            .args(["-INT", "--", &group])
            .stderr(Stdio::null())
            .status();
        child.wait_with_output().expect("it ends")
    }

    /// Types a command again and again until it succeeds, and gives what it printed then.
    pub fn until(&self, command: &str) -> String {
        let limit = Instant::now() + PATIENCE;
        loop {
            let output = self.output(command);
            if output.status.success() {
                return String::from_utf8_lossy(&output.stdout).into_owned();
            }
            assert!(
                Instant::now() < limit,
                "{command} did not succeed within {PATIENCE:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// How a command ended, and what it printed.
    pub fn output(&self, command: &str) -> Output {
        self.shell(command).output().expect("bash runs")
    }

    /// A shell that goes on where the last one stopped.
    fn shell(&self, script: &str) -> Command {
        let bin = self.folder.path().join("bin");
        let program = crate::program();
        let programs = program.parent().unwrap_or(Path::new("."));
        let path = std::env::var("PATH").unwrap_or_default();
        let script = format!(
            "set -euo pipefail\nsource {}\ncd {}\n{script}",
            self.state("variables").display(),
            self.current().display()
        );
        let mut command = crate::interruptible("bash");
        command
            .args(["-c", &script])
            .stdin(Stdio::null())
            .env(
                "PATH",
                format!("{}:{}:{path}", bin.display(), programs.display()),
            )
            .env("WINDLASS_PATH", root())
            .env("CARGO_TARGET_DIR", target())
            // What the workspace is built from is all there is: tests reach no network.
            .env("CARGO_NET_OFFLINE", "true")
            // An image in a test need not be fast.
            .env("WINDLASS_IMAGE_PROFILE", "dev")
            .env("KUBECACHEDIR", self.folder.path().join("cache"))
            .env_remove("KUBECONFIG");
        command
    }
}

impl Terminal {
    /// Removes what Cargo compiled of the project: its folder will not be there again, and its
    /// programs are large.
    fn clean(&self) {
        let folder = self.current();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let built = fs::read_dir(target().join("debug/.fingerprint"));
        let of_project = format!("{name}-");
        let is_built = built.into_iter().flatten().flatten().any(|entry| {
            let entry = entry.file_name();
            entry.to_string_lossy().starts_with(&of_project)
        });
        if is_built {
            let _ = self
                .shell(&format!("cargo clean --quiet -p {name}"))
                .status();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        for child in &mut self.background {
            let group = i32::try_from(child.id()).unwrap_or_default();
            let _ = Command::new("kill")
                .args(["-TERM", "--", &format!("-{group}")])
                .status();
            let _ = child.wait();
        }
        let _ = Command::new(crate::program())
            .args(["down", "--purge"])
            .current_dir(self.current())
            .stdout(Stdio::null())
            .status();
        self.clean();
    }
}

/// What projects are compiled into: one folder for all, so that their dependencies are compiled
/// once.
fn target() -> PathBuf {
    root().join("target/scaffold")
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests are in the repository")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_apart() {
        let page = "# T\n\n```console\n$ a\nprinted\n$ b\n```\n\n```text\nx\n```\n```rust src/x.rs\nfn x() {}\n```\n```console background\n$ c\n```\n";
        let file = Block::File {
            path: "src/x.rs".to_owned(),
            text: "fn x() {}\n".to_owned(),
        };
        assert_eq!(
            blocks(page),
            [
                Block::Commands("a\nb".to_owned()),
                file,
                Block::Background("c".to_owned())
            ]
        );
    }
}
