//! What a pod reaches, and what its connections cost.

use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use windlass_tests::eventually;

use crate::host::{Host, script};

/// Ends a process with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(line: &str) -> bool {
    let done = Command::new("sh")
        .args(["-c", line])
        .stdin(Stdio::null())
        .output();
    done.expect("sh runs").status.success()
}

/// Another network, that this machine has a way to and would forward to.
fn outside() -> Ends {
    let other = Command::new("unshare")
        .args(["--net", "--", "sh", "-c"])
        .arg(
            "until ip addr add 192.0.2.2/24 dev out1 2>/dev/null; do sleep 0.05; done; \
              ip link set lo up; ip link set out1 up; ip route add default via 192.0.2.1; \
              exec python3 -m http.server 8000 --bind 192.0.2.2",
        )
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/usr")
        .spawn()
        .expect("unshare runs");
    let pid = other.id();
    let other = Ends(other);
    assert!(run("ip link add out0 type veth peer name out1"));
    eventually("the other network", || {
        let own = std::fs::read_link("/proc/thread-self/ns/net").expect("a namespace");
        let theirs = std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
        (own != theirs).then_some(())
    });
    assert!(run(&format!("ip link set out1 netns {pid}")));
    assert!(run(
        "ip addr add 192.0.2.1/24 dev out0 && ip link set out0 up"
    ));
    assert!(run("echo 1 > /proc/sys/net/ipv4/ip_forward"));
    eventually("a server on the other network", || {
        run("curl -s --max-time 2 -o /dev/null http://192.0.2.2:8000/").then_some(())
    });
    other
}

#[test]
fn packets_of_pods_do_not_leave_the_bridge() {
    let Some(host) = Host::sandbox("bridge") else {
        return;
    };
    let other = outside();
    let serve = script("main", &[], "cd /usr; exec python3 -m http.server 8080");
    host.pod("server", json!({"containers": [serve]}));
    let address: Ipv4Addr = host.when("server", "running", |pod| {
        let is_running = pod["status"]["phase"] == "Running";
        is_running.then(|| pod["status"]["podIP"].as_str()?.parse().ok())?
    });
    let ask = format!("curl -s --max-time 5 -o /dev/null http://{address}:8080/");
    eventually("the pod's server", || run(&ask).then_some(()));
    let attack = format!(
        "{ask} && echo neighbour; \
         for try in 1 2 3; do curl -s --max-time 3 -o /dev/null http://192.0.2.2:8000/ && echo LEAK; done; \
         ping -c 1 -W 2 192.0.2.2 >/dev/null 2>&1 && echo LEAK; echo done"
    );
    let main = script("main", &[], &attack);
    host.pod(
        "attack",
        json!({"restartPolicy": "Never", "containers": [main]}),
    );
    assert_eq!(host.output("attack"), "neighbour\ndone\n");
    // The same the other way.
    let inwards = format!("nsenter --net=/proc/{}/ns/net {ask}", other.0.id());
    assert!(!run(&inwards), "the other network reaches a pod");
    host.check();
}

#[test]
fn silent_connections_to_every_port_leave_others_answered() {
    let Some(host) = Host::sandbox("silence") else {
        return;
    };
    let main = script("main", &[], "echo hello; sleep 1000");
    host.pod("other", json!({"containers": [main]}));
    host.when("other", "running", |pod| {
        (pod["status"]["phase"] == "Running").then_some(())
    });
    let node = host.folder.kubectl(&[
        "get", "nodes", "-o",
        "jsonpath={.items[0].status.addresses[0].address} {.items[0].status.daemonEndpoints.kubeletEndpoint.Port}",
    ]);
    let (address, port) = node.split_once(' ').expect("an address and a port");
    let attack = format!(
        "
import os, resource, select, socket, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

def listening(host, ports):
    poll, waiting, found, end = select.poll(), {{}}, [], time.time() + 5
    for port in ports:
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex((host, port))
        waiting[one.fileno()] = (one, port)
        poll.register(one, select.POLLOUT)
    while waiting and time.time() < end:
        for fd, _ in poll.poll(100):
            one, port = waiting.pop(fd)
            poll.unregister(fd)
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                found.append(port)
            one.close()
    return found

ports = []
for first in range(1, 65536, 500):
    ports += listening('{address}', range(first, min(first + 500, 65536)))
places = [(('{address}', port), 2000 if port == {port} else 300) for port in ports]
places.append(((os.environ['KUBERNETES_SERVICE_HOST'], int(os.environ['KUBERNETES_SERVICE_PORT'])), 200))
held = []
for place, count in places:
    for n in range(count):
        try:
            held.append(socket.create_connection(place, timeout=2))
        except OSError:
            break
print('held', *ports, flush=True)
time.sleep(1000)
"
    );
    let mut main = script("main", &[], "");
    main["command"] = json!(["python3", "-c", attack]);
    host.pod("silent", json!({"containers": [main]}));
    host.when("silent", "running", |pod| {
        (pod["status"]["phase"] == "Running").then_some(())
    });
    let held = host.when("silent", "connected", |_| {
        let said = host.folder.kubectl(&["logs", "silent"]);
        said.starts_with("held").then_some(said)
    });
    // The node's port and the name server's at least.
    for open in [port, "53"] {
        assert!(held.split_whitespace().any(|one| one == open), "{held}");
    }
    // Both by way of the node's port.
    assert_eq!(host.folder.kubectl(&["logs", "other"]), "hello\n");
    assert_eq!(
        host.folder
            .kubectl(&["exec", "other", "--", "echo", "there"]),
        "there\n"
    );
    host.folder.kubectl(&["get", "pods"]);
    host.check();
}
