//! What is wrong with a set, each with the path of its field.
//!
//! Containers are judged as those of a pod, as far as it can be known before there is a pod; what is
//! left is refused by the API server when the pod is created.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use k8s_openapi::{
    api::core::v1::Container,
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use kube::{ResourceExt, core::Selector};
use serde_json::json;
use windlass::webhook::Verdict;

use crate::kind::{SidecarContainer, SidecarSet, UpdateStrategy};
use crate::overlap::overlap;

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Judges a set by itself and against the others.
pub(crate) fn judge(set: &SidecarSet, others: &[impl Borrow<SidecarSet>]) -> Verdict {
    let mut verdict = Verdict::allow();
    let spec = &set.spec;
    match &spec.selector {
        None => {
            verdict.require("spec.selector", "a SidecarSet says which pods it is about");
        }
        Some(selector) => judge_selector(&mut verdict, "spec.selector", selector),
    }
    if let Some(selector) = &spec.namespace_selector {
        judge_selector(&mut verdict, "spec.namespaceSelector", selector);
    }
    judge_strategy(&mut verdict, &spec.update_strategy);
    if spec.containers.is_empty() && spec.init_containers.is_empty() {
        verdict.require(
            "spec.containers",
            "at least one container or init container",
        );
    }
    let volumes = judge_volumes(&mut verdict, set);
    let mut names = BTreeSet::new();
    let lists = [
        ("containers", &spec.containers),
        ("initContainers", &spec.init_containers),
    ];
    for (list, sidecars) in lists {
        for (index, sidecar) in sidecars.iter().enumerate() {
            let at = format!("spec.{list}[{index}]");
            judge_container(&mut verdict, &at, &sidecar.container, &volumes);
            judge_sidecar(&mut verdict, &at, sidecar);
            if !names.insert(sidecar.container.name.as_str()) {
                verdict.duplicate(format!("{at}.name"), sidecar.container.name.as_str());
            }
        }
    }
    judge_overlap(&mut verdict, set, others);
    verdict
}

fn judge_selector(verdict: &mut Verdict, at: &str, selector: &LabelSelector) {
    let empty = |of: Option<usize>| of.unwrap_or_default() == 0;
    let labels = selector
        .match_labels
        .as_ref()
        .map(std::collections::BTreeMap::len);
    if empty(labels) && empty(selector.match_expressions.as_ref().map(Vec::len)) {
        verdict.invalid(at, json!({}), "an empty selector would match every pod");
    } else if let Err(error) = Selector::try_from(selector.clone()) {
        verdict.invalid(at, json!(selector), error);
    }
    for (index, one) in selector.match_expressions.iter().flatten().enumerate() {
        let values = one.values.as_ref().map_or(0, Vec::len);
        let at = format!("{at}.matchExpressions[{index}].values");
        match one.operator.as_str() {
            "In" | "NotIn" if values == 0 => {
                verdict.require(at, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if values > 0 => {
                verdict.forbid(
                    at,
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                );
            }
            _ => {}
        }
    }
}

fn judge_strategy(verdict: &mut Verdict, strategy: &UpdateStrategy) {
    let at = "spec.updateStrategy";
    if let Some(selector) = &strategy.selector {
        judge_selector(verdict, &format!("{at}.selector"), selector);
        if strategy
            .partition
            .as_ref()
            .is_some_and(|partition| *partition != IntOrString::Int(0))
        {
            verdict.forbid(
                format!("{at}.partition"),
                "cannot be used together with a selector",
            );
        }
    }
    for (field, amount) in [
        ("partition", &strategy.partition),
        ("maxUnavailable", &strategy.max_unavailable),
    ] {
        let at = format!("{at}.{field}");
        match amount {
            Some(IntOrString::Int(number)) if *number < 0 => {
                verdict.invalid(at, *number, "must be greater than or equal to 0");
            }
            Some(IntOrString::String(text)) if share_of(text).is_none() => {
                verdict.invalid(
                    at,
                    text.as_str(),
                    "must be a number, or a share such as '30%' up to 100%",
                );
            }
            _ => {}
        }
    }
}

/// The number before the sign of a share.
pub(crate) fn share_of(text: &str) -> Option<u32> {
    let number = text.strip_suffix('%')?.parse().ok()?;
    (number <= 100).then_some(number)
}

/// Judges the volumes; answers their names.
fn judge_volumes<'a>(verdict: &mut Verdict, set: &'a SidecarSet) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (index, volume) in set.spec.volumes.iter().enumerate() {
        let at = format!("spec.volumes[{index}].name");
        judge_label(verdict, &at, &volume.name);
        if !names.insert(volume.name.as_str()) {
            verdict.duplicate(at, volume.name.as_str());
        }
    }
    names
}

