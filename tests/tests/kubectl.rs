//! What people type: `kubectl` against the embedded cluster.

use windlass_tests::Folder;

const TALKER: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "talker"}, "spec": {
    "terminationGracePeriodSeconds": 1,
    "containers": [{"name": "talk", "image": "busybox", "command": ["sh", "-c", "echo hello; echo goodbye; sleep 600"]}]}}"#;

const WEB: &str = r#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
    "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
    "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"terminationGracePeriodSeconds": 1,
        "containers": [{"name": "web", "image": "busybox:1", "command": ["sleep", "600"]}]}}}}"#;

fn write(folder: &Folder, name: &str, text: &str) {
    std::fs::write(folder.path().join(name), text).expect("a file can be written");
}

#[test]
fn apply_get_describe_wait_logs_and_delete() {
    let folder = Folder::new("kubectl");
    folder.windlass_ok(&[
        "up",
        "--runtime",
        "process",
        "--with",
        "memcached",
        "--detach",
    ]);
    write(&folder, "talker.json", TALKER);
    assert!(
        folder
            .kubectl(&["apply", "-f", "talker.json"])
            .contains("pod/talker created")
    );
    folder.kubectl(&[
        "wait",
        "--for=condition=Ready",
        "pod/talker",
        "--timeout=30s",
    ]);
    assert_eq!(folder.kubectl(&["logs", "talker"]), "hello\ngoodbye\n");
    assert_eq!(folder.kubectl(&["logs", "talker", "--tail=1"]), "goodbye\n");
    let described = folder.kubectl(&["describe", "pod", "talker"]);
    assert!(
        described.contains("Status:           Running"),
        "{described}"
    );
    assert!(
        described.contains("Started container talk"),
        "events are told: {described}"
    );
    assert!(
        folder
            .kubectl(&["apply", "-f", "talker.json"])
            .contains("unchanged")
    );
    assert!(
        folder
            .kubectl(&["get", "pods", "-o", "wide"])
            .contains("127.")
    );
    assert!(
        folder
            .kubectl(&["delete", "pod", "talker"])
            .contains("deleted")
    );
}

#[test]
fn a_deployment_is_applied_changed_and_rolled_out() {
    let folder = Folder::new("rollout");
    folder.windlass_ok(&["up", "--runtime", "process", "--detach"]);
    write(&folder, "web.json", WEB);
    folder.kubectl(&["apply", "-f", "web.json"]);
    folder.kubectl(&["rollout", "status", "deployment/web", "--timeout=30s"]);
    write(
        &folder,
        "web.json",
        &WEB.replace("busybox:1", "busybox:2")
            .replace("\"replicas\": 2", "\"replicas\": 3"),
    );
    assert!(
        folder
            .kubectl(&["apply", "-f", "web.json"])
            .contains("configured")
    );
    folder.kubectl(&["rollout", "status", "deployment/web", "--timeout=30s"]);
    let images = folder.kubectl(&[
        "get",
        "pods",
        "-l",
        "app=web",
        "-o",
        "jsonpath={.items[*].spec.containers[0].image}",
    ]);
    assert_eq!(images, "busybox:2 busybox:2 busybox:2");
    // An unknown field is refused by name, before anything is stored.
    write(
        &folder,
        "web.json",
        &WEB.replace("\"replicas\"", "\"replicaz\""),
    );
    let refused = std::panic::catch_unwind(|| folder.kubectl(&["apply", "-f", "web.json"]));
    let message = *refused
        .expect_err("it is refused")
        .downcast::<String>()
        .expect("a message");
    assert!(message.contains("spec.replicaz"), "{message}");
    folder.kubectl(&["delete", "deployment", "web"]);
    folder.until("the end of its pods", |status| {
        status["pods"].as_array()?.is_empty().then_some(())
    });
}

#[test]
fn run_with_a_shells_image_was_an_image_that_nobody_knows() {
    let folder = Folder::new("run");
    folder.windlass_ok(&["up", "--detach"]);
    folder.until("a ServiceAccount", |_| {
        let accounts = folder.kubectl(&["get", "serviceaccounts", "-o", "name"]);
        accounts.contains("default").then_some(())
    });
    let run = ["run", "look", "--image=busybox", "--restart=Never"];
    folder.kubectl(&[&run[..], &["--", "sh", "-c", "echo hello"]].concat());
    let over = "--for=jsonpath={.status.phase}=Succeeded";
    folder.kubectl(&["wait", over, "--timeout=60s", "pod/look"]);
    assert_eq!(folder.kubectl(&["logs", "look"]), "hello\n");
}

