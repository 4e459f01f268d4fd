//! What hyper and rustls can do at most: every request is answered with the same bytes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use clap::Parser;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Serves until it is killed.
#[derive(Parser)]
struct Arguments {
    /// Where to listen
    #[arg(long)]
    listen: SocketAddr,
    /// The folder with server.crt and server.key
    #[arg(long)]
    pki: PathBuf,
    /// How long each answer is
    #[arg(long)]
    bytes: usize,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let chain = CertificateDer::pem_file_iter(arguments.pki.join("server.crt"))?
        .collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(arguments.pki.join("server.key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let body = Bytes::from(vec![b'x'; arguments.bytes]);
    let listener = TcpListener::bind(arguments.listen).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let (acceptor, body) = (acceptor.clone(), body.clone());
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let answer = service_fn(move |request: Request<Incoming>| {
                let body = body.clone();
                async move {
                    // What was sent is read, as any server must.
                    let _ = request.into_body().collect().await;
                    let mut response = Response::new(Full::new(body));
                    response
                        .headers_mut()
                        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                    Ok::<_, Infallible>(response)
                }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}
