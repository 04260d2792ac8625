"""What the API server refuses although the schema allows it: one broken object for each rule."""

from typing import Any

import pytest

from gpuyard.manifests.schemas.schema import Schemas

LABEL = "a DNS-1123 label: lower-case letters, digits and '-', with a letter or digit first and last"
SUBDOMAIN = (
    "a DNS-1123 subdomain: lower-case letters, digits, '-' and '.', each part with a letter or digit at both ends"
)
SERVICE = "a DNS-1035 label: lower-case letters, digits and '-', with a letter first and no '-' last"
KEY = "a key: letters, digits, '-', '_' and '.', with a letter or digit first and last"
VALUE = "a label value: letters, digits, '-', '_' and '.', with a letter or digit first and last, or nothing"
PORT = "a port name: lower-case letters, digits and single '-', with at least one letter"
QUANTITY = "a quantity is a number with an optional unit: 500m, 4, 2.5, 100M, 64Gi, 2Ti"


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return Schemas("1.34", [])


def check(schemas: Schemas, manifest: dict[str, Any]) -> list[tuple[str, str]]:
    return [(violation.path, violation.message) for violation in schemas.check(manifest)]


def thing(kind: str, name: object = "a", api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    named = [{"name": f"c{index}", "image": "a", **container} for index, container in enumerate(containers)]
    return thing("Pod", spec={"containers": named, **spec})


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (thing("ConfigMap", "A.b"), f"`A.b` must be {SUBDOMAIN}"),
        (thing("ConfigMap", "a..b"), f"`a..b` must be {SUBDOMAIN}"),
        (thing("ConfigMap", ""), f"`` must be {SUBDOMAIN}"),
        (thing("ConfigMap", "a" * 254), "254 characters; at most 253"),
        (thing("Namespace", "a.b"), f"`a.b` must be {LABEL}"),
        (thing("Namespace", "a" * 64), "64 characters; at most 63"),
        (thing("Service", "1a"), f"`1a` must be {SERVICE}"),
        (
            thing("ClusterRole", "a/b", "rbac.authorization.k8s.io/v1"),
            "a name of an RBAC object is any text without / and %",
        ),
        (thing("ConfigMap", None), "required field is missing"),
    ],
)
def test_names(schemas: Schemas, manifest: dict[str, Any], message: str):
    assert check(schemas, manifest) == [("metadata.name", message)]


@pytest.mark.parametrize(
    "manifest",
    [
        thing("ConfigMap", "a.b-c.1"),
        thing("Service", "a-1"),
        thing("ClusterRole", "system:a:B", "rbac.authorization.k8s.io/v1"),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}},
    ],
)
def test_good_names(schemas: Schemas, manifest: dict[str, Any]):
    assert schemas.check(manifest) == []


def test_no_metadata(schemas: Schemas):
    assert check(schemas, {"apiVersion": "v1", "kind": "ConfigMap"}) == [("metadata", "required field is missing")]


def test_namespace(schemas: Schemas):
    manifest = thing("ConfigMap", metadata={"namespace": "Team"})
    assert check(schemas, manifest) == [("metadata.namespace", f"`Team` must be {LABEL}")]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("a b", "x", f"`a b` must be {KEY}"),
        ("a" * 64, "x", "64 characters; at most 63"),
        ("acme.com/", "x", f"`` must be {KEY}"),
        ("/a", "x", "the part of the key before / must be a DNS-1123 subdomain: ``"),
        ("Acme.com/a", "x", "the part of the key before / must be a DNS-1123 subdomain: `Acme.com`"),
        ("a", "x y", f"`x y` must be {VALUE}"),
        ("a", "-x", f"`-x` must be {VALUE}"),
        ("a", "x" * 64, "64 characters; at most 63"),
        ("a", 1, "1 is a number; must be text"),
    ],
)
def test_labels(schemas: Schemas, key: str, value: object, message: str):
    ((path, said),) = check(
        schemas, thing("ConfigMap", metadata={"labels": {key: value, "fine": "", "acme.com/b_1": "x.1"}})
    )
    assert path.startswith("metadata.labels")
    assert key in path
    assert said == message