#[test]
fn a_custom_resource_is_explained_and_checked() {
    let folder = Folder::new("custom");
    folder.windlass_ok(&["up", "--no-node", "--with", "memcached", "--detach"]);
    assert!(
        folder
            .kubectl(&["explain", "memcached.spec"])
            .contains("size")
    );
    assert!(
        folder
            .kubectl(&["api-resources", "--api-group=cache.example.com"])
            .contains("memcacheds")
    );
    write(
        &folder,
        "bad.json",
        r#"{"apiVersion": "cache.example.com/v1", "kind": "Memcached", "metadata": {"name": "bad"}, "spec": {"size": -1}}"#,
    );
    let refused = std::panic::catch_unwind(|| folder.kubectl(&["apply", "-f", "bad.json"]));
    let message = *refused
        .expect_err("it is refused")
        .downcast::<String>()
        .expect("a message");
    assert!(
        message.contains("spec.size") && message.contains("greater than or equal to 0"),
        "{message}"
    );
}

/// Commands that send built-in kinds as kubectl's own types, not as somebody's YAML.
#[test]
fn what_kubectl_makes_itself_is_created() {
    let folder = Folder::new("creators");
    folder.windlass_ok(&["up", "--no-node", "--detach"]);
    let created: &[(&[&str], &str)] = &[
        (&["namespace", "made"], "namespace/made created"),
        (
            &[
                "deployment",
                "web",
                "--image=busybox",
                "--replicas=2",
                "--port=80",
            ],
            "deployment.apps/web created",
        ),
        (
            &["configmap", "settings", "--from-literal=a=b"],
            "configmap/settings created",
        ),
        (
            &["secret", "generic", "password", "--from-literal=p=w"],
            "secret/password created",
        ),
        (&["serviceaccount", "robot"], "serviceaccount/robot created"),
        (
            &["role", "reader", "--verb=get,list", "--resource=pods"],
            "role.rbac.authorization.k8s.io/reader created",
        ),
        (
            &[
                "rolebinding",
                "readers",
                "--role=reader",
                "--serviceaccount=default:robot",
            ],
            "rolebinding.rbac.authorization.k8s.io/readers created",
        ),
        (
            &["clusterrole", "watcher", "--verb=watch", "--resource=nodes"],
            "clusterrole.rbac.authorization.k8s.io/watcher created",
        ),
        (
            &["service", "clusterip", "web", "--tcp=80:8080"],
            "service/web created",
        ),
        (
            &["job", "once", "--image=busybox", "--", "true"],
            "job.batch/once created",
        ),
        (
            &[
                "cronjob",
                "often",
                "--image=busybox",
                "--schedule=*/5 * * * *",
            ],
            "cronjob.batch/often created",
        ),
        (
            &["ingress", "front", "--rule=example.com/=web:80"],
            "ingress.networking.k8s.io/front created",
        ),
        (
            &["quota", "some", "--hard=pods=10"],
            "resourcequota/some created",
        ),
        (
            &[
                "poddisruptionbudget",
                "careful",
                "--selector=app=web",
                "--min-available=1",
            ],
            "poddisruptionbudget.policy/careful created",
        ),
        (
            &["priorityclass", "high", "--value=1000"],
            "priorityclass.scheduling.k8s.io/high created",
        ),
    ];
    for (arguments, wanted) in created {
        let printed = folder.kubectl(&[&["create"], *arguments].concat());
        assert!(printed.contains(wanted), "{arguments:?}: {printed}");
    }
    let image = folder.kubectl(&[
        "get",
        "deployment",
        "web",
        "-o",
        "jsonpath={.spec.replicas} {.spec.template.spec.containers[0].ports[0].containerPort}",
    ]);
    assert_eq!(image, "2 80");
    assert!(
        folder
            .kubectl(&["run", "one", "--image=busybox"])
            .contains("pod/one created")
    );
    folder.kubectl(&["expose", "deployment", "web", "--name=exposed", "--port=80"]);
    folder.kubectl(&["autoscale", "deployment", "web", "--max=3"]);
    folder.kubectl(&["set", "image", "deployment/web", "busybox=busybox:2"]);
    folder.kubectl(&["scale", "deployment", "web", "--replicas=0"]);
}

#[test]
fn kubectl_knows_who_it_is_and_what_it_may() {
    let folder = Folder::new("rights");
    folder.windlass_ok(&["up", "--no-node", "--detach"]);
    assert_eq!(
        folder.kubectl(&["auth", "can-i", "create", "pods"]),
        "yes\n"
    );
    let listed = folder.kubectl(&["auth", "can-i", "--list"]);
    assert!(listed.contains("*.*"), "{listed}");
    let me = folder.kubectl(&["auth", "whoami"]);
    assert!(
        me.contains("Username") && me.contains("system:masters"),
        "{me}"
    );
    folder.kubectl(&["create", "serviceaccount", "robot"]);
    let token = folder.kubectl(&["create", "token", "robot", "--duration=20m"]);
    assert_eq!(token.trim().split('.').count(), 3, "{token}");
    let robot = folder.kubectl(&["auth", "whoami", "--as=system:serviceaccount:default:robot"]);
    assert!(robot.contains("system:serviceaccounts"), "{robot}");
}
