//! Our API server and nothing else, on a port: what the benchmark measures.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use tokio::net::TcpListener;
use windlass_apiserver::http::TlsConfig;
use windlass_apiserver::pki::KeyedCertificate;
use windlass_apiserver::{ApiServer, Config};

/// Serves until it is killed.
#[derive(Parser)]
struct Arguments {
    /// Where to listen
    #[arg(long)]
    listen: SocketAddr,
    /// The folder with ca.crt, server.crt and server.key
    #[arg(long)]
    pki: PathBuf,
    /// Keep what is stored in this folder
    #[arg(long)]
    data_dir: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let read = |name: &str| std::fs::read_to_string(arguments.pki.join(name));
    let tls = TlsConfig {
        serving: KeyedCertificate {
            certificate: read("server.crt")?,
            key: read("server.key")?,
        },
        client_ca: read("ca.crt")?,
    };
    // As kube-apiserver is measured: nobody is sent away.
    let config = Config {
        max_requests_in_flight: 0,
        max_mutating_requests_in_flight: 0,
        ..Config::default()
    };
    let server = match &arguments.data_dir {
        None => ApiServer::new(config),
        Some(folder) => ApiServer::open(config, folder)?,
    };
    let _serving = server.serve(TcpListener::bind(arguments.listen).await?, &tls)?;
    std::future::pending::<()>().await;
    Ok(())
}
