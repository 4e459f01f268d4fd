//! Starting and stopping: nothing is left behind, and nobody else gets in.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use windlass_tests::{Folder, Signal, exists, memcached_pid, ready_pods, signal};

/// Pods of processes, whose numbers are the machine's.
const WITH_PROCESSES: &[&str] = &[
    "up",
    "--runtime",
    "process",
    "--with",
    "memcached",
    "--sample",
    "--detach",
];

fn pid_of(folder: &Folder) -> i32 {
    i32::try_from(
        folder.status()["pid"]
            .as_i64()
            .expect("status tells the process"),
    )
    .expect("a process number")
}

fn curl(folder: &Folder, args: &[&str]) -> String {
    let address = folder.status()["address"]
        .as_str()
        .expect("status tells the address")
        .to_owned();
    let (path, rest) = args.split_last().expect("a path");
    let ca = folder.path().join(".windlass/pki/ca.crt");
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "10", "--cacert"])
        .arg(ca)
        .args(rest)
        .arg(format!("{address}{path}"))
        .output()
        .expect("curl runs");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn down_leaves_nothing_running_and_both_can_be_repeated() {
    let folder = Folder::new("down");
    folder.windlass_ok(WITH_PROCESSES);
    let cluster = pid_of(&folder);
    let again = folder.windlass_ok(&["up", "--with", "memcached", "--detach"]);
    assert!(again.contains("runs already"), "{again}");
    assert_eq!(pid_of(&folder), cluster);
    let pods: Vec<i32> = ready_pods(&folder.status())
        .iter()
        .filter_map(|(_, ip)| memcached_pid(ip))
        .collect();
    assert_eq!(pods.len(), 3);
    folder.windlass_ok(&["down"]);
    assert!(!exists(cluster) && pods.iter().all(|pid| !exists(*pid)));
    assert!(folder.windlass_ok(&["down"]).contains("no cluster runs"));
    let status = folder.windlass(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&status.stderr).contains("start one with `windlass up`"));
}