fn judge_container(
    verdict: &mut Verdict,
    at: &str,
    container: &Container,
    volumes: &BTreeSet<&str>,
) {
    judge_label(verdict, &format!("{at}.name"), &container.name);
    if container.image.as_deref().unwrap_or_default().is_empty() {
        verdict.require(format!("{at}.image"), "the image to run");
    }
    if let Some(policy) = container.image_pull_policy.as_deref()
        && !PULL_POLICIES.contains(&policy)
    {
        verdict.unsupported(format!("{at}.imagePullPolicy"), policy, &PULL_POLICIES);
    }
    for (index, port) in container.ports.iter().flatten().enumerate() {
        let at = format!("{at}.ports[{index}]");
        if !(1..=65535).contains(&port.container_port) {
            verdict.invalid(
                format!("{at}.containerPort"),
                port.container_port,
                "must be between 1 and 65535, inclusive",
            );
        }
        if let Some(protocol) = port.protocol.as_deref()
            && !PROTOCOLS.contains(&protocol)
        {
            verdict.unsupported(format!("{at}.protocol"), protocol, &PROTOCOLS);
        }
    }
    for (index, variable) in container.env.iter().flatten().enumerate() {
        if variable.name.is_empty() || variable.name.contains('=') {
            verdict.invalid(
                format!("{at}.env[{index}].name"),
                variable.name.as_str(),
                "must be the name of a variable",
            );
        }
    }
    let mut paths = BTreeSet::new();
    for (index, mount) in container.volume_mounts.iter().flatten().enumerate() {
        let at = format!("{at}.volumeMounts[{index}]");
        if !volumes.contains(mount.name.as_str()) {
            verdict.invalid(
                format!("{at}.name"),
                mount.name.as_str(),
                "is none of spec.volumes",
            );
        }
        if mount.mount_path.is_empty() {
            verdict.require(format!("{at}.mountPath"), "where to mount it");
        } else if !paths.insert(mount.mount_path.as_str()) {
            verdict.invalid(
                format!("{at}.mountPath"),
                mount.mount_path.as_str(),
                "must be unique",
            );
        }
    }
}

fn judge_sidecar(verdict: &mut Verdict, at: &str, sidecar: &SidecarContainer) {
    for (index, transfer) in sidecar.transfer_env.iter().enumerate() {
        let at = format!("{at}.transferEnv[{index}]");
        if transfer
            .source_container_name
            .as_deref()
            .unwrap_or_default()
            .is_empty()
        {
            verdict.require(
                format!("{at}.sourceContainerName"),
                "the container that has the variable",
            );
        }
        if transfer.env_name.is_none() && transfer.env_names.is_empty() {
            verdict.require(format!("{at}.envName"), "the variable's name");
        }
    }
}

/// A name as Kubernetes wants it for containers and volumes.
fn judge_label(verdict: &mut Verdict, at: &str, name: &str) {
    let end = |letter: Option<char>| {
        letter.is_some_and(|one| one.is_ascii_lowercase() || one.is_ascii_digit())
    };
    let inside = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-';
    if name.is_empty() {
        verdict.require(at, "a name");
    } else if name.len() > 63
        || !name.chars().all(inside)
        || !end(name.chars().next())
        || !end(name.chars().last())
    {
        verdict.invalid(
            at,
            name,
            "must be at most 63 lower case letters, digits and '-', and begin and end with a letter or digit",
        );
    }
}

/// A pod cannot have two containers of one name.
fn judge_overlap(verdict: &mut Verdict, set: &SidecarSet, others: &[impl Borrow<SidecarSet>]) {
    let others = others
        .iter()
        .map(Borrow::borrow)
        .filter(|other: &&SidecarSet| other.name_any() != set.name_any());
    for other in others.filter(|other| overlap(&set.spec, &other.spec)) {
        let theirs: BTreeSet<&str> = all_of(other).map(|(_, _, name)| name).collect();
        for (list, index, name) in all_of(set).filter(|(_, _, name)| theirs.contains(name)) {
            let why = format!(
                "SidecarSet {} puts a container of this name into the same pods",
                other.name_any()
            );
            verdict.invalid(format!("spec.{list}[{index}].name"), name, why);
        }
    }
}

/// Every container of a set: its list, its place and its name.
fn all_of(set: &SidecarSet) -> impl Iterator<Item = (&'static str, usize, &str)> {
    let lists = [
        ("containers", &set.spec.containers),
        ("initContainers", &set.spec.init_containers),
    ];
    lists.into_iter().flat_map(|(list, sidecars)| {
        let named = sidecars.iter().enumerate();
        named.map(move |(index, sidecar)| (list, index, sidecar.container.name.as_str()))
    })
}
