//! Whether a node has room: what its pods ask for, and what it has to give.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

use super::occupancy::House;
use crate::quantity::{self, Quantity};

/// Amounts of resources by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources(BTreeMap<String, i128>);

impl Resources {
    /// What a pod asks for: all its containers together, or its greediest init container if that
    /// is more. An init container that keeps running counts with those that come after it.
    pub(crate) fn of(spec: &PodSpec) -> Self {
        let mut running = Self::default();
        let mut starting = Self::default();
        for container in spec.init_containers.iter().flatten() {
            let asked = requests(container);
            if container.restart_policy.as_deref() == Some("Always") {
                running.add(&asked);
                starting.raise(&running);
            } else {
                let mut together = running.clone();
                together.add(&asked);
                starting.raise(&together);
            }
        }
        for container in &spec.containers {
            running.add(&requests(container));
        }
        running.raise(&starting);
        if let Some(overhead) = &spec.overhead {
            running.add(&Self::read(Some(overhead)));
        }
        running
    }

    fn read(amounts: Option<&BTreeMap<String, Written>>) -> Self {
        let amounts = amounts.into_iter().flatten();
        Self(
            amounts
                .map(|(name, amount)| (name.clone(), quantity::read(amount).nanos()))
                .collect(),
        )
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_default() += amount;
        }
    }

    /// Takes away what was added before.
    pub(crate) fn take(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_default() -= amount;
        }
    }

    fn raise(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let mine = self.0.entry(name.clone()).or_default();
            *mine = (*mine).max(*amount);
        }
    }

    fn get(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

fn requests(container: &Container) -> Resources {
    let resources = container.resources.as_ref();
    Resources::read(resources.and_then(|resources| resources.requests.as_ref()))
}

/// What a node has too little of, in the words of Kubernetes.
pub(crate) fn short(node: &Node, there: &House, asked: &Resources) -> Vec<String> {
    let has = Resources::read(
        node.status
            .as_ref()
            .and_then(|status| status.allocatable.as_ref()),
    );
    let used = there.used();
    let mut short = Vec::new();
    let pods = has.0.get("pods");
    if pods.is_some_and(|pods| Quantity::whole(there.len() + 1).nanos() > *pods) {
        short.push("Too many pods".to_owned());
    }
    // The order in which Kubernetes looks.
    let first = ["cpu", "memory", "ephemeral-storage"];
    let others = asked
        .0
        .keys()
        .map(String::as_str)
        .filter(|name| !first.contains(name));
    for name in first.into_iter().chain(others) {
        let wanted = asked.get(name);
        if wanted > 0 && used.get(name) + wanted > has.get(name) {
            short.push(format!("Insufficient {name}"));
        }
    }
    short
}

/// Ports of the machine itself.
pub(crate) mod ports {
    use super::{House, PodSpec};

    /// An address, a protocol and a number.
    pub(crate) type Port = (String, String, i32);

    /// The ports that a pod asks for.
    pub(crate) fn of(spec: &PodSpec) -> Vec<Port> {
        let ports = spec
            .containers
            .iter()
            .flat_map(|one| one.ports.iter().flatten());
        let taken = ports.filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            let address = port.host_ip.clone().filter(|address| !address.is_empty());
            Some((
                address.unwrap_or_else(|| "0.0.0.0".to_owned()),
                protocol,
                number,
            ))
        });
        taken.collect()
    }

    /// Whether a port that the pod asks for is another's.
    pub(crate) fn are_taken(spec: &PodSpec, there: &House) -> bool {
        let wanted = of(spec);
        if wanted.is_empty() {
            return false;
        }
        let collide = |a: &Port, b: &Port| {
            let same = a.0 == b.0 || a.0 == "0.0.0.0" || b.0 == "0.0.0.0";
            same && (&a.1, a.2) == (&b.1, b.2)
        };
        let mut taken = there.ports();
        taken.any(|other| wanted.iter().any(|one| collide(one, other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::pod as named;
    use crate::scheduler::occupancy::Occupancy;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    fn house(pods: &[&Pod]) -> House {
        let mut occupancy = Occupancy::default();
        for pod in pods {
            occupancy.place(pod, "n");
        }
        occupancy.on("n").cloned().unwrap_or_default()
    }

    fn spec(containers: Value, inits: Value) -> PodSpec {
        serde_json::from_value(json!({"containers": containers, "initContainers": inits})).unwrap()
    }

    fn asking(cpu: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    fn cpu(spec: &PodSpec) -> i128 {
        Resources::of(spec).get("cpu") / 1_000_000
    }

    #[test]
    fn init_containers_come_before_and_sidecars_stay() {
        assert_eq!(
            cpu(&spec(json!([asking("1"), asking("500m")]), json!([]))),
            1500
        );
        assert_eq!(cpu(&spec(json!([asking("1")]), json!([asking("2")]))), 2000);
        let mut sidecar = asking("1");
        sidecar["restartPolicy"] = json!("Always");
        assert_eq!(
            cpu(&spec(json!([asking("1")]), json!([sidecar, asking("3")]))),
            4000
        );
        assert_eq!(cpu(&spec(json!([asking("1")]), json!([sidecar]))), 2000);
    }

    #[test]
    fn a_node_says_what_it_is_short_of() {
        let node: Node = serde_json::from_value(json!({"status": {"allocatable": {
            "cpu": "2", "memory": "1Gi", "pods": "2",
        }}}))
        .unwrap();
        let pod = |name: &str, cpu: &str| Pod {
            spec: Some(spec(json!([asking(cpu)]), json!([]))),
            ..named(name)
        };
        let (one, two) = (pod("one", "1500m"), pod("two", "0"));
        let asked = Resources::of(&spec(json!([asking("500m")]), json!([])));
        assert_eq!(short(&node, &house(&[&one]), &asked), [] as [String; 0]);
        assert_eq!(
            short(&node, &house(&[&one, &two]), &asked),
            ["Too many pods"]
        );
        let asked = Resources::of(&spec(json!([asking("600m")]), json!([])));
        assert_eq!(short(&node, &house(&[&one]), &asked), ["Insufficient cpu"]);
        let gpu = spec(
            json!([{"name": "c", "resources": {"requests": {"gpu": "1"}}}]),
            json!([]),
        );
        assert_eq!(
            short(&node, &house(&[]), &Resources::of(&gpu)),
            ["Insufficient gpu"]
        );
    }

    #[test]
    fn ports_of_the_machine_are_taken_once() {
        let with = |port: Value| spec(json!([{"name": "c", "ports": [port]}]), json!([]));
        let web = Pod {
            spec: Some(with(json!({"containerPort": 80, "hostPort": 80}))),
            ..named("web")
        };
        let taken = |port: Value| ports::are_taken(&with(port), &house(&[&web]));
        assert!(taken(json!({"containerPort": 8080, "hostPort": 80})));
        assert!(taken(
            json!({"containerPort": 1, "hostPort": 80, "hostIP": "10.0.0.1"})
        ));
        assert!(!taken(
            json!({"containerPort": 80, "hostPort": 80, "protocol": "UDP"})
        ));
        assert!(!taken(json!({"containerPort": 80})));
    }
}
