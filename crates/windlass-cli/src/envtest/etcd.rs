//! The `etcd` of envtest: it says that it is healthy, and keeps nothing.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::flags::{Flags, help};
use super::{ended, run};

const ABOUT: &str = "windlass as the etcd of envtest: it answers /health and keeps nothing, because the\nkube-apiserver beside it keeps its objects itself.";
const KNOWN: &[(&str, &str)] = &[
    ("listen-client-urls", "where /health is answered"),
    ("advertise-client-urls", "ignored"),
    ("listen-peer-urls", "ignored"),
    ("data-dir", "ignored: nothing is kept"),
];
/// Where etcd listens that is given no address.
const USUAL: &str = "http://127.0.0.1:2379";
/// How long a client may take to ask.
const PATIENCE: Duration = Duration::from_secs(10);
/// A longer head of a request is not read.
const LONGEST: usize = 16 * 1024;

pub(super) fn main(args: &[OsString]) -> ExitCode {
    let flags = Flags::read(args);
    if flags.has("help") || flags.has("h") {
        print!("{}", help(ABOUT, KNOWN));
        return ExitCode::SUCCESS;
    }
    if flags.has("version") {
        println!(
            "etcd Version: none (windlass {})",
            env!("CARGO_PKG_VERSION")
        );
        return ExitCode::SUCCESS;
    }
    run("etcd", serve(flags))
}

async fn serve(flags: Flags) -> Result<(), String> {
    let url = flags.list("listen-client-urls");
    let url = url.first().copied().unwrap_or(USUAL);
    let address = address(url)?;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| format!("cannot listen on {address}: {error}"))?;
    tokio::select! {
        ended = ended() => ended,
        () = accept(listener) => Ok(()),
    }
}

/// The address of a URL in the clear.
fn address(url: &str) -> Result<SocketAddr, String> {
    let host = url.strip_prefix("http://");
    let host = host.map(|host| host.trim_end_matches('/').replace("localhost", "127.0.0.1"));
    host.and_then(|host| host.parse().ok()).ok_or_else(|| {
        format!("cannot listen on {url}: only http:// and an IP address with a port are understood")
    })
}

async fn accept(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(tokio::time::timeout(PATIENCE, answer(stream)));
            }
            Err(error) => {
                eprintln!("etcd: cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Answers one request, and closes the connection.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|part| part == b"\r\n\r\n") && head.len() < LONGEST {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let (status, body) = match path {
        "/health" => ("200 OK", r#"{"health":"true","reason":""}"#),
        "/readyz" | "/livez" => ("200 OK", "ok\n"),
        _ => ("404 Not Found", "404 page not found\n"),
    };
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_read_from_a_url_in_the_clear() {
        let local = SocketAddr::from(([127, 0, 0, 1], 33_251));
        assert_eq!(address("http://127.0.0.1:33251"), Ok(local));
        assert_eq!(address("http://localhost:33251/"), Ok(local));
        assert!(address("https://127.0.0.1:33251").is_err());
        assert!(address("unix:///tmp/etcd").is_err());
    }
}
