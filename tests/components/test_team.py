"""A team's namespace and everything in it."""

from __future__ import annotations

from typing import Any

import pytest

from components.team import teams
from gpuyard.errors import InputError
from gpuyard.manifests import Rendered
from gpuyard.model.environment import Environment
from tests.components.clusters import cluster


def rendered(environment: Environment) -> dict[str, Rendered]:
    return {f"{one.identity.kind} {one.identity.name}": one for one in teams(environment, None)}


def bundle(**team: Any) -> dict[str, Any]:
    return {name: one.manifest for name, one in rendered(cluster(team=team)).items()}


def test_the_objects_of_a_team() -> None:
    objects = rendered(cluster(team={"members": {"admin": ["leads"], "member": ["people"]}, "datasets": ["imagenet"]}))
    assert list(objects) == [
        "Namespace vision",
        "ResourceQuota quota",
        "LimitRange defaults",
        "ServiceAccount training",
        "Role training-member",
        "Role training-admin",
        "RoleBinding training-member",
        "RoleBinding training-admin",
        "NetworkPolicy default-deny",
        "NetworkPolicy allow-dns",
        "NetworkPolicy allow-within-jobs",
        "NetworkPolicy allow-metrics",
        "NetworkPolicy allow-storage",
        "NetworkPolicy allow-https",
        "Queue vision",
        "PersistentVolumeClaim dataset-imagenet",
    ]
    in_namespace = {one.identity.namespace for name, one in objects.items() if not name.startswith(("Namesp", "Queue"))}
    assert in_namespace == {"vision"}
    protected = [name for name, one in objects.items() if one.lifecycle.protect]
    assert protected == ["Namespace vision", "Queue vision", "PersistentVolumeClaim dataset-imagenet"]


def test_each_object_knows_the_line_that_caused_it() -> None:
    environment = cluster(team={"members": {"admin": ["leads"]}, "datasets": ["imagenet"]})
    objects = rendered(environment)
    assert str(objects["Namespace vision"].origin) == "teams/vision.yaml"
    quota = environment.origin("teams", "vision", "quota")
    assert objects["ResourceQuota quota"].origin == objects["Queue vision"].origin == quota
    assert objects["RoleBinding training-admin"].origin == environment.origin("teams", "vision", "members")
    assert objects["PersistentVolumeClaim dataset-imagenet"].origin == environment.origin("teams", "vision", "datasets")


@pytest.mark.parametrize(
    ("quota", "level"),
    [({"h100": 8, "l4": 4}, "privileged"), ({"l4": 4}, "baseline"), ({"h100": 0, "l4": 4}, "baseline")],
)
def test_only_a_fabric_makes_a_namespace_privileged(quota: dict[str, int], level: str) -> None:
    labels = bundle(quota=quota)["Namespace vision"]["metadata"]["labels"]
    assert {name.partition("/")[2]: text for name, text in labels.items() if name.startswith("pod-security")} == {
        "enforce": level,
        "enforce-version": "v1.34",
        "warn": "restricted",
        "warn-version": "v1.34",
        "audit": "restricted",
        "audit-version": "v1.34",
    }


def test_a_shared_queue_on_a_fabric_makes_the_namespace_privileged_too() -> None:
    environment = cluster(team={"quota": {"l4": 4}}, scheduling={"queues": {"overflow": {"quota": {"a100": 8}}}})
    labels = rendered(environment)["Namespace vision"].manifest["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


def test_quota_and_queue_are_one_number() -> None:
    objects = bundle(quota={"h100": 16, "l4": 4})
    # Two p5.48xlarge and one g6.12xlarge.
    assert objects["ResourceQuota quota"]["spec"]["hard"] == {
        "requests.cpu": "405",
        "requests.hugepages-2Mi": "10Gi",
        "requests.memory": "3944Gi",
        "limits.memory": "3944Gi",
        "requests.nvidia.com/gpu": "20",
        "requests.vpc.amazonaws.com/efa": "64",
    }
    capability = objects["Queue vision"]["spec"]["capability"]
    hard = objects["ResourceQuota quota"]["spec"]["hard"]
    assert {f"requests.{name}": amount for name, amount in capability.items()} == {
        name: amount for name, amount in hard.items() if name.startswith("requests.")
    }
    assert objects["Queue vision"]["spec"]["deserved"] == capability


def test_the_quota_has_room_for_shared_queues_and_the_queue_has_not() -> None:
    environment = cluster(team={"quota": {"l4": 4}}, scheduling={"queues": {"overflow": {"quota": {"l4": 8}}}})
    objects = rendered(environment)
    assert objects["ResourceQuota quota"].manifest["spec"]["hard"]["requests.nvidia.com/gpu"] == "12"
    assert objects["Queue vision"].manifest["spec"]["capability"]["nvidia.com/gpu"] == "4"


def test_the_share_is_the_weight() -> None:
    assert bundle(share=7)["Queue vision"]["spec"]["weight"] == 7


def test_without_volcano_a_team_has_no_queue_and_members_see_no_pod_groups() -> None:
    objects = rendered(cluster(scheduling={"gang": "none"}))
    assert "Queue vision" not in objects
    groups = [rule["apiGroups"] for rule in objects["Role training-member"].manifest["rules"]]
    assert ["scheduling.volcano.sh"] not in groups


def test_a_container_that_asks_for_nothing_is_admitted_under_the_quota() -> None:
    assert bundle()["LimitRange defaults"]["spec"]["limits"] == [
        {"type": "Container", "default": {"memory": "1Gi"}, "defaultRequest": {"cpu": "100m", "memory": "1Gi"}}
    ]


def test_training_pods_have_no_token() -> None:
    assert bundle()["ServiceAccount training"]["automountServiceAccountToken"] is False


def test_members_run_jobs_and_admins_change_them() -> None:
    objects = bundle()
    member, admin = objects["Role training-member"]["rules"], objects["Role training-admin"]["rules"]
    assert member[0] == {
        "apiGroups": ["kubeflow.org"],
        "resources": ["pytorchjobs", "tfjobs"],
        "verbs": ["get", "list", "watch", "create", "delete"],
    }
    assert admin[0]["verbs"] == ["update", "patch"]


def test_nobody_reads_secrets_escalates_or_has_a_wildcard() -> None:
    objects = bundle()
    for role in ("Role training-member", "Role training-admin"):
        for rule in objects[role]["rules"]:
            assert "secrets" not in rule["resources"]
            assert not {"*", "escalate", "bind", "impersonate"} & {
                *rule["verbs"],
                *rule["resources"],
                *rule["apiGroups"],
            }


def test_admins_are_members_too() -> None:
    objects = bundle(members={"admin": ["leads"], "member": ["people", "leads"]})
    assert [subject["name"] for subject in objects["RoleBinding training-member"]["subjects"]] == ["people", "leads"]
    assert objects["RoleBinding training-admin"]["subjects"] == [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "leads"}
    ]


