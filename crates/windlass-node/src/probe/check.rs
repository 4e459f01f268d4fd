//! One run of a probe against a container: TCP, HTTP or a command.

use std::net::IpAddr;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::env::Environment;

/// What a probe is run against.
#[derive(Debug, Clone)]
pub struct Target {
    /// The container, for the names of its ports.
    pub container: Container,
    /// Its environment, for commands.
    pub environment: Environment,
    /// The pod's address.
    pub address: IpAddr,
}

/// The outcome of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It answered as it should.
    Success,
    /// It did not, and this is what was seen.
    Failure(String),
    /// The probe cannot be run here, and this is why.
    Unknown(String),
}

/// Runs a probe once.
pub async fn check(probe: &Probe, target: &Target, timeout: Duration) -> Outcome {
    let run = async {
        if let Some(tcp) = &probe.tcp_socket {
            check_tcp(target, tcp.host.as_deref(), &tcp.port)
                .await
                .map(|_| ())
        } else if let Some(get) = &probe.http_get {
            check_http(target, get).await
        } else if let Some(exec) = &probe.exec {
            check_command(target, exec.command.as_deref().unwrap_or_default()).await
        } else {
            Err(Outcome::Unknown(
                "this kind of probe is not supported by this node".to_owned(),
            ))
        }
    };
    match tokio::time::timeout(timeout, run).await {
        Ok(Ok(())) => Outcome::Success,
        Ok(Err(outcome)) => outcome,
        Err(_) => Outcome::Failure(format!("no answer within {}s", timeout.as_secs())),
    }
}

fn failure(message: impl std::fmt::Display) -> Outcome {
    Outcome::Failure(message.to_string())
}

async fn check_tcp(
    target: &Target,
    host: Option<&str>,
    port: &IntOrString,
) -> Result<TcpStream, Outcome> {
    let port = port_number(&target.container, port)?;
    let host = host.filter(|host| !host.is_empty());
    let host = host.map_or_else(|| target.address.to_string(), str::to_owned);
    let connected = TcpStream::connect((host.as_str(), port)).await;
    connected.map_err(|error| failure(format!("dial tcp {host}:{port}: {error}")))
}

async fn check_http(target: &Target, get: &HTTPGetAction) -> Result<(), Outcome> {
    if get.scheme.as_deref() == Some("HTTPS") {
        return Err(Outcome::Unknown(
            "HTTPS probes are not supported by this node".to_owned(),
        ));
    }
    let stream = check_tcp(target, get.host.as_deref(), &get.port).await?;
    let peer = stream.peer_addr().map_err(failure)?;
    let path = get
        .path
        .as_deref()
        .filter(|path| !path.is_empty())
        .unwrap_or("/");
    let mut request = http::Request::get(path);
    let headers = get.http_headers.as_deref().unwrap_or_default();
    if !headers
        .iter()
        .any(|header| header.name.eq_ignore_ascii_case("host"))
    {
        request = request.header("Host", peer.to_string());
    }
    request = request
        .header("User-Agent", "kube-probe/1.36")
        .header("Connection", "close");
    for header in headers {
        request = request.header(&header.name, &header.value);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(failure)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(failure)?;
    let mut answered = std::pin::pin!(sender.send_request(request));
    // The connection must be driven while the answer is awaited; it may end just after it.
    let response = tokio::select! {
        biased;
        response = &mut answered => response,
        _ = connection => answered.await,
    };
    let response = response.map_err(failure)?;
    let status = response.status();
    if status.is_success() || status.is_redirection() {
        Ok(())
    } else {
        Err(failure(format!(
            "HTTP probe failed with statuscode: {}",
            status.as_u16()
        )))
    }
}

async fn check_command(target: &Target, command: &[String]) -> Result<(), Outcome> {
    let Some((program, args)) = command.split_first() else {
        return Err(failure("the probe has no command"));
    };
    let output = Command::new(program)
        .args(args)
        .env_clear()
        .envs(target.environment.iter())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| failure(format!("{program}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    Err(failure(format!(
        "command {program} ended with {}: {said}",
        output.status
    )))
}

fn port_number(container: &Container, port: &IntOrString) -> Result<u16, Outcome> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => container
            .ports
            .iter()
            .flatten()
            .find(|port| port.name.as_ref() == Some(name))
            .map(|port| port.container_port)
            .or_else(|| name.parse().ok()),
    };
    number
        .and_then(|number| u16::try_from(number).ok())
        .ok_or_else(|| failure("the container has no such port"))
}

#[cfg(test)]
mod tests;
