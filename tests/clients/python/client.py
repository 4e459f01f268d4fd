"""A program as people write them with the Python client: typed, watched, dynamic, custom objects."""

import sys
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

NAMESPACE = "python"
GROUP = "python.example.com"
PATIENCE = 30


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def refused(code, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except ApiException as error:
        expect(error.status == code, f"{error.status} instead of {code}: {error.body}")
    else:
        raise AssertionError(f"{call.__name__} was not refused")


def objects(api):
    core = client.CoreV1Api(api)
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
    wanted = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="life", labels={"app": "python"}), data={"key": "1"})
    made = core.create_namespaced_config_map(NAMESPACE, wanted)
    expect(made.metadata.uid and made.data == {"key": "1"}, made)
    refused(409, core.create_namespaced_config_map, NAMESPACE, wanted)
    made.data["key"] = "2"
    replaced = core.replace_namespaced_config_map("life", NAMESPACE, made)
    expect(replaced.data == {"key": "2"}, replaced)
    refused(409, core.replace_namespaced_config_map, "life", NAMESPACE, made)
    patched = core.patch_namespaced_config_map("life", NAMESPACE, {"data": {"more": "yes"}})
    expect(patched.data == {"key": "2", "more": "yes"}, patched)
    listed = core.list_namespaced_config_map(NAMESPACE, label_selector="app=python", field_selector="metadata.name=life")
    expect([item.metadata.name for item in listed.items] == ["life"], listed)
    pages, proceed = [], None
    for name in ("a", "b", "c"):
        core.create_namespaced_secret(NAMESPACE, client.V1Secret(metadata=client.V1ObjectMeta(name=name), string_data={"n": name}))
    while proceed != "":
        page = core.list_namespaced_secret(NAMESPACE, limit=2, _continue=proceed)
        pages.append(len(page.items))
        proceed = page.metadata._continue or ""
    expect(pages == [2, 1], pages)
    core.delete_namespaced_config_map("life", NAMESPACE, body=client.V1DeleteOptions(propagation_policy="Background"))
    refused(404, core.read_namespaced_config_map, "life", NAMESPACE)


def workloads(api):
    apps = client.AppsV1Api(api)
    labels = {"app": "web"}
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels),
        spec=client.V1PodSpec(containers=[client.V1Container(name="web", image="busybox")]))
    spec = client.V1DeploymentSpec(replicas=1, selector=client.V1LabelSelector(match_labels=labels), template=template)
    made = apps.create_namespaced_deployment(NAMESPACE, client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec))
    expect(made.spec.strategy.type == "RollingUpdate", made)
    scaled = apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 0}})
    expect(not scaled.spec.replicas, scaled)
    status = apps.read_namespaced_deployment_status("web", NAMESPACE)
    expect(status.metadata.generation == 2, status.metadata)
    apps.delete_namespaced_deployment("web", NAMESPACE)


