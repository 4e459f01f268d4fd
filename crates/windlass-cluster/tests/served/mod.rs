//! An API server on a port of loopback, and what other processes need to get to it.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::json;
use windlass_apiserver::hooks::Hooks;
use windlass_apiserver::http::{Serving, TlsConfig};
use windlass_apiserver::pki::Authority;
use windlass_apiserver::{ApiServer, Config, Identity};

const PATIENCE: Duration = Duration::from_mins(1);

/// A server, until it is dropped.
pub(crate) struct Served {
    server: ApiServer,
    address: SocketAddr,
    authority: Authority,
    folder: PathBuf,
    _serving: Serving,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Served {
    pub(crate) async fn start(hooks: Option<Arc<dyn Hooks>>) -> Self {
        let server = ApiServer::new(Config {
            hooks,
            ..Config::default()
        });
        let authority = Authority::create().unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tls = TlsConfig {
            serving: authority.server("server", &[address.ip()], &[]).unwrap(),
            client_ca: authority.pem().certificate.clone(),
        };
        let serving = server.serve(listener, &tls).unwrap();
        let folder = std::env::temp_dir().join(format!("windlass-served-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self {
            server,
            address,
            authority,
            folder,
            _serving: serving,
        }
    }

    /// An admin's client, without a socket.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.server.in_process(Identity::admin()), "default")
    }

    /// The file with which another process is this user, who may do everything.
    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        let identity = self.authority.client(user, "system:masters").unwrap();
        let file = |what: &str, text: &str| {
            let path = self.folder.join(format!("{user}.{what}"));
            std::fs::write(&path, text).unwrap();
            path
        };
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": format!("https://{}", self.address),
                "certificate-authority": file("ca", &self.authority.pem().certificate),
            }}],
            "users": [{"name": "test", "user": {
                "client-certificate": file("crt", &identity.certificate),
                "client-key": file("key", &identity.key),
            }}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        file("kubeconfig", &config.to_string())
    }
}

/// A child that does not outlive the test.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// This test's own program, started once more.
    pub(crate) fn this_program(kubeconfig: &Path, set_up: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env("KUBECONFIG", kubeconfig);
        set_up(&mut command);
        Self(command.spawn().unwrap())
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

/// Waits until something holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
