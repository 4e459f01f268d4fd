//! What is promised to a write that is not done yet.

use serde_json::{Value, json};

use super::{Plan, allocate, finish, take};
use crate::server::{ApiServer, Config};

fn service(name: &str) -> Value {
    let port = json!({"port": 80, "protocol": "TCP", "nodePort": 30080});
    json!({
        "metadata": {"namespace": "default", "name": name},
        "spec": {"type": "NodePort", "clusterIP": "10.96.0.77", "clusterIPs": ["10.96.0.77"], "ports": [port]},
    })
}

fn ask(server: &ApiServer, name: &str) -> Option<Plan> {
    allocate(server, &mut service(name), None, false).ok()
}

#[test]
fn what_one_write_was_promised_another_does_not_get() {
    let server = ApiServer::new(Config::default());
    let plan = ask(&server, "first").expect("everything is free");
    assert!(ask(&server, "second").is_none());
    // A webhook said no: nothing was taken.
    finish(&server, &plan, false, false);
    let plan = ask(&server, "second").expect("everything is free again");
    assert!(take(&server, &service("second"), &plan).is_ok());
    // The write failed after the address was taken.
    finish(&server, &plan, true, false);
    let plan = ask(&server, "third").expect("everything is free once more");
    assert!(take(&server, &service("third"), &plan).is_ok());
    finish(&server, &plan, true, true);
    assert!(
        ask(&server, "fourth").is_none(),
        "the address is the third's"
    );
}
