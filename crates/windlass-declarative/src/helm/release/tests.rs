//! Revisions and their Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_charts::{Chart, File, Options, Values, render};

use super::{Contents, Release, Status};

fn release() -> Release {
    let file = |name: &str, text: &str| File {
        name: name.to_owned(),
        data: text.into(),
    };
    let chart = Chart::from_files(vec![
        file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        file("templates/a.yaml", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"),
        file(
            "templates/b.yaml",
            "kind: Job\napiVersion: batch/v1\nmetadata: {name: b, annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: '5'}}\n",
        ),
        file("templates/NOTES.txt", "hello"),
    ])
    .unwrap();
    let rendered = render(&chart, &Values::new(), &Options::default()).unwrap();
    let contents = Contents {
        name: "web",
        namespace: "default",
        revision: 3,
        chart: &chart,
        config: &Values::new(),
        rendered: &rendered,
    };
    Release::new(
        &contents,
        Status::PendingInstall,
        "Initial install underway",
        "2026-01-01T00:00:00Z",
        None,
    )
}

#[test]
fn release_survives_its_secret() {
    let mut release = release();
    let secret = release.secret();
    assert_eq!(secret["metadata"]["name"], "sh.helm.release.v1.web.v3");
    assert_eq!(secret["metadata"]["labels"]["status"], "pending-install");
    assert_eq!(
        secret,
        release.secret(),
        "the same release makes the same Secret"
    );
    assert_eq!(Release::from_secret(&secret).unwrap(), release);
    release.set_status(Status::Deployed, "Install complete");
    assert_eq!(release.secret()["metadata"]["labels"]["status"], "deployed");
    assert_eq!((release.notes(), release.chart_name()), ("hello", "web"));
    let hook = release.hooks().next().unwrap();
    assert_eq!((hook.name(), hook.weight(), hook.phase()), ("b", 5, ""));
}

#[test]
fn phase_of_hook_is_recorded_with_its_times() {
    let mut release = release();
    release.set_hook_phase("web/templates/b.yaml", "b", "Running", "1");
    release.set_hook_phase("web/templates/b.yaml", "b", "Succeeded", "2");
    let hook = release.hooks().next().unwrap();
    assert_eq!(
        hook.0["last_run"],
        json!({"started_at": "1", "completed_at": "2", "phase": "Succeeded"})
    );
}

#[test]
fn broken_secret_is_an_error_with_its_name() {
    let error = |data: Value| {
        let secret = json!({"metadata": {"name": "sh.helm.release.v1.a.v1"}, "data": data});
        Release::from_secret(&secret).unwrap_err().to_string()
    };
    assert_eq!(
        error(json!({})),
        "cannot decode release sh.helm.release.v1.a.v1: the Secret has no key release"
    );
    for broken in ["!", "IQ==", &STANDARD.encode(STANDARD.encode("[]"))] {
        assert!(error(json!({"release": broken})).starts_with("cannot decode release"));
    }
}
