//! Why a handler did not do what it is for.

use std::io;

/// Why a container could not be asked, or what was wrong with its answer, as events show it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandlerError {
    #[error("the container has no such port")]
    NoPort,
    #[error("dial tcp {host}:{port}: {}", shown(why))]
    Dial {
        host: String,
        port: u16,
        #[source]
        why: io::Error,
    },
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Name(#[from] rustls::pki_types::InvalidDnsNameError),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// What is to be asked is no request.
    #[error(transparent)]
    Request(#[from] http::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    /// The body of an answer could not be read.
    #[error(transparent)]
    Body(Box<dyn std::error::Error + Send + Sync>),
    #[error("the name of the service is too long")]
    LongName,
    #[error(
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)"
    )]
    NoHealth,
    #[error("error: health rpc probe failed: code {code}: {message}")]
    Rpc { code: String, message: String },
    #[error("service unhealthy (responded with \"{0}\")")]
    Unhealthy(&'static str),
    #[error("the answer is not one of the grpc health protocol")]
    Answer,
}

fn shown(why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        _ => why.to_string(),
    }
}
