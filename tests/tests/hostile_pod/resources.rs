//! Pods that take all they can get: memory by messages, disk by logs, processes, files.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::host::{Host, script};

/// How much is below a folder, in bytes, as files say.
pub(crate) fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => size(&entry.path()),
        Ok(facts) => facts.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

/// How the container of a pod ended: its message.
fn message(pod: &Value) -> Option<String> {
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    ended
        .is_object()
        .then(|| ended["message"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn messages_logs_and_folders_without_end_cost_the_cluster_nothing() {
    let Some(host) = Host::sandbox("floods") else {
        return;
    };
    let once = |name: &str, text: &str| {
        let main = script("main", &["data"], text);
        let volumes = json!([{"name": "data", "emptyDir": {}}]);
        let spec = json!({"restartPolicy": "Never", "containers": [main], "volumes": volumes});
        host.pod(name, spec);
    };
    once(
        "message",
        "truncate -s 12G /dev/termination-log; printf end >> /dev/termination-log",
    );
    // Eighty megabytes, in lines that are not too many.
    once(
        "log",
        "head -c 80000000 /dev/zero | tr '\\0' x | fold -w 8000; echo end",
    );
    // Deeper than a stack, and wider than a list.
    let nest = "python3 -c \"\
import os\n\
os.chdir('/data')\n\
for n in range(5000): open(str(n), 'w').close()\n\
for n in range(3000): os.mkdir('d'); os.chdir('d')\n\"; echo end";
    once("deep", nest);
    let said = host.when("message", "over", message);
    assert!(
        said.len() == 4096 && said.ends_with("end"),
        "{} bytes",
        said.len()
    );
    assert!(host.output("log").ends_with("end\n"));
    let logs = size(&host.folder.path().join(".windlass/node/pods"));
    assert!(logs < 60_000_000, "{logs} bytes are kept");
    assert!(host.output("deep").ends_with("end\n"));
    host.folder
        .kubectl(&["delete", "pod", "deep", "log", "message"]);
    let volumes = host.folder.path().join(".windlass/node/volumes");
    windlass_tests::eventually("the end of every volume", || {
        (fs::read_dir(&volumes).is_ok_and(|entries| entries.count() == 0)).then_some(())
    });
    host.check();
}

#[test]
fn answers_to_probes_and_hooks_without_end_cost_the_cluster_nothing() {
    let Some(host) = Host::sandbox("probes") else {
        return;
    };
    // One header that never ends.
    let server = "
import socket
server = socket.create_server(('', 8080))
while True:
    client, _ = server.accept()
    try:
        client.sendall(b'HTTP/1.1 200 OK\\r\\nX: ')
        while True:
            client.sendall(b'x' * 1000000)
    except OSError:
        pass
";
    let often = |handler: Value| {
        let mut probe = handler;
        probe["timeoutSeconds"] = json!(2);
        probe["periodSeconds"] = json!(1);
        probe["failureThreshold"] = json!(1);
        probe
    };
    let mut http = script("main", &[], "");
    http["command"] = json!(["python3", "-c", server]);
    http["livenessProbe"] = often(json!({"httpGet": {"port": 8080}}));
    let mut exec = script("main", &[], "sleep 1000");
    exec["livenessProbe"] = often(json!({"exec": {"command": ["yes"]}}));
    let mut hook = script("main", &[], "sleep 1000");
    hook["lifecycle"] = json!({"postStart": {"exec": {
        "command": ["sh", "-c", "head -c 500000000 /dev/zero; exit 1"]}}});
    for (name, main) in [("http", http), ("exec", exec), ("hook", hook)] {
        host.pod(name, json!({"containers": [main]}));
    }
    for name in ["http", "exec", "hook"] {
        host.restarted(name, 1);
    }
    host.check();
}

#[test]
fn processes_without_end_stop_at_the_limit_of_a_container() {
    let Some(host) = Host::sandbox("fork-bomb") else {
        return;
    };
    if !Path::new("/sys/fs/cgroup/pids").exists() {
        let all = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
        if !all.contains("pids") {
            windlass_skip::skip("this machine has no pids cgroup");
            return;
        }
    }
    // Threads count, too, and cost less.
    let bomb = "
import threading, time
threading.stack_size(64 * 1024)
made = 0
try:
    for made in range(20000):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
except RuntimeError:
    pass
print('made', made, flush=True)
";
    let mut main = script("main", &[], "");
    main["command"] = json!(["python3", "-c", bomb]);
    host.pod(
        "bomb",
        json!({"restartPolicy": "Never", "containers": [main]}),
    );
    let said = host.output("bomb");
    let made: u32 = said
        .trim()
        .strip_prefix("made ")
        .and_then(|made| made.parse().ok())
        .expect("a number");
    assert!((1000..=4096).contains(&made), "{made}");
    host.check();
}
