use std::net::Ipv4Addr;

use super::super::range::Range;
use super::super::route::Protocol;
use super::*;

fn bridge() -> Bridge {
    let range = |second| Range {
        base: Ipv4Addr::new(10, second, 0, 0),
        prefix: 16,
    };
    Bridge {
        name: "wl0".to_owned(),
        pods: range(244),
        services: range(96),
    }
}

fn route(affinity: Option<u32>, endpoints: &[[u8; 4]]) -> Route {
    Route {
        namespace: "shop".to_owned(),
        service: "web".to_owned(),
        uid: None,
        address: Ipv4Addr::new(10, 96, 0, 7),
        protocol: Protocol::Tcp,
        port: 80,
        node_port: Some(30080),
        affinity,
        endpoints: endpoints.iter().map(|ip| ((*ip).into(), 8080)).collect(),
    }
}

#[test]
fn what_is_no_longer_wanted_is_deleted_and_what_clients_stick_to_is_kept() {
    let both = [[10, 244, 0, 8], [10, 244, 0, 9]];
    let (first, parts) = ruleset(&bridge(), &[route(Some(60), &both)], &Parts::default());
    assert!(
        first.contains("timeout 60s") && !first.contains("delete "),
        "{first}"
    );
    let (second, _) = ruleset(&bridge(), &[route(Some(60), &both[..1])], &parts);
    let deleted: Vec<&str> = second
        .lines()
        .filter(|line| line.starts_with("delete"))
        .collect();
    // The chain of the endpoint that went, and the set of its clients.
    assert_eq!(deleted.len(), 2, "{second}");
    assert!(second.contains("flush table ip wl0"));
}

#[test]
fn a_service_without_endpoints_is_refused() {
    let (script, parts) = ruleset(&bridge(), &[route(None, &[])], &Parts::default());
    assert!(parts.chains.is_empty());
    for chain in ["forward", "local"] {
        let unserved = format!("add rule ip wl0 {chain} ip daddr 10.96.0.0/16");
        let rules: Vec<&str> = script
            .lines()
            .filter_map(|line| line.strip_prefix(&unserved))
            .collect();
        let expected = [" meta l4proto tcp reject with tcp reset", " reject"];
        assert_eq!(rules, expected, "{script}");
    }
    assert!(!script.contains("vmap"), "{script}");
}

#[test]
fn nothing_is_forwarded_between_the_bridge_and_other_interfaces() {
    let (script, _) = ruleset(&bridge(), &[], &Parts::default());
    let rules: Vec<&str> = script
        .lines()
        .filter_map(|line| line.strip_prefix("add rule ip wl0 forward "))
        .collect();
    assert_eq!(
        rules[..2],
        [
            "iifname wl0 oifname != wl0 drop",
            "iifname != wl0 oifname wl0 drop"
        ],
        "{script}"
    );
}
