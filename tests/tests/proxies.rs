//! `pods|services|nodes/proxy` with kubectl, on both kinds of node, and names in the certificate.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use windlass_skip::skip;
use windlass_tests::machine::is_root;
use windlass_tests::{Folder, eventually};

/// A pod that says what it is asked for, and a Service in front of it.
const WEB: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - name: main
    image: busybox
    ports: [{containerPort: 8080}]
    readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
    env:
    - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    command:
    - perl
    - -MIO::Socket::INET
    - -e
    - |
      my $socket = IO::Socket::INET->new(LocalAddr => $ENV{POD_IP}, LocalPort => 8080, Listen => 5, ReuseAddr => 1) or die;
      while (my $client = $socket->accept) {
        my $asked = <$client>;
        while (defined $asked && defined(my $line = <$client>)) { last if $line =~ /^\r?\n/ }
        print $client "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n$asked" if defined $asked;
        close $client;
      }
"#;
const NAMESPACE: &str = "/api/v1/namespaces/default";

fn leads_through(folder: &Folder) {
    fs::write(folder.path().join("web.yaml"), WEB).expect("a file can be written");
    folder.kubectl(&["apply", "-f", "web.yaml"]);
    folder.kubectl(&["wait", "--for=condition=Ready", "--timeout=60s", "pod/web"]);
    let get = |path: &str| folder.kubectl(&["get", "--raw", path]);
    let said = get(&format!("{NAMESPACE}/pods/web/proxy/a%20b/?c=d"));
    assert_eq!(said, "GET /a%20b/?c=d HTTP/1.1\r\n");
    assert_eq!(
        get(&format!("{NAMESPACE}/pods/http:web:8080/proxy/")),
        "GET / HTTP/1.1\r\n"
    );
    // The endpoint follows the readiness of its pod.
    let service = format!("{NAMESPACE}/services/web:80/proxy/there");
    let said = eventually("an endpoint", || {
        let output = folder.run_kubectl(&["get", "--raw", &service]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(said)
    });
    assert_eq!(said, "GET /there HTTP/1.1\r\n");
    assert_eq!(get("/api/v1/nodes/windlass/proxy/healthz"), "ok");
    let refused =
        folder.kubectl_fails(&["get", "--raw", &format!("{NAMESPACE}/pods/web:1/proxy/")]);
    assert!(refused.contains("connection refused"), "{refused}");
    let (_proxy, address) = kubectl_proxy(folder);
    let mut stream = TcpStream::connect(&address).expect("kubectl proxy listens");
    let asked = format!("GET {NAMESPACE}/pods/web/proxy/x HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(asked.as_bytes()).expect("it is asked");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("it answers");
    assert!(said.ends_with("\r\n\r\nGET /x HTTP/1.1\r\n"), "{said}");
}

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `kubectl proxy`, and where it listens.
fn kubectl_proxy(folder: &Folder) -> (Ends, String) {
    let kubectl = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
    let mut child = Command::new(kubectl)
        .args(["proxy", "--port=0"])
        .env("KUBECONFIG", folder.path().join(".windlass/kubeconfig"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl runs");
    let output = child.stdout.take().expect("its output");
    let child = Ends(child);
    let mut line = String::new();
    let read = BufReader::new(output).read_line(&mut line);
    read.expect("kubectl says where it listens");
    let address = line.trim().rsplit(' ').next().unwrap_or_default();
    (child, address.to_owned())
}

#[test]
fn proxies_lead_to_plain_processes() {
    let folder = Folder::new("proxies");
    folder.windlass_ok(&["up", "--runtime", "process", "--detach"]);
    leads_through(&folder);
}

#[test]
fn proxies_lead_into_sandboxes() {
    if !is_root() {
        skip("sandboxes need root");
        return;
    }
    let folder = Folder::new("proxies-sandbox");
    folder.windlass_ok(&["up", "--runtime", "sandbox", "--detach"]);
    leads_through(&folder);
}

#[test]
fn names_that_are_asked_for_are_in_the_certificate() {
    let folder = Folder::new("san");
    let up = ["up", "--no-node", "--detach", "--listen", "0.0.0.0:0"];
    let named = ["--san", "windlass.example.com", "--san", "192.0.2.7"];
    folder.windlass_ok(&[&up[..], &named].concat());
    for name in ["windlass.example.com", "192.0.2.7", "localhost"] {
        let said = folder.kubectl(&["get", "--raw", "/livez", "--tls-server-name", name]);
        assert_eq!(said, "ok", "{name}");
    }
    let refused = folder.kubectl_fails(&[
        "get",
        "--raw",
        "/livez",
        "--tls-server-name",
        "other.example.com",
    ]);
    assert!(refused.contains("not other.example.com"), "{refused}");
    let invalid = folder.windlass(&["up", "--san", "no name"]);
    assert_eq!(invalid.status.code(), Some(2));
    let said = String::from_utf8_lossy(&invalid.stderr).into_owned();
    assert!(
        said.contains("neither a host name nor an address"),
        "{said}"
    );
}

#[test]
fn without_controllers_objects_stay_as_they_are_written() {
    let folder = Folder::new("no-controllers");
    let printed = folder.windlass_ok(&["up", "--no-controllers", "--detach"]);
    assert!(printed.contains("pods are not run"), "{printed}");
    let image = "--image=registry.k8s.io/pause";
    folder.kubectl(&["create", "deployment", "web", image]);
    folder.kubectl(&["create", "namespace", "going"]);
    folder.kubectl(&["run", "alone", image]);
    let status = r#"{"status": {"replicas": 1, "readyReplicas": 1}}"#;
    let patch = ["--subresource=status", "--type=merge", "-p", status];
    folder.kubectl(&[&["patch", "deployment", "web"], &patch[..]].concat());
    folder.kubectl(&["delete", "namespace", "going", "--wait=false"]);
    // Another cluster of the same folder reads what there is once this one has ended: whatever a
    // controller would have done by then is done.
    folder.windlass_ok(&["down"]);
    folder.windlass_ok(&["up", "--no-controllers", "--detach"]);
    let get = |what: &[&str]| folder.kubectl(&[&["get"], what].concat());
    let shown = "jsonpath={.status.readyReplicas} {.metadata.generation}";
    assert_eq!(get(&["deployment", "web", "-o", shown]), "1 1");
    assert_eq!(
        get(&["replicasets,serviceaccounts,configmaps", "-o", "name"]),
        ""
    );
    assert_eq!(
        get(&["pods", "-o", "jsonpath={.items[*].metadata.name}"]),
        "alone"
    );
    assert_eq!(get(&["nodes", "-o", "name"]), "");
    assert_eq!(
        get(&["namespace", "going", "-o", "jsonpath={.status.phase}"]),
        "Terminating"
    );
}
