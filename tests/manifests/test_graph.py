"""What needs what, and the order that follows."""

from typing import Any

import pytest

from gpuyard.errors import InputError, Origin
from gpuyard.manifests import Rendered, declare
from gpuyard.manifests.graph import Graph
from gpuyard.manifests.pods import pod_specs


def thing(kind: str, name: str = "a", namespace: str = "", api_version: str = "v1", **fields: Any) -> Rendered:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return declare({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def deployment(name: str, namespace: str, labels: dict[str, str] | None = None, **pod: Any) -> Rendered:
    template = {"metadata": {"labels": labels or {}}, "spec": {"containers": [{"name": "a"}], **pod}}
    return thing("Deployment", name, namespace, "apps/v1", spec={"template": template})


def crd(kind: str, plural: str, group: str = "acme.com") -> Rendered:
    spec = {"group": group, "names": {"kind": kind, "plural": plural}}
    return thing("CustomResourceDefinition", f"{plural}.{group}", "", "apiextensions.k8s.io/v1", spec=spec)


def webhook(plural: str, service: str, namespace: str) -> Rendered:
    return configuration("guard", {"apiGroups": ["acme.com"], "resources": [plural]}, service, namespace)


def configuration(name: str, rule: dict[str, Any], service: str, namespace: str) -> Rendered:
    hook = {"clientConfig": {"service": {"name": service, "namespace": namespace}}, "rules": [rule]}
    return thing("ValidatingWebhookConfiguration", name, "", "admissionregistration.k8s.io/v1", webhooks=[hook])


def edges(*objects: Rendered) -> list[str]:
    return [f"{edge.dependent} {edge.reason} {edge.dependency}" for edge in Graph(objects).edges]


CONTAINER = {
    "name": "a",
    "env": [
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "token", "key": "k"}}},
        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "k"}}},
        {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "D", "value": "d"},
    ],
}


