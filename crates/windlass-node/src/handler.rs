//! Handlers: what a probe asks a container, and what a hook does to it.
//!
//! The same four ways: a command in the container, an HTTP request to it, a TCP connection or a
//! gRPC health check.

mod error;
mod grpc;
mod request;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Container;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;

pub(crate) use error::HandlerError;
pub(crate) use grpc::check as check_grpc;
pub(crate) use request::get;

use crate::runtime::{Execution, Runtime};

/// How long the output of a command that has ended may take.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// No more of what a command says is kept.
const LONGEST: u64 = 10 * 1024;

/// The container that is asked.
#[derive(Debug)]
pub(crate) struct Target<R> {
    pub(crate) runtime: Arc<R>,
    pub(crate) uid: String,
    /// For the names of its ports, too.
    pub(crate) container: Container,
    /// The pod's address.
    pub(crate) address: IpAddr,
}

impl<R> Clone for Target<R> {
    fn clone(&self) -> Self {
        Self {
            runtime: self.runtime.clone(),
            uid: self.uid.clone(),
            container: self.container.clone(),
            address: self.address,
        }
    }
}

impl<R: Runtime> Target<R> {
    /// Runs a command in the container; its exit code, and what it said.
    pub(crate) async fn command(&self, command: &[String]) -> io::Result<(i32, String)> {
        let execution = Execution {
            command: command.to_vec(),
            ..Execution::default()
        };
        let name = &self.container.name;
        let session = self.runtime.exec(&self.uid, name, execution).await?;
        let said = async {
            let (out, error) = futures::join!(read(session.stdout), read(session.stderr));
            [out, error].concat()
        };
        let (mut said, mut ended) = (std::pin::pin!(said), session.ended);
        let (said, code) = tokio::select! {
            biased;
            said = &mut said => (said, ended.await?),
            // What the command leaves behind may keep its output open.
            code = &mut ended => {
                let said = tokio::time::timeout(LAST_WORDS, said).await;
                (said.unwrap_or_default(), code?)
            }
        };
        Ok((code, String::from_utf8_lossy(&said).into_owned()))
    }
}

impl<R> Target<R> {
    /// The number of a port that may be named.
    pub(crate) fn port(&self, port: &IntOrString) -> Result<u16, HandlerError> {
        let number = match port {
            IntOrString::Int(number) => Some(*number),
            IntOrString::String(name) => self
                .container
                .ports
                .iter()
                .flatten()
                .find(|port| port.name.as_ref() == Some(name))
                .map(|port| port.container_port)
                .or_else(|| name.parse().ok()),
        };
        number
            .and_then(|number| u16::try_from(number).ok())
            .ok_or(HandlerError::NoPort)
    }

    /// Where a handler goes: to the host it names, or to the pod.
    pub(crate) fn host(&self, host: Option<&str>) -> String {
        let host = host.filter(|host| !host.is_empty());
        host.map_or_else(|| self.address.to_string(), str::to_owned)
    }
}

/// Connects to a port.
pub(crate) async fn dial(host: &str, port: u16) -> Result<TcpStream, HandlerError> {
    let connected = TcpStream::connect((host, port)).await;
    connected.map_err(|why| HandlerError::Dial {
        host: host.to_owned(),
        port,
        why,
    })
}

async fn read(output: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut said = Vec::new();
    if let Some(output) = output {
        let mut output = output.take(LONGEST);
        let _ = output.read_to_end(&mut said).await;
        // What is too much must be read, too, or the command waits for ever.
        let mut rest = output.into_inner();
        let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
    }
    said
}