def test_labels_without_a_schema(schemas: Schemas):
    manifest = thing("ClusterPolicy", "a", "nvidia.com/v1", metadata={"labels": {"a": 1}, "annotations": {"b": True}})
    assert check(schemas, manifest) == [
        ("metadata.annotations.b", "must be text; write it in quotes"),
        ("metadata.labels.a", "must be text; write it in quotes"),
    ]


def test_annotations(schemas: Schemas):
    manifest = thing("ConfigMap", metadata={"annotations": {"Acme.com/A": "any text: \n", "a/b/c": "x"}})
    assert check(schemas, manifest) == [
        ('metadata.annotations["a/b/c"]', "the part of the key before / must be a DNS-1123 subdomain: `a/b`")
    ]
    manifest = thing("ConfigMap", metadata={"annotations": {"a": "x" * 262144}})
    assert check(schemas, manifest) == [("metadata.annotations", "262145 bytes in all; at most 262144")]


def test_labels_of_a_pod_template(schemas: Schemas):
    template = {"metadata": {"labels": {"a": "x y"}}, "spec": {"containers": [], "restartPolicy": "Never"}}
    assert check(schemas, thing("Job", api_version="batch/v1", spec={"template": template})) == [
        ("spec.template.metadata.labels.a", f"`x y` must be {VALUE}")
    ]


@pytest.mark.parametrize(
    ("manifest", "path", "value"),
    [
        (pod({"resources": {"limits": {"cpu": "1 core"}}}), "spec.containers[0].resources.limits.cpu", "1 core"),
        (pod(initContainers=[{"name": "i", "image": "a", "resources": {"requests": {"memory": "1GiB"}}}]),
         "spec.initContainers[0].resources.requests.memory", "1GiB"),
        (thing("ResourceQuota", spec={"hard": {"requests.nvidia.com/gpu": "x"}}),
         'spec.hard["requests.nvidia.com/gpu"]', "x"),
        (thing("Queue", api_version="scheduling.volcano.sh/v1beta1", spec={"capability": {"cpu": "1,000"}}),
         "spec.capability.cpu", "1,000"),
        (thing("Queue", api_version="scheduling.volcano.sh/v1beta1", spec={"guarantee": {"resource": {"cpu": "a"}}}),
         "spec.guarantee.resource.cpu", "a"),
        (thing("PodGroup", api_version="scheduling.volcano.sh/v1beta1", spec={"minResources": {"memory": "1K"}}),
         "spec.minResources.memory", "1K"),
        (thing("LimitRange", spec={"limits": [{"type": "Container", "default": {"cpu": "--1"}}]}),
         "spec.limits[0].default.cpu", "--1"),
        (thing("PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOnce"],
         "resources": {"requests": {"storage": "10 Gi"}}}),
         "spec.resources.requests.storage", "10 Gi"),
    ],
)  # fmt: skip
def test_quantities(schemas: Schemas, manifest: dict[str, Any], path: str, value: str):
    assert check(schemas, manifest) == [(path, f"`{value}` is no quantity: {QUANTITY}")]


def test_amounts_below_zero_and_of_no_resource(schemas: Schemas):
    manifest = pod({"resources": {"limits": {"cpu": -1, "a/b/c": 1}}})
    assert check(schemas, manifest) == [
        ("spec.containers[0].resources.limits.cpu", "-1 is negative"),
        (
            'spec.containers[0].resources.limits["a/b/c"]',
            "the part of the key before / must be a DNS-1123 subdomain: `a/b`",
        ),
    ]


def test_pods_in_custom_resources(schemas: Schemas):
    container = {
        "name": "pytorch",
        "image": "train",
        "resources": {"limits": {"nvidia.com/gpu": "eight"}},
        "ports": [{"containerPort": 0}],
    }
    replica = {"replicas": 2, "template": {"metadata": {"labels": {"-": ""}}, "spec": {"containers": [container]}}}
    job = thing("PyTorchJob", "j", "kubeflow.org/v1", spec={"pytorchReplicaSpecs": {"Worker": replica}})
    assert check(schemas, job) == [
        ('spec.pytorchReplicaSpecs.Worker.template.metadata.labels["-"]', f"`-` must be {KEY}"),
        (
            "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].ports[0].containerPort",
            "0 is no port; a port is 1 to 65535",
        ),
        (
            'spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].resources.limits["nvidia.com/gpu"]',
            f"`eight` is no quantity: {QUANTITY}",
        ),
    ]


