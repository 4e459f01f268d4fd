//! What black-box tests of the built `windlass` program share: a cluster in a folder of its own,
//! stopped and removed when the test ends, however it ends.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};
use serde_json::Value;

pub mod book;
pub mod inventory;
pub mod machine;
pub mod script;
pub mod walkthrough;

/// How long anything in these tests may take.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A folder with a cluster of its own.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A new, empty folder.
    ///
    /// With root, the thread of the test and everything it starts is on a network of its own from
    /// now on, so that tests neither see each other's interfaces and rules nor leave any behind.
    pub fn new(test: &str) -> Self {
        machine::own_network();
        let path = std::env::temp_dir().join(format!("windlass-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `windlass` in the folder.
    pub fn windlass(&self, args: &[&str]) -> Output {
        Command::new(program())
            .args(args)
            .current_dir(&self.path)
            .output()
            .expect("windlass runs")
    }

    /// Runs `windlass`, which must succeed, and gives what it printed.
    pub fn windlass_ok(&self, args: &[&str]) -> String {
        succeeded(
            &format!("windlass {}", args.join(" ")),
            &self.windlass(args),
        )
    }

    /// Runs `kubectl` with the cluster's kubeconfig, which must succeed, and gives what it printed.
    pub fn kubectl(&self, args: &[&str]) -> String {
        succeeded(
            &format!("kubectl {}", args.join(" ")),
            &self.run_kubectl(args),
        )
    }

    /// Runs `kubectl`, which must fail, and gives what it said.
    pub fn kubectl_fails(&self, args: &[&str]) -> String {
        let output = self.run_kubectl(args);
        assert!(
            !output.status.success(),
            "kubectl {} succeeded",
            args.join(" ")
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Runs `kubectl` with the cluster's kubeconfig.
    pub fn run_kubectl(&self, args: &[&str]) -> Output {
        let kubectl = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
        Command::new(&kubectl)
            .args(args)
            .current_dir(&self.path)
            .env("KUBECONFIG", self.path.join(".windlass/kubeconfig"))
            // Discovery caches of other clusters are none of ours.
            .env("KUBECACHEDIR", self.path.join("cache"))
            .output()
            .unwrap_or_else(|error| {
                panic!("cannot run {kubectl}: {error}; scripts/test fetches one and sets KUBECTL")
            })
    }

    /// What `windlass status -o json` says.
    pub fn status(&self) -> Value {
        serde_json::from_str(&self.windlass_ok(&["status", "-o", "json"]))
            .expect("status prints JSON")
    }

    /// Looks again until `wanted` finds what it wants; panics with `what` when it never does.
    ///
    /// The program under test is another process: all that can be done is to ask it again.
    pub fn until<T>(&self, what: &str, mut wanted: impl FnMut(&Value) -> Option<T>) -> T {
        let limit = Instant::now() + PATIENCE;
        loop {
            let status = self.status();
            if let Some(found) = wanted(&status) {
                return found;
            }
            assert!(
                Instant::now() < limit,
                "{what} did not happen within {PATIENCE:?}; last seen: {status:#}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = self.windlass(&["down", "--purge"]);
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Asks again and again until there is an answer; panics with `what` when there never is.
pub fn eventually<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let limit = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(
            Instant::now() < limit,
            "waited {PATIENCE:?} in vain for {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The built program, beside the tests that run it.
pub fn program() -> PathBuf {
    let tests = std::env::current_exe().expect("a test knows where it is");
    let folder = tests
        .parent()
        .and_then(Path::parent)
        .expect("tests are in target/<profile>/deps");
    let program = folder.join("windlass");
    assert!(
        program.exists(),
        "{} is not built; run `cargo build -p windlass-cli`, or scripts/test",
        program.display()
    );
    program
}

fn succeeded(what: &str, output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{what} failed:\n{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// What a memcached at `address` says its process is.
pub fn memcached_pid(address: &str) -> Option<i32> {
    memcached_pid_at(address, 11211)
}

/// What a memcached at `address` and `port` says its process is.
pub fn memcached_pid_at(address: &str, port: u16) -> Option<i32> {
    let mut stream = TcpStream::connect((address, port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(b"stats\r\nquit\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer
        .lines()
        .find_map(|line| line.strip_prefix("STAT pid ")?.trim().parse().ok())
}

/// Whether a process of that number exists.
pub fn exists(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // One that ended and waits to be collected does not run any more; but while threads of it are
    // left, it holds on to its files.
    let state = stat.rsplit(')').next().unwrap_or_default();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    !state.trim_start().starts_with('Z') || threads > 1
}

/// A command that Ctrl-C ends, unless it decides otherwise. Tests that run in the background of a
/// shell have that signal ignored, and so would all that they start.
pub fn interruptible(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(program);
    command
}

/// Waits until a process is this program: until then it may be one that ignores Ctrl-C, as
/// [`interruptible`] begins.
pub fn becomes(process: &Child, program: &str) {
    let name = format!("/proc/{}/comm", process.id());
    let limit = Instant::now() + PATIENCE;
    while std::fs::read_to_string(&name)
        .expect("a process has a name")
        .trim_end()
        != program
    {
        assert!(Instant::now() < limit, "{program} does not start");
        std::thread::yield_now();
    }
}

/// Sends a signal to a process.
pub fn signal(pid: i32, signal: Signal) {
    // Not by a program of its own: the signal would come long after it was to be sent.
    let process = Pid::from_raw(pid).expect("a process number");
    let sent = kill_process(process, signal);
    assert!(sent.is_ok(), "process {pid} is sent {signal:?}: {sent:?}");
}

/// Addresses of the pods that are ready, by name.
pub fn ready_pods(status: &Value) -> Vec<(String, String)> {
    let pods = status["pods"].as_array().into_iter().flatten();
    pods.filter(|pod| {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        conditions
            .into_iter()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
            && pod["metadata"]["deletionTimestamp"].is_null()
    })
    .map(|pod| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&pod["metadata"]["name"]),
            text(&pod["status"]["podIP"]),
        )
    })
    .collect()
}