#[test]
fn a_cluster_that_runs_without_an_operator_says_how_to_get_it() {
    let folder = Folder::new("without");
    folder.windlass_ok(&["up", "--no-node", "--detach"]);
    let again = folder.windlass_ok(&["up", "--detach"]);
    assert!(again.contains("pods are not run"), "{again}");
    let refused = folder.windlass(&["up", "--with", "memcached", "--sample", "--detach"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        said.contains("windlass down") && said.contains("--with memcached"),
        "{said}"
    );
}

#[test]
fn killed_with_9_down_ends_what_it_left_behind() {
    let folder = Folder::new("kill9-down");
    folder.windlass_ok(WITH_PROCESSES);
    let pods: Vec<i32> = ready_pods(&folder.status())
        .iter()
        .filter_map(|(_, ip)| memcached_pid(ip))
        .collect();
    assert_eq!(pods.len(), 3);
    signal(pid_of(&folder), Signal::KILL);
    folder.windlass_ok(&["down"]);
    assert!(
        pods.iter().all(|pid| !exists(*pid)),
        "{pods:?} are left over"
    );
}

#[test]
fn without_the_kubeconfigs_credentials_nobody_gets_in() {
    let folder = Folder::new("auth");
    folder.windlass_ok(&["up", "--no-node", "--detach"]);
    assert_eq!(curl(&folder, &["/readyz"]), "ok");
    let anonymous = curl(&folder, &["/api/v1/namespaces/default/secrets"]);
    assert!(
        anonymous.contains("system:anonymous") && anonymous.contains("\"code\":403"),
        "{anonymous}"
    );
    let forged = curl(
        &folder,
        &["--header", "Authorization: Bearer forged", "/api/v1/pods"],
    );
    assert!(forged.contains("\"code\":401"), "{forged}");
    // Another cluster's certificate is nobody's here.
    let other = Folder::new("auth-other");
    other.windlass_ok(&["up", "--no-node", "--detach"]);
    let pki = other.path().join(".windlass/pki");
    let (cert, key) = (pki.join("admin.crt"), pki.join("admin.key"));
    let foreign = [
        "--cert",
        cert.to_str().expect("a path"),
        "--key",
        key.to_str().expect("a path"),
        "/api/v1/pods",
    ];
    let refused = curl(&folder, &foreign);
    assert!(!refused.contains("PodList"), "{refused}");
    // The kubeconfig is its user's alone, and so is what it was made from.
    for file in ["kubeconfig", "pki/ca.key", "pki/admin.key", "pki/sa.key"] {
        let mode = std::fs::metadata(folder.path().join(".windlass").join(file))
            .expect(file)
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{file} can be read by others: {mode:o}");
    }
}

/// A token of the `ServiceAccount` named `default`.
fn token(folder: &Folder) -> String {
    let request = folder.path().join("token-request.json");
    std::fs::write(&request, "{}").expect("a file can be written");
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let made = folder.kubectl(&["create", "--raw", path, "-f", "token-request.json"]);
    let made: Value = serde_json::from_str(&made).expect("a token request is answered in JSON");
    made["status"]["token"]
        .as_str()
        .expect("a token")
        .to_owned()
}

/// The token with other claims, signed by the cluster's own key.
fn signed_again(folder: &Folder, token: &str, claims: &Value) -> String {
    let pem = folder.path().join(".windlass/pki/sa.key");
    let pem = std::fs::read_to_string(pem).expect("the key is kept");
    let key: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let key = STANDARD.decode(key).expect("a key in PEM");
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &random)
        .expect("a P-256 key");
    let header = token.split('.').next().unwrap_or_default();
    let message = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let signature = key.sign(&random, message.as_bytes()).expect("a signature");
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn a_token_is_good_for_its_account_its_cluster_and_its_time_alone() {
    let folder = Folder::new("tokens");
    folder.windlass_ok(&["up", "--no-node", "--detach"]);
    folder.until("a ServiceAccount", |_| {
        let accounts = folder.kubectl(&["get", "serviceaccounts", "-o", "name"]);
        accounts.contains("default").then_some(())
    });
    let ask = |token: &str, path: &str| {
        let header = format!("Authorization: Bearer {token}");
        curl(&folder, &["--header", &header, path])
    };
    let secrets = "/api/v1/namespaces/default/secrets";
    let good = token(&folder);
    assert!(ask(&good, "/api").contains("APIVersions"));
    let refused = ask(&good, secrets);
    assert!(
        refused.contains(
            r#"User \"system:serviceaccount:default:default\" cannot list resource \"secrets\""#
        ),
        "{refused}"
    );
    let claims = good.split('.').nth(1).unwrap_or_default();
    let claims = URL_SAFE_NO_PAD.decode(claims).expect("claims");
    let mut claims: Value = serde_json::from_slice(&claims).expect("claims are JSON");
    // Signed by the cluster's key, the same claims are as good as the token itself …
    let again = signed_again(&folder, &good, &claims);
    assert!(ask(&again, "/api").contains("APIVersions"));
    // … and an hour after their time they are not.
    let now = claims["iat"].as_i64().expect("a time");
    for (claim, time) in [
        ("iat", now - 7200),
        ("nbf", now - 7200),
        ("exp", now - 3600),
    ] {
        claims[claim] = json!(time);
    }
    let expired = signed_again(&folder, &good, &claims);
    // Another cluster's token, and one whose claims were changed and not signed again.
    let other = Folder::new("tokens-other");
    other.windlass_ok(&["up", "--no-node", "--detach"]);
    other.until("a ServiceAccount", |_| {
        let accounts = other.kubectl(&["get", "serviceaccounts", "-o", "name"]);
        accounts.contains("default").then_some(())
    });
    let mut parts: Vec<&str> = good.split('.').collect();
    let masters = URL_SAFE_NO_PAD.encode(r#"{"sub":"system:masters"}"#);
    parts[1] = &masters;
    for (what, token) in [
        ("expired", expired),
        ("another cluster's", token(&other)),
        ("forged", parts.join(".")),
    ] {
        for path in ["/api", "/readyz", secrets] {
            let answer = ask(&token, path);
            assert!(
                answer.contains("\"code\":401"),
                "{what} on {path}: {answer}"
            );
        }
    }
}
