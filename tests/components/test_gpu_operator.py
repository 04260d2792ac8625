"""The GPU Operator: what it runs on which provider's nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from pydantic import ValidationError

from components.gpu_operator import GpuOperatorSettings
from components.gpu_operator.objects import chart, chart_values, cluster_policy
from components.gpu_operator.policy import ClusterPolicy
from components.gpu_operator.providers import STACKS
from gpuyard.errors import InputError
from gpuyard.manifests import Rendered
from tests.components.addons import assert_sound, level, lock, manifests, pod_security, rendered, with_addons


def objects(settings: dict[str, Any], provider: str = "eks", **changes: Any) -> list[Rendered]:
    cluster = {"provider": provider} | changes.pop("cluster", {})
    return rendered(with_addons({"gpu-operator": settings}, cluster=cluster, **changes), "gpu-operator")


def spec(driver: str, provider: str = "eks", **changes: Any) -> dict[str, Any]:
    return manifests(objects({"driver": driver}, provider, **changes), "ClusterPolicy")["cluster-policy"]["spec"]


@pytest.mark.parametrize(
    ("provider", "driver", "driver_on", "toolkit_on", "exporter_on"),
    [
        ("eks", "preinstalled", False, False, True),
        ("eks", "operator", True, True, True),
        ("gke", "preinstalled", False, True, True),
        ("gke", "operator", True, True, True),
        ("aks", "operator", True, True, True),
        ("oci", "preinstalled", False, False, True),
        ("on-prem", "preinstalled", False, True, True),
        ("on-prem", "operator", True, True, True),
        ("kubeadm", "preinstalled", False, True, True),
        ("kubeadm", "operator", True, True, True),
        ("kind", "preinstalled", False, False, False),
    ],
)
def test_what_runs_where(provider: str, driver: str, driver_on: bool, toolkit_on: bool, exporter_on: bool) -> None:
    found = spec(driver, provider)
    parts = ("driver", "toolkit", "dcgmExporter", "devicePlugin", "gfd")
    assert [found[part]["enabled"] for part in parts] == [driver_on, toolkit_on, exporter_on, True, True]
    for part in parts:
        # The operator wants an image in all three parts, or it does not start.
        assert ({"repository", "image", "version"} <= found[part].keys()) == found[part]["enabled"], part
    assert not any(found[part]["enabled"] for part in ("dcgm", "migManager", "nodeStatusExporter", "sandboxWorkloads"))


def test_the_matrix_above_is_complete() -> None:
    [mark] = [mark for mark in getattr(test_what_runs_where, "pytestmark", ()) if mark.name == "parametrize"]
    assert {(row[0], row[1]) for row in mark.args[1]} == set(STACKS)


@pytest.mark.parametrize(
    ("provider", "driver", "accepted"),
    [("aks", "preinstalled", "operator"), ("oci", "operator", "preinstalled"), ("kind", "operator", "preinstalled")],
)
def test_a_driver_that_does_not_fit_the_nodes(provider: str, driver: str, accepted: str) -> None:
    with pytest.raises(InputError) as error:
        objects({"driver": driver}, provider)
    assert str(error.value) == (
        "error  driver does not fit the provider\n"
        "  environment.yaml:102   addons.gpu-operator.driver\n"
        f"  {driver}; on {provider} nodes the driver is {accepted}\n"
        f"  fix: driver: {accepted}"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "driver\n  Field required"),
        ({"driver": "none"}, "driver\n  Input should be 'preinstalled' or 'operator'"),
        ({"driver": "operator", "driver-version": "latest"}, "driver-version\n  String should match pattern"),
        (
            {"driver": "preinstalled", "driver-version": "580.95.05"},
            "driver-version is for a driver that the operator installs; this one is preinstalled",
        ),
        (
            {"driver": "preinstalled", "auto-upgrade": False},
            "auto-upgrade is for a driver that the operator installs; this one is preinstalled",
        ),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as error:
        GpuOperatorSettings.model_validate(settings)
    assert message in str(error.value)


def test_google_keeps_everything_under_its_own_folder() -> None:
    found = spec("preinstalled", "gke")
    folder = "/home/kubernetes/bin/nvidia"
    assert found["hostPaths"] == {"rootFS": "/", "driverInstallDir": folder}
    assert found["toolkit"]["installDir"] == folder
    assert found["toolkit"]["env"] == [{"name": "RUNTIME_CONFIG_SOURCE", "value": "file"}]
    elsewhere = spec("operator", "on-prem")
    assert elsewhere["hostPaths"]["driverInstallDir"] == "/run/nvidia/driver"
    assert elsewhere["toolkit"]["installDir"] == "/usr/local/nvidia"
    assert "env" not in elsewhere["toolkit"]


@pytest.mark.parametrize(
    ("protect", "settings", "automatic"),
    [
        (True, {}, False),
        (False, {}, True),
        (True, {"auto-upgrade": True}, True),
        (False, {"auto-upgrade": False}, False),
    ],
)
def test_a_protected_cluster_does_not_roll_drivers_by_itself(
    protect: bool, settings: dict[str, Any], automatic: bool
) -> None:
    found = objects({"driver": "operator", **settings}, cluster={"protect": protect})
    policy = manifests(found, "ClusterPolicy")["cluster-policy"]["spec"]["driver"]["upgradePolicy"]
    assert policy["autoUpgrade"] is automatic
    assert policy["podDeletion"]["force"] is False
    assert "upgradePolicy" not in spec("preinstalled")["driver"]


def test_the_driver_version() -> None:
    assert spec("operator")["driver"]["version"] == "595.91.07"
    found = objects({"driver": "operator", "driver-version": "580.95.05"})
    assert manifests(found, "ClusterPolicy")["cluster-policy"]["spec"]["driver"]["version"] == "580.95.05"


def test_every_gpu_node_is_tolerated() -> None:
    taints = [{"key": "team", "value": "llm"}, {"key": "cloud.google.com/gke-queued", "effect": "NoExecute"}]
    pools = {
        "a100": {"machine": "p4d.24xlarge", "nodes": 8, "taints": taints},
        "h100": {"machine": "p5.48xlarge", "nodes": 8, "taints": taints[:1]},
        "cpu": {"machine": "m7i.8xlarge", "nodes": 3, "taints": [{"key": "system"}]},
    }
    expected = [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "llm", "effect": "NoSchedule"},
        {"key": "cloud.google.com/gke-queued", "operator": "Equal", "value": "", "effect": "NoExecute"},
    ]
    assert spec("preinstalled", pools=pools)["daemonsets"]["tolerations"] == expected
    discovery = chart_values(with_addons({}, pools=pools))["node-feature-discovery"]
    assert discovery["worker"]["tolerations"][1:] == expected


def test_images_come_through_the_mirror() -> None:
    found = spec("operator", cluster={"registry": "mirror.acme.com"})
    parts = [found[part] for part in ("driver", "toolkit", "devicePlugin", "gfd", "dcgmExporter", "validator")]
    assert {part["repository"].split("/")[0] for part in [*parts, found["driver"]["manager"]]} == {"mirror.acme.com"}
    values = chart_values(with_addons({}, cluster={"registry": "mirror.acme.com"}))
    assert values["operator"] == values["validator"] == {"repository": "mirror.acme.com/nvidia"}
    assert values["driver"] == {"manager": {"repository": "mirror.acme.com/nvidia/cloud-native"}}
    image = {"repository": "mirror.acme.com/nfd/node-feature-discovery"}
    assert values["node-feature-discovery"] == {"image": image}


def test_the_namespace_holds_pods_that_change_the_node() -> None:
    found = objects({"driver": "preinstalled"})
    assert_sound(found)
    namespaces = manifests(found, "Namespace")
    assert {name: pod_security(one) for name, one in namespaces.items()} == {"gpu-operator": level("privileged")}
    assert manifests(found, "ResourceQuota") == {}


def test_google_wants_a_quota_for_critical_pods() -> None:
    [quota] = manifests(objects({"driver": "preinstalled"}, "gke"), "ResourceQuota").values()
    assert quota["metadata"] == {"name": "critical-pods", "namespace": "gpu-operator"}
    # 32 + 8 + 4 + 20 + 3 nodes at most, one node's worth for the operator itself, 16 pods each.
    assert quota["spec"]["hard"] == {"pods": "1088"}
    [scope] = quota["spec"]["scopeSelector"]["matchExpressions"]
    assert scope["values"] == ["system-cluster-critical", "system-node-critical"]


def unknown(value: Any, declared: Any, path: str) -> list[str]:
    """Return the fields of a map, and of the maps inside it, that its TypedDict does not have."""
    if get_origin(declared) is list:
        return [field for item in value for field in unknown(item, get_args(declared)[0], f"{path}[]")]
    types = get_type_hints(declared) if is_typeddict(declared) else {}
    return [
        field
        for name, child in (value.items() if types else ())
        for field in (unknown(child, types[name], f"{path}.{name}") if name in types else [f"{path}.{name}"])
    ]


@pytest.mark.parametrize(("provider", "driver"), STACKS)
def test_no_field_is_written_that_does_not_exist(provider: str, driver: str) -> None:
    found = spec(driver, provider)
    assert unknown(found, ClusterPolicy, "spec") == []
    found["driver"] = {"enabled": True, "useOpenKernelModules": True}
    assert unknown(found, ClusterPolicy, "spec") == ["spec.driver.useOpenKernelModules"]


class ChartSource:
    """A chart that was expanded: remembers how."""

    def __init__(self) -> None:
        self.version, self.images = lock()["gpu-operator"].version, lock()["gpu-operator"].images
        self.asked: dict[str, Any] = {}

    def manifests(self, path: str) -> list[dict[str, Any]]:
        raise AssertionError("is a chart")

    def chart(self, **asked: Any) -> list[dict[str, Any]]:
        self.asked = asked
        return [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x", "namespace": "gpu-operator"}}]


def test_the_chart_brings_everything_but_the_policy() -> None:
    source = ChartSource()
    environment = with_addons({"gpu-operator": {"driver": "preinstalled"}})
    settings = GpuOperatorSettings(driver="preinstalled")
    assert [one.id for one in chart(environment, settings, source)] == ["ServiceAccount/gpu-operator/x"]
    assert source.asked == {
        "release": "gpu-operator",
        "namespace": "gpu-operator",
        "kubernetes": "1.34",
        "values": {"clusterPolicy": {"deployCR": False}},
    }


def test_images_are_the_locked_ones() -> None:
    found = spec("operator")
    parts = ("driver", "toolkit", "devicePlugin", "gfd", "dcgmExporter", "validator")
    images = [found[part] for part in parts] + [found["driver"]["manager"]]
    assert {f"{one['repository']}/{one['image']}": one["version"] for one in images} == lock()["gpu-operator"].images


def test_images_of_another_release_are_refused() -> None:
    settings = GpuOperatorSettings(driver="preinstalled")
    pin = replace(lock()["gpu-operator"], version="v27.1.0")
    with pytest.raises(InputError) as error:
        list(cluster_policy(with_addons({"gpu-operator": {"driver": "preinstalled"}}), settings, pin))
    assert str(error.value) == (
        "error  images of another release\n"
        "  gpuyard.lock.yaml   gpu-operator.images\n"
        f"  nvcr.io/nvidia/gpu-operator is {lock()['gpu-operator'].version}, and gpu-operator is v27.1.0\n"
        "  fix: take all of them from deployments/gpu-operator/values.yaml at the tag v27.1.0"
    )
