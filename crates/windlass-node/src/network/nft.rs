//! Services as one nftables table, replaced as a whole.
//!
//! Every change is one transaction: the kernel has the old rules or the new ones, nothing between.
//! Which endpoint a client sticks to (`sessionAffinity: ClientIP`) is remembered in sets that
//! outlive the rules, one per endpoint, with the Service's time limit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::watch;

use super::bridge::Bridge;
use super::picture::Picture;
use super::route::{Route, routes};

/// The chains that are always there, with where the kernel calls them.
const CHAINS: [(&str, &str); 6] = [
    ("guard", "{ type filter hook prerouting priority -300; }"),
    ("prerouting", "{ type nat hook prerouting priority -100; }"),
    ("output", "{ type nat hook output priority -100; }"),
    ("postrouting", "{ type nat hook postrouting priority 100; }"),
    ("forward", "{ type filter hook forward priority 0; }"),
    ("local", "{ type filter hook output priority 0; }"),
];

/// The chains and sets that one ruleset has and another may not have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    chains: BTreeSet<String>,
    sets: BTreeMap<String, u32>,
}

/// Keeps the table in step with what the Services are, as long as the future is polled.
pub async fn keep(bridge: &Bridge, mut pictures: watch::Receiver<Picture>) -> io::Result<()> {
    let mut before = Parts::default();
    let mut applied: Option<Vec<Route>> = None;
    loop {
        let wanted = routes(&pictures.borrow_and_update());
        if applied.as_ref() != Some(&wanted) {
            let (mut script, parts) = ruleset(bridge, &wanted, &before);
            if applied.is_none() {
                // What a former life of the node left goes in the same transaction.
                script = without(&bridge.name) + &script;
            }
            feed(Command::new("nft").args(["-f", "-"]), &script).await?;
            before = parts;
            applied = Some(wanted);
        }
        if pictures.changed().await.is_err() {
            return Ok(());
        }
    }
}

/// Takes the table away.
pub async fn remove(table: &str) -> io::Result<()> {
    feed(Command::new("nft").args(["-f", "-"]), &without(table)).await
}

fn without(table: &str) -> String {
    // Added first, so that one that is not there is no error.
    format!("add table ip {table}\ndelete table ip {table}\n")
}

