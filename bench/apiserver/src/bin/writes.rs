//! What a write costs our API server without connections: made to be looked at with a profiler.

use std::time::Instant;

use clap::Parser;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use serde_json::{Value, json};
use tower::Service as _;
use windlass_apiserver::{ApiServer, Config, Identity, InProcess};

/// Creates and then updates `ConfigMaps`, one after the other, and prints what each took.
#[derive(Parser)]
struct Arguments {
    /// How many
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
    /// Updates only as many
    #[arg(long, default_value_t = 100_000)]
    updates: usize,
}

struct Client(InProcess);

impl Client {
    async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: String,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("user-agent", "bench")
            .header("accept", "application/json")
            .header("content-type", "application/json")
            .body(Full::new(body.into()))?;
        let answer = self.0.call(request).await?;
        let code = answer.status();
        let body = answer.into_body().collect().await?;
        if !code.is_success() {
            let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
            return Err(format!("{method} {path}: {code} {body}").into());
        }
        Ok(())
    }
}

fn object(number: usize, count: usize) -> String {
    let object: Value = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("object-{number:06}"), "labels": {"app": "bench"}},
        "data": {"count": count.to_string(), "filling": "x".repeat(200)},
    });
    object.to_string()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let server = ApiServer::new(Config::default());
    let mut client = Client(server.in_process(Identity::admin()));
    let path = "/api/v1/namespaces/default/configmaps";
    let started = Instant::now();
    for number in 0..arguments.objects {
        client.send("POST", path, object(number, 0)).await?;
    }
    let each = started.elapsed() / u32::try_from(arguments.objects.max(1))?;
    println!("create {each:?}");
    let started = Instant::now();
    for turn in 0..arguments.updates {
        let number = turn % arguments.objects;
        let path = format!("{path}/object-{number:06}");
        client.send("PUT", &path, object(number, turn + 1)).await?;
    }
    let each = started.elapsed() / u32::try_from(arguments.updates.max(1))?;
    println!("update {each:?}");
    Ok(())
}