@pytest.mark.parametrize(
    ("dependent", "dependency", "edge"),
    [
        (thing("ConfigMap", "a", "t"), thing("Namespace", "t"), "ConfigMap t/a lives in the namespace Namespace t"),
        (thing("Switch", "a", "t", "acme.com/v1"), crd("Switch", "switches"),
         "Switch t/a is of the kind CustomResourceDefinition switches.acme.com"),
        (deployment("a", "t", serviceAccountName="s"), thing("ServiceAccount", "s", "t"),
         "Deployment t/a runs as ServiceAccount t/s"),
        (deployment("a", "t", priorityClassName="p"), thing("PriorityClass", "p"),
         "Deployment t/a has the priority PriorityClass p"),
        (deployment("a", "t", imagePullSecrets=[{"name": "s"}]), thing("Secret", "s", "t"),
         "Deployment t/a pulls images with Secret t/s"),
        (deployment("a", "t", volumes=[{"name": "v", "configMap": {"name": "c"}}]), thing("ConfigMap", "c", "t"),
         "Deployment t/a mounts ConfigMap t/c"),
        (deployment("a", "t", volumes=[{"name": "v", "secret": {"secretName": "s"}}]), thing("Secret", "s", "t"),
         "Deployment t/a mounts Secret t/s"),
        (deployment("a", "t", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
         thing("PersistentVolumeClaim", "c", "t"), "Deployment t/a mounts PersistentVolumeClaim t/c"),
        (deployment("a", "t", containers=[CONTAINER]), thing("Secret", "token", "t"),
         "Deployment t/a reads Secret t/token"),
        (deployment("a", "t", initContainers=[CONTAINER]), thing("ConfigMap", "config", "t"),
         "Deployment t/a reads ConfigMap t/config"),
        (thing("PersistentVolumeClaim", "c", "t", spec={"storageClassName": "s"}), thing("StorageClass", "s"),
         "PersistentVolumeClaim t/c is of the class StorageClass s"),
        (thing("Queue", "q", spec={"parent": "root"}), thing("Queue", "root"), "Queue q is below Queue root"),
        (thing("RoleBinding", "b", "t", roleRef={"kind": "Role", "name": "r"}), thing("Role", "r", "t"),
         "RoleBinding t/b grants Role t/r"),
        (thing("RoleBinding", "b", "t", roleRef={"kind": "ClusterRole", "name": "r"}), thing("ClusterRole", "r"),
         "RoleBinding t/b grants ClusterRole r"),
        (thing("ClusterRoleBinding", "b", roleRef={"kind": "ClusterRole", "name": "r"},
               subjects=[{"kind": "ServiceAccount", "name": "s", "namespace": "t"}, {"kind": "Group", "name": "g"}]),
         thing("ServiceAccount", "s", "t"), "ClusterRoleBinding b is for ServiceAccount t/s"),
        (thing("PyTorchJob", "j", "t", spec={"runPolicy": {"schedulingPolicy": {"queue": "q"}}}), thing("Queue", "q"),
         "PyTorchJob t/j waits in the queue Queue q"),
        (thing("TFJob", "j", "t", spec={"runPolicy": {"schedulingPolicy": {"priorityClass": "p"}}}),
         thing("PriorityClass", "p"), "TFJob t/j has the priority PriorityClass p"),
        (webhook("switches", "hook", "sys"), thing("Service", "hook", "sys", spec={}),
         "ValidatingWebhookConfiguration guard calls Service sys/hook"),
    ],
)  # fmt: skip
def test_edges(dependent: Rendered, dependency: Rendered, edge: str):
    assert edges(dependent, dependency) == [edge]
    assert edges(dependent) == []
    assert Graph([dependent, dependency]).order() == [dependency, dependent]
    assert Graph([dependency, dependent]).order() == [dependency, dependent]


def test_objects_wait_for_the_webhook_that_checks_them():
    service = thing("Service", "hook", "sys", spec={"selector": {"app": "hook"}})
    behind = deployment("hook", "sys", {"app": "hook", "tier": "x"})
    other = deployment("other", "sys", {"app": "other"})
    guard = webhook("switches", "hook", "sys")
    switch = thing("Switch", "s", "", "acme.com/v1").of("network")
    definition = crd("Switch", "switches")
    assert edges(service, behind, other, guard, switch, definition) == [
        "Switch s is checked by the webhook ValidatingWebhookConfiguration guard",
        "Switch s is of the kind CustomResourceDefinition switches.acme.com",
        "Switch s is checked by the webhook Deployment sys/hook",
        "ValidatingWebhookConfiguration guard calls Service sys/hook",
    ]
    # The component that brings the webhook cannot wait for it.
    assert "Switch s is checked by the webhook Deployment sys/hook" not in edges(behind, guard, switch.of(""), service)


def guarded(*objects: Rendered) -> list[str]:
    """Return the edges that come from webhooks."""
    reasons = ("is checked by", "waits for a server", "is converted by")
    return [edge for edge in edges(*objects) if any(reason in edge for reason in reasons)]


SWITCHES = crd("Switch", "switches")
SERVICE = thing("Service", "hook", "sys", spec={"selector": {"app": "hook"}}).of("network")
SERVER = deployment("hook", "sys", {"app": "hook"}, serviceAccountName="hook").of("network")


def test_who_waits_for_a_server_waits_for_all_its_configurations():
    # A server that listens only once it has every configuration would never be ready if one of them came later.
    other = configuration("a-later-one", {"apiGroups": ["acme.com"], "resources": ["lamps"]}, "hook", "sys").of(
        "network"
    )
    switch = thing("Switch", "s", "", "acme.com/v1").of("team")
    objects = [SERVICE, SERVER, webhook("switches", "hook", "sys").of("network"), other, switch, SWITCHES]
    assert guarded(*objects) == [
        "Switch s waits for a server that listens once it has ValidatingWebhookConfiguration a-later-one",
        "Switch s is checked by the webhook ValidatingWebhookConfiguration guard",
        "Switch s is checked by the webhook Deployment sys/hook",
    ]
    order = [str(rendered.identity) for rendered in Graph(objects).order()]
    assert order[-1] == "Switch s"


@pytest.mark.parametrize(
    ("rule", "is_guarded"),
    [
        ({"apiGroups": ["acme.com"], "resources": ["switches"]}, True),
        ({"apiGroups": ["acme.com"], "resources": ["*"]}, True),
        ({"apiGroups": ["*"], "resources": ["*/*"]}, True),
        ({"apiGroups": ["*"], "resources": ["switches/*"]}, True),
        # Of something else, or of a part of the object that its creation does not touch.
        ({"apiGroups": ["acme.com"], "resources": ["lamps"]}, False),
        ({"apiGroups": [""], "resources": ["switches"]}, False),
        ({"apiGroups": ["acme.com"], "resources": ["switches/status"]}, False),
    ],
)
def test_which_rules_guard_an_object(rule: dict[str, Any], is_guarded: bool):
    switch = thing("Switch", "s", "", "acme.com/v1").of("team")
    assert bool(guarded(SERVICE, SERVER, configuration("guard", rule, "hook", "sys"), switch, SWITCHES)) is is_guarded


def test_what_a_webhook_needs_itself_does_not_wait_for_it():
    everything = configuration("guard", {"apiGroups": ["*"], "resources": ["*"]}, "hook", "sys").of("network")
    needed = [thing("Namespace", "sys").of("base"), thing("ServiceAccount", "hook", "sys").of("base")]
    role = thing("Role", "hook", "sys").of("network")
    definition = crd("Switch", "switches").of("network")
    switch = thing("Switch", "s", "", "acme.com/v1").of("network")
    other = thing("ConfigMap", "c", "sys").of("team")
    waiting = {
        edge.split(" is ")[0] for edge in guarded(SERVICE, SERVER, everything, *needed, role, definition, switch, other)
    }
    # Not its account and namespace, whoever makes them, nor a role of its own component, nor an earlier layer.
    assert waiting == {"ConfigMap sys/c", "Switch s"}
    objects = [SERVICE, SERVER, everything, *needed, role, definition, switch, other]
    assert len(Graph(objects).order()) == len(objects)


def test_what_runs_as_an_account_waits_for_the_rights_of_the_account():
    account = thing("ServiceAccount", "s", "t")
    subjects = [{"kind": "ServiceAccount", "name": "s", "namespace": "t"}]
    role = thing("ClusterRole", "r")
    binding = thing("ClusterRoleBinding", "b", roleRef={"kind": "ClusterRole", "name": "r"}, subjects=subjects)
    server = deployment("a", "t", serviceAccountName="s")
    assert "Deployment t/a has the rights of ClusterRoleBinding b" in edges(server, account, role, binding)
    order = [str(rendered.identity) for rendered in Graph([server, binding, role, account]).order()]
    assert order == ["ServiceAccount t/s", "ClusterRole r", "ClusterRoleBinding b", "Deployment t/a"]


def test_objects_of_a_kind_with_versions_wait_for_what_converts_them():
    definition = crd("Switch", "switches")
    service = {"name": "hook", "namespace": "sys"}
    definition.manifest["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"service": service}},
    }
    assert guarded(SERVICE, SERVER, definition, thing("Switch", "s", "", "acme.com/v1")) == [
        "Switch s is converted by Deployment sys/hook"
    ]


def test_two_kinds_of_one_name_are_both_waited_for():
    job = thing("TFJob", "j", "t", spec={"runPolicy": {"schedulingPolicy": {"queue": "q"}}})
    queues = [thing("Queue", "q", "", f"{group}/v1") for group in ("scheduling.run.ai", "scheduling.volcano.sh")]
    assert edges(job, *queues) == ["TFJob t/j waits in the queue Queue q"] * 2


def test_order_without_references():
    objects = [
        declare({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job", "namespace": "t"}}, layer="jobs"),
        deployment("a", "t"),
        thing("Switch", "z", "t", "acme.com/v1"),
        thing("Service", "b", "t", spec={}),
        thing("Service", "a", "t", spec={}),
        thing("Namespace", "z"),
        crd("Other", "others"),
    ]
    expected = [
        "CustomResourceDefinition others.acme.com",
        "Namespace z",
        "Service t/a",
        "Service t/b",
        "Deployment t/a",
        "Switch t/z",
        "ConfigMap t/job",
    ]
    assert [str(rendered.identity) for rendered in Graph(objects).order()] == expected
    assert [str(rendered.identity) for rendered in Graph(reversed(objects)).order()] == expected


def test_a_long_chain():
    count = 3000
    chain = [thing("Queue", f"q{n}", spec={"parent": f"q{n + 1}"}) for n in range(count)]
    assert [rendered.identity.name for rendered in Graph(chain).order()] == [f"q{n}" for n in reversed(range(count))]


def test_a_cycle_is_shown():
    one = thing("Queue", "one", spec={"parent": "two"})
    two = thing("Queue", "two", spec={"parent": "three"})
    three = thing("Queue", "three", spec={"parent": "one"})
    with pytest.raises(InputError) as caught:
        Graph([one, two, three]).order()
    assert str(caught.value) == (
        "error  objects need each other\n  Queue one -> Queue two -> Queue three -> Queue one\n"
        "  fix: take one of these references away"
    )


def test_two_objects_with_one_name():
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "t"}, "spec": {}}
    older = declare({**manifest, "apiVersion": "apps/v1beta1"}).of("first")
    newer = declare(manifest, origin=Origin("prod/environment.yaml", 4)).of("second")
    with pytest.raises(InputError) as caught:
        Graph([older, newer])
    assert str(caught.value) == (
        "error  two objects with one name\n  prod/environment.yaml:4   Deployment t/a\n"
        "  made by first (built in) and second (prod/environment.yaml:4)"
    )


def test_pods_are_found_at_any_depth():
    pod = {"containers": [{"name": "a"}]}
    assert [*pod_specs(thing("Pod", spec=pod).manifest)] == [(("spec",), pod)]
    cron = thing("CronJob", spec={"jobTemplate": {"spec": {"template": {"spec": pod}}}})
    assert [*pod_specs(cron.manifest)] == [(("spec", "jobTemplate", "spec", "template", "spec"), pod)]
    volcano = thing("Job", spec={"tasks": [{"template": {"spec": pod}}, {"template": {"spec": pod}}]})
    assert [path for path, _ in pod_specs(volcano.manifest)] == [
        ("spec", "tasks", 0, "template", "spec"),
        ("spec", "tasks", 1, "template", "spec"),
    ]
    assert [*pod_specs(thing("ConfigMap", data={"template": "x"}).manifest)] == []
    assert [*pod_specs(crd("Switch", "switches").manifest)] == []


def test_null_is_the_same_as_left_out():
    pod = deployment("a", "t", volumes=None, imagePullSecrets=None, initContainers=None, containers=[{"env": None}])
    assert edges(pod) == []


def test_webhooks_on_built_in_kinds():
    rule = {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"]}
    guard = thing("ValidatingWebhookConfiguration", "guard", webhooks=[{"rules": [rule]}])
    policy = thing("NetworkPolicy", "p", "t", "networking.k8s.io/v1").of("team")
    assert edges(guard, policy) == ["NetworkPolicy t/p is checked by the webhook ValidatingWebhookConfiguration guard"]