/// The transaction that makes the table hold these routes, and what it has then.
pub fn ruleset(bridge: &Bridge, routes: &[Route], before: &Parts) -> (String, Parts) {
    let table = &bridge.name;
    let mut parts = Parts::default();
    let mut rules = String::new();
    let (mut addresses, mut node_ports) = (Vec::new(), Vec::new());
    for route in routes.iter().filter(|route| !route.endpoints.is_empty()) {
        let chain = service(&mut parts, &mut rules, table, route);
        addresses.push(format!(
            "{} . {} . {} : goto {chain}",
            route.address, route.protocol, route.port
        ));
        if let Some(port) = route.node_port {
            node_ports.push(format!("{} . {port} : goto {chain}", route.protocol));
        }
    }
    let mut script = format!("add table ip {table}\n");
    for (name, hook) in CHAINS {
        let _ = writeln!(script, "add chain ip {table} {name} {hook}");
    }
    let _ = writeln!(script, "add chain ip {table} services");
    for (name, seconds) in &parts.sets {
        let _ = writeln!(
            script,
            "add set ip {table} {name} {{ type ipv4_addr; flags dynamic,timeout; timeout {seconds}s; }}"
        );
    }
    for chain in &parts.chains {
        let _ = writeln!(script, "add chain ip {table} {chain}");
    }
    let _ = writeln!(script, "flush table ip {table}");
    for chain in before.chains.difference(&parts.chains) {
        let _ = writeln!(script, "delete chain ip {table} {chain}");
    }
    for (name, _) in before
        .sets
        .iter()
        .filter(|(name, _)| !parts.sets.contains_key(*name))
    {
        let _ = writeln!(script, "delete set ip {table} {name}");
    }
    let mut rule = |chain: &str, rule: &str| {
        let _ = writeln!(script, "add rule ip {table} {chain} {rule}");
    };
    // Pods have no business with the machine's loopback addresses; only node ports lead through it.
    rule(
        "guard",
        &format!("iifname {table} ip daddr 127.0.0.0/8 drop"),
    );
    rule("prerouting", "jump services");
    rule("output", "jump services");
    if !addresses.is_empty() {
        let map = addresses.join(", ");
        rule(
            "services",
            &format!("ip daddr . meta l4proto . th dport vmap {{ {map} }}"),
        );
    }
    if !node_ports.is_empty() {
        let map = node_ports.join(", ");
        rule(
            "services",
            &format!("fib daddr type local meta l4proto . th dport vmap {{ {map} }}"),
        );
    }
    // A pod that reaches itself through a Service must not see its own address as the sender's.
    let own: BTreeSet<String> = routes
        .iter()
        .flat_map(|route| &route.endpoints)
        .map(|(address, _)| format!("{address} . {address}"))
        .collect();
    if !own.is_empty() {
        let own: Vec<String> = own.into_iter().collect();
        rule(
            "postrouting",
            &format!("ip saddr . ip daddr {{ {} }} masquerade", own.join(", ")),
        );
    }
    rule(
        "postrouting",
        &format!("ip saddr 127.0.0.0/8 oifname {table} masquerade"),
    );
    // Pods are on the bridge alone: what the kernel may forward for them goes from one to another.
    rule(
        "forward",
        &format!("iifname {table} oifname != {table} drop"),
    );
    rule(
        "forward",
        &format!("iifname != {table} oifname {table} drop"),
    );
    // What is left has no endpoint; saying so is better than silence. A TCP socket on this machine
    // is still busy sending when an ICMP message comes back, and would try again a second later: it
    // believes a reset at once.
    for chain in ["forward", "local"] {
        let unserved = format!("ip daddr {}", bridge.services);
        rule(
            chain,
            &format!("{unserved} meta l4proto tcp reject with tcp reset"),
        );
        rule(chain, &format!("{unserved} reject"));
    }
    script += &rules;
    (script, parts)
}

/// Adds the rules of one port of a Service; gives the name of its chain.
fn service(parts: &mut Parts, rules: &mut String, table: &str, route: &Route) -> String {
    let own = (&route.namespace, &route.service, route.protocol, route.port);
    let chain = format!("service-{}", hash(&own));
    parts.chains.insert(chain.clone());
    let mut targets = Vec::new();
    for endpoint in &route.endpoints {
        let name = hash(&(&own, endpoint));
        let target = format!("endpoint-{name}");
        let mut remember = String::new();
        if let Some(seconds) = route.affinity {
            let set = format!("clients-{name}-{seconds}");
            let _ = writeln!(
                rules,
                "add rule ip {table} {chain} ip saddr @{set} goto {target}"
            );
            remember = format!("update @{set} {{ ip saddr }} ");
            parts.sets.insert(set, seconds);
        }
        let (address, port) = endpoint;
        let _ = writeln!(
            rules,
            "add rule ip {table} {target} {remember}meta l4proto {} dnat to {address}:{port}",
            route.protocol
        );
        parts.chains.insert(target.clone());
        targets.push(target);
    }
    let map: Vec<String> = targets
        .iter()
        .enumerate()
        .map(|(place, target)| format!("{place} : goto {target}"))
        .collect();
    let _ = writeln!(
        rules,
        "add rule ip {table} {chain} numgen random mod {} vmap {{ {} }}",
        targets.len(),
        map.join(", ")
    );
    chain
}

fn hash(value: &impl std::hash::Hash) -> String {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Runs a command that reads a script.
pub(super) async fn feed(command: &mut Command, script: &str) -> io::Result<()> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // One that fails early does not read to the end; what it says counts.
        let _ = input.write_all(script.as_bytes()).await;
    }
    let output = child.wait_with_output().await?;
    if output.status.success() {
        return Ok(());
    }
    let program = command
        .as_std()
        .get_program()
        .to_string_lossy()
        .into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "{program} failed: {}",
        said.trim()
    )))
}

#[cfg(test)]
mod tests;
