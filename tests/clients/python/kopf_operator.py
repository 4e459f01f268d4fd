"""An operator written with kopf, run by `kopf run`, and what it is expected to do."""

import subprocess
import sys
import time

import kopf
from kubernetes import client, config

PATIENCE = 60
GROUP = "kopf.example.com"
PLACE = {"group": GROUP, "version": "v1", "namespace": "default", "plural": "notes"}


@kopf.on.create(GROUP, "v1", "notes")
def created(spec, name, namespace, **_):
    labels = {"note": name}
    body = {"metadata": {"name": f"note-{name}", "labels": labels}, "data": {"text": spec["text"]}}
    kopf.adopt(body)
    client.CoreV1Api().create_namespaced_config_map(namespace, body)
    return {"text": spec["text"]}


@kopf.on.update(GROUP, "v1", "notes", field="spec.text")
def updated(new, name, namespace, **_):
    client.CoreV1Api().patch_namespaced_config_map(f"note-{name}", namespace, {"data": {"text": new}})


@kopf.on.delete(GROUP, "v1", "notes")
def deleted(name, namespace, **_):
    client.CoreV1Api().create_namespaced_config_map(namespace, {"metadata": {"name": f"gone-{name}"}})


@kopf.timer(GROUP, "v1", "notes", interval=0.2)
def ticked(patch, status, **_):
    patch.status["ticks"] = status.get("ticks", 0) + 1


def until(what, happens):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if happens():
                print("ok", what)
                return
        except client.exceptions.ApiException as error:
            if error.status != 404:
                raise
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {PATIENCE} s")


def definition():
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"text": {"type": "string"}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {"metadata": {"name": f"notes.{GROUP}"}, "spec": {
        "group": GROUP, "scope": "Namespaced", "names": {"plural": "notes", "kind": "Note"}, "versions": [version]}}


def define():
    extensions = client.ApiextensionsV1Api()
    extensions.create_custom_resource_definition(definition())

    def established():
        made = extensions.read_custom_resource_definition(f"notes.{GROUP}")
        return any(c.type == "Established" and c.status == "True" for c in made.status.conditions or [])

    until("definition", established)


def note(text):
    return {"apiVersion": f"{GROUP}/v1", "kind": "Note", "metadata": {"name": "one"}, "spec": {"text": text}}


def text_of(name):
    return client.CoreV1Api().read_namespaced_config_map(name, "default").data["text"]


def main():
    config.load_kube_config()
    core, custom = client.CoreV1Api(), client.CustomObjectsApi()
    define()
    operator = subprocess.Popen([sys.executable, "-m", "kopf", "run", "--quiet", "--namespace", "default", "--standalone", __file__])
    try:
        custom.create_namespaced_custom_object(**PLACE, body=note("first"))
        until("created", lambda: text_of("note-one") == "first")
        until("timer", lambda: custom.get_namespaced_custom_object(**PLACE, name="one").get("status", {}).get("ticks", 0) > 2)
        custom.patch_namespaced_custom_object(**PLACE, name="one", body={"spec": {"text": "second"}})
        until("updated", lambda: text_of("note-one") == "second")
        custom.delete_namespaced_custom_object(**PLACE, name="one")
        until("deleted", lambda: core.read_namespaced_config_map("gone-one", "default"))
    finally:
        operator.terminate()
        operator.wait(PATIENCE)


if __name__ == "__main__":
    sys.exit(main())