def test_a_role_that_nobody_has_is_not_bound() -> None:
    assert "RoleBinding training-admin" not in bundle(members={"member": ["people"]})


def test_everything_is_closed_first() -> None:
    assert bundle()["NetworkPolicy default-deny"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_pods_of_jobs_reach_each_other_on_every_port() -> None:
    selector = {"matchExpressions": [{"key": "training.kubeflow.org/operator-name", "operator": "Exists"}]}
    assert bundle()["NetworkPolicy allow-within-jobs"]["spec"] == {
        "podSelector": selector,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [{"podSelector": selector}]}],
        "egress": [{"to": [{"podSelector": selector}]}],
    }


@pytest.mark.parametrize(
    ("policy", "ports"),
    [
        ("allow-dns", [("UDP", 53, None), ("TCP", 53, None)]),
        ("allow-storage", [("TCP", 2049, None), ("TCP", 988, None), ("TCP", 1018, 1023)]),
        ("allow-https", [("TCP", 443, None)]),
    ],
)
def test_ways_out(policy: str, ports: list[tuple[str, int, int | None]]) -> None:
    spec = bundle()[f"NetworkPolicy {policy}"]["spec"]
    (rule,) = spec["egress"]
    assert [(port["protocol"], port["port"], port.get("endPort")) for port in rule["ports"]] == ports
    assert spec["policyTypes"] == ["Egress"]


def test_prometheus_comes_in() -> None:
    spec = bundle()["NetworkPolicy allow-metrics"]["spec"]
    namespace = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    assert spec["ingress"] == [{"from": [namespace]}]


def test_a_dataset_is_a_volume_that_is_never_deleted_with_the_render() -> None:
    claim = rendered(cluster(team={"datasets": ["imagenet"]}))["PersistentVolumeClaim dataset-imagenet"]
    assert claim.manifest["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "shared",
        "resources": {"requests": {"storage": "2400Gi"}},
    }
    assert claim.layer == "platform"
    assert (claim.lifecycle.retain, claim.lifecycle.replace, claim.lifecycle.wait) == (True, "never", False)


def test_a_dataset_on_a_disk_is_for_one_node() -> None:
    environment = cluster(
        team={"datasets": ["small"]},
        storage={"datasets": {"small": {"class": "block", "size": "10Gi"}}},
        cluster={"protect": False},
    )
    claim = rendered(environment)["PersistentVolumeClaim dataset-small"]
    assert claim.manifest["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert not claim.lifecycle.protect


def test_a_team_without_quota_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        bundle(quota={})
    assert str(caught.value) == (
        "error  quota of nothing\n"
        "  teams/vision.yaml:2   quota\n"
        "  queue vision would be without a limit: Volcano reads zero as unlimited\n"
        "  fix: give it at least one GPU of a pool, or CPUs of a pool without GPUs"
    )


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("default", "default: Kubernetes has a namespace of its own called so"),
        ("kube-system", "kube-system: Kubernetes has a namespace of its own called so"),
        ("root", "root: Volcano makes queues called default and root itself"),
    ],
)
def test_names_that_are_taken(name: str, detail: str) -> None:
    with pytest.raises(InputError) as caught:
        list(teams(cluster(team={"name": name}), None))
    (problem,) = caught.value.problems
    assert (problem.title, str(problem.origin), problem.field, problem.detail) == (
        "reserved name",
        f"teams/{name}.yaml:1",
        "name",
        detail,
    )
