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
mod gaps;
mod hooks;
mod labels;
mod normalise;
mod run;
mod servers;

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
    apply_after_client_side_apply,
    apply_configmap,
    apply_create_only,
    apply_custom_resource,
    apply_deployment,
    authentication,
    authorization,
    configmap_life,
    custom_resource,
    custom_resource_schema,
    defaults,
    deletion,
    discovery,
    dry_run_and_validation,
    errors,
    generation_and_status,
    json_patch,
    lists,
    merge_patch,
    names,
    roles,
    selectors,
    strategic_merge_patch,
    tables,
    update_rules,
    watch,
    watch_lists,
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
    webhook_order,
    webhook_pod,
    webhook_service,
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
        let servers = Servers::ours(Scripted::new(case.webhooks.clone()));
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