def watched(api):
    core = client.CoreV1Api(api)
    version = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version

    def write():
        made = core.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="seen"), data={"a": "1"}))
        made.data["a"] = "2"
        core.replace_namespaced_config_map("seen", NAMESPACE, made)
        core.delete_namespaced_config_map("seen", NAMESPACE)

    writer = threading.Thread(target=write)
    writer.start()
    stream, seen = watch.Watch(), []
    for event in stream.stream(core.list_namespaced_config_map, NAMESPACE, resource_version=version, timeout_seconds=PATIENCE):
        seen.append((event["type"], event["object"].data["a"]))
        if event["type"] == "DELETED":
            stream.stop()
    writer.join()
    expect(seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")], seen)


def custom_objects(api):
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 0}}},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}}}
    definition = client.V1CustomResourceDefinition(
        api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition",
        metadata=client.V1ObjectMeta(name=f"boxes.{GROUP}"),
        spec=client.V1CustomResourceDefinitionSpec(
            group=GROUP, scope="Namespaced",
            names=client.V1CustomResourceDefinitionNames(plural="boxes", singular="box", kind="Box"),
            versions=[client.V1CustomResourceDefinitionVersion(
                name="v1", served=True, storage=True,
                subresources=client.V1CustomResourceSubresources(status={}),
                schema=client.V1CustomResourceValidation(open_apiv3_schema=client.V1JSONSchemaProps(**_snake(schema))))]))
    extensions = client.ApiextensionsV1Api(api)
    extensions.create_custom_resource_definition(definition)
    for event in watch.Watch().stream(extensions.list_custom_resource_definition, timeout_seconds=PATIENCE):
        conditions = event["object"].status.conditions or []
        if event["object"].metadata.name == f"boxes.{GROUP}" and any(c.type == "Established" and c.status == "True" for c in conditions):
            break
    boxes = client.CustomObjectsApi(api)
    place = {"group": GROUP, "version": "v1", "namespace": NAMESPACE, "plural": "boxes"}
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Box", "metadata": {"name": "one"}, "spec": {"size": 1}}
    made = boxes.create_namespaced_custom_object(**place, body=body)
    expect(made["metadata"]["generation"] == 1, made)
    refused(422, boxes.create_namespaced_custom_object, **place, body={**body, "metadata": {"name": "bad"}, "spec": {"size": -1}})
    patched = boxes.patch_namespaced_custom_object(**place, name="one", body={"spec": {"size": 2}})
    expect(patched["spec"]["size"] == 2 and patched["metadata"]["generation"] == 2, patched)
    told = boxes.patch_namespaced_custom_object_status(**place, name="one", body={"status": {"ready": True}})
    expect(told["status"] == {"ready": True} and told["metadata"]["generation"] == 2, told)
    expect(len(boxes.list_namespaced_custom_object(**place)["items"]) == 1, "one box is listed")


def _snake(schema):
    """The model takes attributes; only those used above are needed."""
    names = {"properties": "properties", "type": "type", "required": "required", "minimum": "minimum"}
    out = {names[key]: value for key, value in schema.items()}
    if "properties" in out:
        out["properties"] = {key: client.V1JSONSchemaProps(**_snake(value)) for key, value in out["properties"].items()}
    return out


def dynamically(api):
    everything = dynamic.DynamicClient(api)
    boxes = everything.resources.get(api_version=f"{GROUP}/v1", kind="Box")
    found = boxes.get(name="one", namespace=NAMESPACE)
    expect(found.spec.size == 2, found)
    found.spec.size = 3
    expect(boxes.replace(body=found.to_dict(), namespace=NAMESPACE).spec.size == 3, "replaced")
    deployments = everything.resources.get(api_version="apps/v1", kind="Deployment")
    expect(deployments.namespaced, "deployments have namespaces")
    maps = everything.resources.get(api_version="v1", kind="ConfigMap")
    applied = maps.server_side_apply(
        body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "b"}},
        namespace=NAMESPACE, field_manager="python")
    expect(applied.metadata.managedFields[0].operation == "Apply", applied)
    boxes.delete(name="one", namespace=NAMESPACE)
    refused(404, boxes.get, name="one", namespace=NAMESPACE)


def reviews(api):
    access = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(
        resource_attributes=client.V1ResourceAttributes(verb="list", resource="pods")))
    expect(client.AuthorizationV1Api(api).create_self_subject_access_review(access).status.allowed, "may list pods")
    core = client.CoreV1Api(api)
    core.create_namespaced_service_account(NAMESPACE, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot")))
    token = core.create_namespaced_service_account_token(
        "robot", NAMESPACE, client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=700)))
    expect(token.status.token, "a token is given")
    lease = client.V1Lease(metadata=client.V1ObjectMeta(name="leader"), spec=client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=10))
    expect(client.CoordinationV1Api(api).create_namespaced_lease(NAMESPACE, lease).spec.holder_identity == "me", "a lease is held")
    expect(client.VersionApi(api).get_code().major == "1", "it has a version")


def main():
    api = config.new_client_from_config()
    for step in (objects, workloads, watched, custom_objects, dynamically, reviews):
        step(api)
        print("ok", step.__name__)


if __name__ == "__main__":
    sys.exit(main())
