//! What the real kube-apiserver answers, recorded, and ours beside it.
//!
//! Each file in `cases/` is a scenario: requests sent in order, in a namespace of its own. Its
//! normalised answers are in `answers/`, as the real server gave them. Run plainly, this test sends
//! every scenario to our server in process and compares. With `WINDLASS_RECORD` naming a kubeconfig
//! (`make record` starts a fresh real control plane without controllers for it), it sends them
//! there and writes the answers instead.
//!
//! Nobody edits an answer by hand. A step on which ours still differs is listed in `gaps.yaml`
//! with the reason; the test fails on a difference that is not listed, and on a listed step that
//! has come to agree, so the list only shrinks.

mod case;
mod compare;
mod fields;
mod gaps;
mod hooks;
mod kinds;
mod labels;
mod normalise;
mod rules;
mod run;
mod servers;
mod zoo;

use std::path::{Path, PathBuf};

use case::Case;
use hooks::Scripted;
use servers::Servers;

/// One test per file of `cases/`.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        const CASES: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { play(stringify!($name)); })*
    };
}

cases!(
    admission_limit_ranger,
    admission_namespace_lifecycle,
    admission_priority,
    admission_runtime_class,
    admission_service_account,
    admission_tolerations,
    apply_after_client_side_apply,
    apply_configmap,
    apply_create_only,
    apply_custom_resource,
    apply_deployment,
    apply_managers,
    apply_rules,
    apply_times,
    authentication,
    authorization,
    bad_input,
    binding,
    certificate_admission,
    configmap_life,
    crd_built_in_names,
    crd_cel,
    crd_cel_cost,
    crd_cel_cost_of_parts,
    crd_cel_rules,
    crd_columns,
    crd_definition,
    crd_life,
    crd_patterns,
    crd_pruning_and_defaults,
    crd_ratcheting,
    crd_selectable_fields,
    crd_status_default,
    crd_structural,
    crd_validation,
    crd_versions,
    custom_resource,
    custom_resource_schema,
    defaults,
    delete_rules,
    deletion,
    discovery,
    dry_run_and_validation,
    dry_run_rules,
    empty_segments,
    errors,
    event_expiry,
    eviction,
    finalizer_rules,
    found_by_sequences,
    generation_and_status,
    generation_rules,
    impersonation_of_any_characters,
    json_patch,
    kinds_admission_policy,
    kinds_autoscaler,
    kinds_certificate,
    kinds_configmap_and_secret,
    kinds_container_validation,
    kinds_cronjob,
    kinds_daemonset,
    kinds_deployment,
    kinds_device,
    kinds_disruption_budget,
    kinds_endpoints,
    kinds_event,
    kinds_flow_and_service,
    kinds_full,
    kinds_full_volumes,
    kinds_ingress,
    kinds_job,
    kinds_lease,
    kinds_limit_range,
    kinds_namespace,
    kinds_network_policy,
    kinds_node,
    kinds_pod,
    kinds_pod_update,
    kinds_pod_validation,
    kinds_pod_warnings,
    kinds_priority_class,
    kinds_replicaset,
    kinds_rest,
    kinds_role,
    kinds_runtime_class,
    kinds_selector_invalid,
    kinds_service,
    kinds_service_address,
    kinds_service_invalid,
    kinds_statefulset,
    kinds_storage,
    kinds_volume,
    kinds_volume_invalid,
    kinds_volume_validation,
    kinds_webhook,
    list_rules,
    lists,
    merge_patch,
    name_rules,
    names,
    old_versions,
    patch_rules,
    pod_security_baseline,
    pod_security_namespaces,
    pod_security_restricted,
    pod_streams,
    pod_subresources,
    policy_actions,
    policy_expressions,
    policy_matching,
    policy_params,
    policy_validations,
    policy_variables,
    protobuf,
    proxies,
    quota_counts,
    quota_pods,
    quota_services_and_claims,
    request_size,
    roles,
    selectors,
    start_up,
    status_and_names,
    status_rules,
    strategic_merge_patch,
    strategic_rules,
    tables,
    tables_of_kinds,
    tokens_of_the_terminating,
    update_rules,
    version_rules,
    watch,
    watch_lists,
    watch_rules,
    webhook_changes_are_checked,
    webhook_conditions,
    webhook_conversion,
    webhook_conversion_errors,
    webhook_custom_resource,
    webhook_delete,
    webhook_dry_run,
    webhook_equivalent,
    webhook_failure,
    webhook_managers,
    webhook_matching,
    webhook_mutate,
    webhook_namespace,
    webhook_old_reviews,
    webhook_order,
    webhook_pod,
    webhook_reinvocation,
    webhook_service,
    webhook_side_effects,
    webhook_token,
    webhook_validate,
    webhook_warnings,
);

/// The folder of this test.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

/// Runs one case: records it, or compares ours with the recording.
fn play(name: &str) {
    let case = Case::read(&folder().join("cases").join(format!("{name}.yaml")));
    let stored = folder().join("answers").join(format!("{name}.json"));
    if let Some(kubeconfig) = std::env::var_os("WINDLASS_RECORD") {
        if std::env::var("WINDLASS_RECORD_SERVER").is_ok_and(|name| name != case.server.name()) {
            return;
        }
        let answers = real_time(async {
            let servers =
                Servers::real(Path::new(&kubeconfig), Scripted::new(case.webhooks.clone())).await;
            run::run(name, &case, &servers).await
        });
        compare::write(&stored, &normalise::normalise(answers));
        return;
    }
    let expected = compare::read(&stored);
    let answers = virtual_time(async {
        let servers = Servers::ours(case.server, Scripted::new(case.webhooks.clone()));
        run::run(name, &case, &servers).await
    });
    let differences = compare::compare(&expected, &normalise::normalise(answers));
    if let Err(report) = gaps::judge(&folder().join("gaps.yaml"), name, &differences) {
        panic!("{name} differs from the real server:\n{report}");
    }
}

/// The real server lives in the world's time.
fn real_time<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts")
        .block_on(future)
}

/// Ours lives in virtual time: a watch of a minute takes none.
fn virtual_time<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime starts")
        .block_on(future)
}

#[test]
fn every_case_is_played_and_recorded() {
    let files = |sub: &str, extension: &str| {
        let mut names: Vec<String> = std::fs::read_dir(folder().join(sub))
            .expect("the folder is there")
            .map(|entry| entry.expect("the folder can be read").path())
            .filter(|path| path.extension().is_some_and(|found| found == extension))
            .map(|path| {
                path.file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        files("cases", "yaml"),
        CASES,
        "cases/ and the list in main.rs"
    );
    if std::env::var_os("WINDLASS_RECORD").is_none() {
        assert_eq!(
            files("answers", "json"),
            CASES,
            "answers/ and the list in main.rs: run `make record`"
        );
    }
}
