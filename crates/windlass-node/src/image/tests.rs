use proptest::prelude::*;
use serde_json::json;

use super::*;

fn container(value: serde_json::Value) -> Container {
    serde_json::from_value(value).expect("a container")
}

fn argv(container: &Container, as_root: bool) -> Vec<String> {
    ImageTable::default()
        .invocation(container, as_root)
        .expect("an invocation")
        .argv
}

#[test]
fn an_image_stands_for_a_program_that_is_told_its_address() {
    let plain = container(json!({"name": "c", "image": "memcached:1.6.6"}));
    assert_eq!(argv(&plain, false), ["memcached", "-l", "$(POD_IP)"]);
    assert_eq!(
        argv(&plain, true),
        ["memcached", "-l", "$(POD_IP)", "-u", "nobody"]
    );
}

#[test]
fn the_images_own_program_as_command_is_told_too() {
    let command = container(
        json!({"name": "c", "image": "docker.io/library/memcached:1.6-alpine",
        "command": ["memcached", "-m=64", "-o", "modern", "-v"]}),
    );
    assert_eq!(
        argv(&command, true),
        [
            "memcached",
            "-m=64",
            "-o",
            "modern",
            "-v",
            "-l",
            "$(POD_IP)",
            "-u",
            "nobody"
        ]
    );
}

#[test]
fn what_the_container_says_itself_is_not_added() {
    let said = container(json!({"name": "c", "image": "memcached",
        "args": ["-l127.0.0.1", "--user=daemon"]}));
    assert_eq!(
        argv(&said, true),
        ["memcached", "-l127.0.0.1", "--user=daemon"]
    );
    // `--listen-backlog` is another flag than `--listen`.
    let other =
        container(json!({"name": "c", "image": "memcached", "args": ["--listen-backlog=5"]}));
    assert_eq!(
        argv(&other, false),
        ["memcached", "--listen-backlog=5", "-l", "$(POD_IP)"]
    );
}

#[test]
fn a_command_runs_whatever_the_image() {
    let table = ImageTable::default();
    for image in ["busybox", "memcached", ""] {
        let shell = container(
            json!({"name": "c", "image": image, "command": ["sh", "-c"], "args": ["exit 3"]}),
        );
        let invocation = table.invocation(&shell, true).expect("an invocation");
        assert_eq!(invocation.argv, ["sh", "-c", "exit 3"]);
        assert_eq!(invocation.program, None);
    }
}

#[test]
fn the_arguments_of_an_image_without_an_entry_point_are_a_command() {
    let table = ImageTable::default();
    let run = |container: serde_json::Value| {
        let container = self::container(container);
        let invocation = table.invocation(&container, true);
        invocation.expect("an invocation").argv
    };
    // As `kubectl run --image=busybox -- nslookup kubernetes` asks for it.
    let given = json!({"name": "c", "image": "busybox:1.36", "args": ["nslookup", "kubernetes"]});
    assert_eq!(run(given), ["nslookup", "kubernetes"]);
    assert_eq!(run(json!({"name": "c", "image": "alpine"})), ["sh"]);
    let pause = json!({"name": "c", "image": "registry.k8s.io/pause:3.10"});
    assert_eq!(run(pause), ["sleep", "infinity"]);
}

#[test]
fn an_unknown_image_says_what_to_do() {
    let unknown = container(json!({"name": "c", "image": "example.com:5000/nothing:1"}));
    let table = ImageTable::default();
    let error = table.invocation(&unknown, false).expect_err("unknown");
    assert!(
        error.to_string().contains("add the image to images.yaml"),
        "{error}"
    );
}

#[test]
fn users_extend_the_table() {
    let mut table = ImageTable::default();
    let program: Program =
        serde_json::from_value(json!({"program": "/bin/echo", "args": ["hello"]}))
            .expect("an entry");
    table.insert("localhost:5000/greeter", program);
    let greeter = container(json!({"name": "c", "image": "localhost:5000/greeter:2@sha256:ab"}));
    let invocation = table.invocation(&greeter, false).expect("an invocation");
    assert_eq!(
        (invocation.argv, invocation.tag),
        (vec!["/bin/echo".into(), "hello".into()], Some("2"))
    );
}

#[test]
fn versions_and_tags() {
    assert!(satisfies("1.6.18", "1.6"));
    assert!(satisfies("1.6.18", "v1.6.18-alpine"));
    assert!(satisfies("1.6.18", "latest"));
    assert!(!satisfies("1.6.18", "1.6.1"));
    assert!(!satisfies("1.6.18", "1.6.6"));
    assert_eq!(version_in("memcached 1.6.18"), Some("1.6.18"));
    assert_eq!(version_in("Redis server v=7.0.15 sha=0"), Some("7.0.15"));
    assert_eq!(
        version_in("etcd Version: 3.4.23\nGit SHA: x"),
        Some("3.4.23")
    );
    assert_eq!(version_in("no number"), None);
}

#[test]
fn programs_are_found_in_the_path() {
    assert!(find("sh", "/nowhere:/bin").is_some());
    assert!(find("/bin/sh", "").is_some());
    assert_eq!(find("/etc/passwd", ""), None);
    assert_eq!(find("no-such-program", "/bin"), None);
}

proptest! {
    #[test]
    fn names_and_tags_are_told_apart(
        registry in "([a-z]{1,5}\\.io(:[0-9]{2,4})?/)?",
        name in "[a-z]{1,8}",
        tag in "[a-z0-9.]{1,8}",
    ) {
        let (found, found_tag) = (split(&format!("{registry}{name}:{tag}")).0, tag.clone());
        let reference = format!("{registry}{name}:{tag}@sha256:00");
        prop_assert_eq!(split(&reference), (found, Some(found_tag.as_str())));
        let untagged = format!("{registry}{name}");
        prop_assert_eq!(split(&untagged).1, None);
    }
}
