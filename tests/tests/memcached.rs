//! The main job: a Memcached whose nodes are real processes.

use windlass_tests::{Folder, Signal, exists, memcached_pid, ready_pods, signal};

#[test]
fn three_processes_answer_come_back_when_killed_and_go_with_their_resource() {
    let folder = Folder::new("memcached");
    let printed = folder.windlass_ok(&[
        "up",
        "--runtime",
        "process",
        "--with",
        "memcached",
        "--sample",
        "--detach",
    ]);
    assert!(
        printed.contains("not for production") && printed.contains("export KUBECONFIG="),
        "{printed}"
    );

    // Three that answer, and the status names them.
    let status = folder.status();
    let pods = ready_pods(&status);
    assert_eq!(pods.len(), 3, "{status:#}");
    let processes: Vec<i32> = pods
        .iter()
        .map(|(name, ip)| memcached_pid(ip).unwrap_or_else(|| panic!("{name} answers")))
        .collect();
    let names: Vec<&str> = pods.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        status["customResources"][0]["status"]["nodes"],
        serde_json::json!(names)
    );

    // Under the address of their Service one of them answers.
    let address = ["get", "service", "example-memcached-service", "-o"];
    let address = folder.kubectl(&[&address[..], &["jsonpath={.spec.clusterIP}"]].concat());
    let answers = folder.until("the Service", |_| memcached_pid(&address));
    assert!(processes.contains(&answers));

    // One is killed and comes back as another process at the same address.
    let (victim, address) = &pods[0];
    signal(processes[0], Signal::KILL);
    let restarted = folder.until("the killed process's return", |status| {
        let pod = status["pods"]
            .as_array()?
            .iter()
            .find(|pod| pod["metadata"]["name"] == victim.as_str())?;
        let container = &pod["status"]["containerStatuses"][0];
        (container["restartCount"] == 1 && container["ready"] == true).then(|| container.clone())
    });
    assert_eq!(
        restarted["lastState"]["terminated"]["exitCode"], 137,
        "{restarted:#}"
    );
    let back = memcached_pid(address).expect("it answers again");
    assert_ne!(back, processes[0]);

    // Resized, then deleted, with kubectl as a user would.
    folder.kubectl(&[
        "patch",
        "memcached",
        "example-memcached",
        "--type=merge",
        "-p",
        r#"{"spec":{"size":1}}"#,
    ]);
    let left = folder.until("one pod", |status| {
        let pods = ready_pods(status);
        (pods.len() == 1 && status["pods"].as_array()?.len() == 1).then(|| pods[0].clone())
    });
    let survivor = memcached_pid(&left.1).expect("the one that is left answers");
    folder.kubectl(&["delete", "memcached", "example-memcached"]);
    folder.until("everything's end", |status| {
        let none = |key: &str| status[key].as_array().is_some_and(Vec::is_empty);
        (none("customResources") && none("deployments") && none("pods")).then_some(())
    });
    assert!(!exists(survivor) && !exists(back) && processes.iter().all(|pid| !exists(*pid)));
}
