//! Ports of pods, forwarded by kubectl.

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;

use super::kubectl::{Kubectl, PATIENCE, kubectls};
use super::stage::{Stage, python};

/// Says what it hears, until it hears no more.
pub(crate) const ECHO: &str = "
import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while piece := self.request.recv(65536):
            self.request.sendall(piece)
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64
Server((ADDRESS, 18100), Echo).serve_forever()
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ports_are_forwarded() {
    let stage = Stage::new("forward").await;
    let mut main = python("main", ECHO);
    main["readinessProbe"] = json!({"tcpSocket": {"port": 18100}, "periodSeconds": 1});
    stage.pod("one", json!({"containers": [main]})).await;
    stage.ready("one").await;
    for kubectl in kubectls(&stage) {
        let (mut child, port) = forward(&kubectl, "18100").await;
        let talk = async |length: usize| {
            let mut stream = TcpStream::connect(("127.0.0.1", port))
                .await
                .expect("a connection");
            let sent: Vec<u8> = (0..length)
                .map(|n| u8::try_from(n % 251).unwrap_or(0))
                .collect();
            let (mut from, mut to) = stream.split();
            let (written, back) = futures::join!(
                async {
                    to.write_all(&sent).await?;
                    to.shutdown().await
                },
                async {
                    let mut back = Vec::new();
                    from.read_to_end(&mut back).await.map(|_| back)
                }
            );
            written.expect("written");
            assert!(back.expect("an answer") == sent, "something else came back");
        };
        // Several connections at once, and one after them.
        tokio::time::timeout(PATIENCE, async {
            futures::join!(talk(10), talk(2_000_000), talk(300_000));
            talk(5).await;
        })
        .await
        .expect("in time");
        child.kill().await.expect("killed");

        // Where nobody listens, kubectl says so.
        let (mut child, port) = forward(&kubectl, "18101").await;
        let mut stream = TcpStream::connect(("127.0.0.1", port))
            .await
            .expect("a connection");
        let mut nothing = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut nothing)).await;
        assert_eq!(nothing, b"");
        let mut error = child.stderr.take().map(BufReader::new).expect("errors");
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, error.read_line(&mut line))
            .await
            .expect("in time")
            .expect("a line");
        assert!(line.contains("error forwarding port 18101"), "{line}");
        assert!(
            line.to_ascii_lowercase().contains("connection refused"),
            "{line}"
        );
        child.kill().await.expect("killed");
    }
    stage.stop().await;
}

/// Forwards a port of the pod, and says where from.
async fn forward(kubectl: &Kubectl, port: &str) -> (Child, u16) {
    let port = format!(":{port}");
    let args = ["port-forward", "--address", "127.0.0.1", "pod/one", &port];
    let mut child = kubectl.command(&args).spawn().expect("kubectl");
    let mut out = child.stdout.take().map(BufReader::new).expect("an output");
    let mut line = String::new();
    let read = tokio::time::timeout(PATIENCE, out.read_line(&mut line)).await;
    read.expect("in time").expect("a line");
    // Read on, or it would stop at a full pipe.
    tokio::spawn(async move { tokio::io::copy(&mut out, &mut tokio::io::sink()).await });
    let local = line.strip_prefix("Forwarding from 127.0.0.1:");
    let local = local.and_then(|rest| rest.split(' ').next()?.parse().ok());
    (
        child,
        local.unwrap_or_else(|| panic!("no port in {line:?}")),
    )
}