@pytest.mark.parametrize(
    ("ports", "path", "message"),
    [
        ([{"containerPort": 65536}], "[0].containerPort", "65536 is no port; a port is 1 to 65535"),
        ([{"containerPort": 80, "hostPort": -1}], "[0].hostPort", "-1 is no port; a port is 1 to 65535"),
        ([{"containerPort": 80, "name": "Web"}], "[0].name", f"`Web` must be {PORT}"),
        ([{"containerPort": 80, "name": "80"}], "[0].name", f"`80` must be {PORT}"),
        ([{"containerPort": 80, "name": "a--b"}], "[0].name", f"`a--b` must be {PORT}"),
        ([{"containerPort": 80, "name": "a-name-too-long-"[:15] + "x"}], "[0].name", "16 characters; at most 15"),
        (
            [{"containerPort": 80, "name": "web"}, {"containerPort": 81, "name": "web"}],
            "[1].name",
            "containers[0].ports[0] has this name too",
        ),
    ],
)
def test_container_ports(schemas: Schemas, ports: list[dict[str, Any]], path: str, message: str):
    assert check(schemas, pod({"ports": ports}, {"ports": [{"containerPort": 80, "hostPort": 0, "name": "web"}]})) == [
        (f"spec.containers[0].ports{path}", message)
    ]


def test_container_names(schemas: Schemas):
    manifest = pod({"name": "A"}, {"name": "init"}, initContainers=[{"name": "init", "image": "a"}])
    assert check(schemas, manifest) == [
        ("spec.containers[0].name", f"`A` must be {LABEL}"),
        ("spec.containers[1].name", "initContainers[0] has this name too"),
    ]


def test_service_ports(schemas: Schemas):
    manifest = thing("Service", spec={"ports": [{"port": 80, "name": "a"}, {"port": 70000, "name": "a"}]})
    assert check(schemas, manifest) == [
        ("spec.ports[1].name", "spec.ports[0] has this name too"),
        ("spec.ports[1].port", "70000 is no port; a port is 1 to 65535"),
    ]


def workload(selector: dict[str, Any], **labels: str) -> dict[str, Any]:
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    return thing("Deployment", api_version="apps/v1", spec={"selector": selector, "template": template})


def expression(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "app", "operator": operator, **({"values": [*values]} if values else {})}]}


@pytest.mark.parametrize(
    ("selector", "path", "message"),
    [
        ({"matchLabels": {"app": "api"}}, ".matchLabels.app", "selects app=api; the template has app=web"),
        ({"matchLabels": {"tier": "x"}}, ".matchLabels.tier", "selects tier=x; the template has no label tier"),
        ({}, "", "an empty selector is refused; select the labels of the template"),
        (expression("In", "a", "b"), ".matchExpressions[0]", "the template's labels do not match app In a, b"),
        (expression("NotIn", "web"), ".matchExpressions[0]", "the template's labels do not match app NotIn web"),
        (expression("DoesNotExist"), ".matchExpressions[0]", "the template's labels do not match app DoesNotExist"),
    ],
)
def test_selectors(schemas: Schemas, selector: dict[str, Any], path: str, message: str):
    assert check(schemas, workload(selector, app="web")) == [(f"spec.selector{path}", message)]


@pytest.mark.parametrize(
    "selector",
    [{"matchLabels": {"app": "web"}}, expression("In", "web"), expression("NotIn", "api"), expression("Exists")],
)
def test_good_selectors(schemas: Schemas, selector: dict[str, Any]):
    assert schemas.check(workload(selector, app="web", tier="front")) == []


@pytest.mark.parametrize(
    "spec", [None, [], "x", {"containers": "x"}, {"containers": [1, {"ports": {}, "resources": []}]}]
)
def test_shapes_that_only_the_schema_refuses(schemas: Schemas, spec: object):
    for kind in ("Pod", "Service", "Queue", "LimitRange", "Deployment"):
        manifest = thing(kind, api_version="acme.com/v1", spec=spec)
        assert schemas.check(manifest) == []
