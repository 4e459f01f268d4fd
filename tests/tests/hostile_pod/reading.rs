//! What a pod can read and do that is not its own.

use serde_json::json;

use crate::host::{CANARY, Host, script};

/// Says `LEAK` for everything that works and must not. `$$` is what `$` is to Kubernetes.
const ATTACK: &str = r#"
leak() { echo "LEAK: $*"; }
for path in $HOST $DATA $HOST/kubeconfig $HOST/keys/id $HOST/other/.windlass/credentials/ca.key \
    $DATA/kubeconfig $DATA/node /etc/shadow /etc/gshadow /etc/ssh /etc/kubernetes /etc/sudoers \
    /proc/1/root$HOST /proc/self/cwd$HOST; do
  if [ -e "$path" ]; then leak "$path is there"; fi
done
for folder in /root /home /srv /opt /mnt /media /boot /tmp /var/tmp; do
  for entry in $folder/* $folder/.[!.]*; do
    if [ -e "$entry" ]; then leak "$entry is there"; fi
  done
done
grep -rlsF "$CANARY" /etc /home /root /tmp /var /srv /opt /mnt /media /run 2>/dev/null | while read -r file; do
  leak "the canary is in $file"
done
# The host's disks.
tail -n +3 /proc/partitions | while read -r major minor _ name; do
  mknod "/tmp/$name" b "$major" "$minor" 2>/dev/null
  if head -c 512 "/tmp/$name" >/dev/null 2>&1; then leak "disk $name"; fi
  rm -f "/tmp/$name"
done
mknod /tmp/mem c 1 1 2>/dev/null
if head -c 1 /tmp/mem >/dev/null 2>&1; then leak "the memory of the machine"; fi
# The kernel's settings.
for file in /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/sysrq-trigger \
    /sys/kernel/uevent_helper /sys/power/state /proc/sys/net/ipv4/ip_forward; do
  if (echo x >"$file") 2>/dev/null; then leak "$file can be written"; fi
done
mkdir -p /tmp/m
if mount -t tmpfs none /tmp/m 2>/dev/null; then leak "mount"; fi
if mount -t cgroup -o memory none /tmp/m 2>/dev/null; then leak "mount of a cgroup"; fi
if mount -t proc none /tmp/m 2>/dev/null; then leak "mount of proc"; fi
if unshare --mount true 2>/dev/null; then leak "a mount namespace"; fi
if nsenter --target 1 --mount true 2>/dev/null && [ -e "$HOST" ]; then leak "the namespace of process 1"; fi
for process in /proc/[0-9]*; do
  if [ -e "$process/root$HOST" ]; then leak "the root of $process"; fi
  if grep -qsa windlass "$process/cmdline" && ! grep -qsa "grep\|pod-holder\|leak" "$process/cmdline"; then leak "process $process of the host"; fi
done
# Volumes that are made of files are the node's to write.
for volume in /map /secret /labels /all /var/run/secrets/kubernetes.io/serviceaccount; do
  if ln -sfn / $volume/..data 2>/dev/null; then leak "$volume/..data"; fi
  if (echo x >$volume/new) 2>/dev/null; then leak "$volume can be written"; fi
  if mount -o remount,rw $volume 2>/dev/null; then leak "$volume can be remounted"; fi
done
echo done
"#;

#[test]
fn sandbox_shows_nothing_of_the_host_but_its_programs() {
    let Some(host) = Host::sandbox("reading") else {
        return;
    };
    host.folder.kubectl(&[
        "create",
        "configmap",
        "settings",
        "--from-literal=key=value",
    ]);
    host.folder.kubectl(&[
        "create",
        "secret",
        "generic",
        "keys",
        "--from-literal=key=value",
    ]);
    // A neighbour, with something in its volume that is its own.
    let keep = format!("echo {CANARY} > /own/file; sleep 1000");
    let volumes = json!([{"name": "own", "emptyDir": {}}]);
    let neighbour = script("main", &["own"], &keep);
    host.pod(
        "neighbour",
        json!({"containers": [neighbour], "volumes": volumes}),
    );
    let volumes = json!([
        {"name": "map", "configMap": {"name": "settings"}},
        {"name": "secret", "secret": {"secretName": "keys"}},
        {"name": "labels", "downwardAPI": {"items": [
            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"name": "all", "projected": {"sources": [{"configMap": {"name": "settings"}}]}},
    ]);
    for (name, shared, capabilities) in [
        ("plain", false, json!({})),
        // Of what it could trace, nothing has the host's root.
        ("shared", true, json!({"add": ["SYS_PTRACE"]})),
    ] {
        let mut main = script("main", &["map", "secret", "labels", "all"], ATTACK);
        main["env"] = json!([
            {"name": "HOST", "value": host.tree},
            {"name": "DATA", "value": host.folder.path().join(".windlass")},
            {"name": "CANARY", "value": CANARY},
        ]);
        // It knows the words that it looks for; the shell would find itself.
        main["command"] = json!(["sh", "-c", ATTACK.replace("windlass", "wind[l]ass")]);
        main["securityContext"] = json!({"capabilities": capabilities});
        let spec = json!({
            "restartPolicy": "Never", "shareProcessNamespace": shared,
            "containers": [main], "volumes": volumes,
        });
        host.pod(name, spec);
        let said = host.output(name);
        assert!(!said.contains("LEAK"), "{name}: {said}");
        assert!(said.ends_with("done\n"), "{name}: {said}");
    }
    host.check();
}

#[test]
fn programs_of_the_machine_run_in_a_sandbox() {
    let Some(host) = Host::sandbox("programs") else {
        return;
    };
    // What images are for: these are on every machine that these tests run on.
    let use_them = "python3 -c 'import ssl, json, socket; print(ssl.create_default_context().cert_store_stats()[\"x509_ca\"] > 0)'; \
         id -un; getent hosts localhost >/dev/null && echo names; date >/dev/null && echo time; \
         memcached --version | cut -d' ' -f1; etcd --version | head -1 | cut -d: -f1; \
         bash -c 'echo bash'; echo x | awk '{print $1}'; touch /usr/new /tmp/new && ls /usr/new";
    let mut main = script("main", &["tmp"], use_them);
    // Also where the cluster's own folder is on the host.
    main["volumeMounts"] = json!([{"name": "tmp", "mountPath": "/tmp"}]);
    let mut fixed = script("main", &[], "touch /usr/new 2>/dev/null || echo fixed");
    fixed["securityContext"] = json!({"readOnlyRootFilesystem": true});
    host.pod(
        "programs",
        json!({
            "restartPolicy": "Never", "containers": [main],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        }),
    );
    host.pod(
        "fixed",
        json!({"restartPolicy": "Never", "containers": [fixed]}),
    );
    assert_eq!(
        host.output("programs"),
        "True\nroot\nnames\ntime\nmemcached\netcd Version\nbash\nx\n/usr/new\n"
    );
    assert_eq!(host.output("fixed"), "fixed\n");
    assert!(!std::path::Path::new("/usr/new").exists());
    host.check();
}
