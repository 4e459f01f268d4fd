//! Hooks over HTTP and as programs, for real.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use windlass_declarative::metacontroller::{Call, Network, Target, Tls, Transport};

/// A hook in Python's standard library: it prints its port, and answers with what it was sent.
const HOOK: &str = r#"
import json
from http.server import BaseHTTPRequestHandler, HTTPServer

class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/fail":
            self.send_error(500, "no")
            return
        answer = json.dumps({
            "status": {"path": self.path, "login": self.headers.get("authorization")},
            "children": request["children"],
        }).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.send_header("etag", "one")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", 0), Hook)
print(server.server_port, flush=True)
server.serve_forever()
"#;

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// None, if there is no Python.
    fn start() -> Option<Self> {
        let started = Command::new("python3")
            .args(["-c", HOOK])
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            windlass_skip::skip("python3 is not installed");
            return None;
        };
        let mut line = String::new();
        let output = child.stdout.take().expect("its output");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("its port");
        let port = line.trim().parse().expect("a port");
        Some(Self { child, port })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn call(target: Target, body: &Value) -> Call {
    Call {
        target,
        headers: vec![("Authorization".to_owned(), "Bearer x".to_owned())],
        body: serde_json::to_vec(body).unwrap(),
        timeout: Duration::from_mins(1),
    }
}

fn webhook(url: String) -> Target {
    Target::Webhook {
        url,
        endpoints: None,
        tls: Arc::new(Tls::default()),
    }
}

fn exec(script: &str) -> Target {
    Target::Exec(vec!["sh".into(), "-c".into(), script.into()])
}

#[tokio::test]
async fn webhook_in_python_answers() {
    let Some(server) = Server::start() else {
        return;
    };
    let network = Network::default();
    let body = json!({"children": ["a"]});
    for path in ["/sync", "/again"] {
        let url = format!("http://127.0.0.1:{}{path}", server.port);
        let answer = network.call(&call(webhook(url), &body)).await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers["etag"], "one");
        let value: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(
            value,
            json!({"status": {"path": path, "login": "Bearer x"}, "children": ["a"]})
        );
    }
    let url = format!("http://127.0.0.1:{}/fail", server.port);
    let answer = network.call(&call(webhook(url), &body)).await.unwrap();
    assert_eq!(answer.status, 500);
    // A Service's endpoints take the place of what its name would be resolved to.
    let target = Target::Webhook {
        url: "http://hook.default/sync".to_owned(),
        endpoints: Some(vec![([127, 0, 0, 1], server.port).into()]),
        tls: Arc::new(Tls::default()),
    };
    assert_eq!(
        network.call(&call(target, &body)).await.unwrap().status,
        200
    );
}

#[tokio::test]
async fn webhook_that_cannot_be_reached_says_why() {
    let network = Network::default();
    let error = async |target| network.call(&call(target, &json!({}))).await.unwrap_err();
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let refused = error(webhook(format!("http://127.0.0.1:{nobody}/"))).await;
    assert!(
        refused.contains(&format!("cannot connect to 127.0.0.1:{nobody}")),
        "{refused}"
    );
    let scheme = error(webhook("ftp://127.0.0.1/".to_owned())).await;
    assert!(scheme.contains("neither http nor https"), "{scheme}");
    let none = Target::Webhook {
        url: "http://hook.default/".to_owned(),
        endpoints: Some(Vec::new()),
        tls: Arc::new(Tls::default()),
    };
    assert!(error(none).await.contains("no ready endpoints"));
}

#[tokio::test]
async fn program_reads_its_request_and_writes_its_answer() {
    let network = Network::default();
    let body = json!({"children": []});
    let answer = network.call(&call(exec("cat"), &body)).await.unwrap();
    assert_eq!(
        (answer.status, answer.body),
        (200, serde_json::to_vec(&body).unwrap())
    );
    // One that reads nothing, with a request that fits in no pipe.
    let large = json!({"children": "x".repeat(1 << 20)});
    let answer = network.call(&call(exec("echo {}"), &large)).await.unwrap();
    assert_eq!(answer.body, b"{}\n");
}

#[tokio::test]
async fn program_that_fails_says_why() {
    let network = Network::default();
    let error = async |target| network.call(&call(target, &json!({}))).await.unwrap_err();
    let failed = error(exec("echo no such thing >&2; exit 3")).await;
    assert!(
        failed.contains("exit status: 3") && failed.contains("no such thing"),
        "{failed}"
    );
    let missing = error(Target::Exec(vec!["/no/such/program".into()])).await;
    assert!(missing.contains("cannot run /no/such/program"), "{missing}");
    let mut slow = call(exec("sleep 600"), &json!({}));
    slow.timeout = Duration::from_millis(100);
    let late = network.call(&slow).await.unwrap_err();
    assert!(late.contains("no answer within"), "{late}");
}
