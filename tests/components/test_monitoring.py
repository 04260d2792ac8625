"""Monitoring: Prometheus, what it scrapes, and alerts that can fire."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from components.monitoring import MonitoringSettings
from components.monitoring.alerts import ALERTS, Alert, alerts, new_xid, prometheus_rules
from components.monitoring.monitors import service_monitors
from components.monitoring.prometheus import prometheus
from components.monitoring.targets import CONTROLLERS, OPERATOR, SCHEDULER, TARGETS, Target, targets
from gpuyard.errors import InputError
from tests.components.addons import (
    assert_restricted,
    assert_sound,
    code,
    level,
    lock,
    manifests,
    pod_security,
    rendered,
    with_addons,
)
from tests.components.clusters import cluster

EVERYTHING: dict[str, dict[str, Any]] = {
    "gpu-operator": {"driver": "preinstalled"},
    "monitoring": {},
    "training-operator": {},
    "volcano": {},
}


def prometheus_spec(settings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    environment = with_addons({"monitoring": settings}, **changes)
    objects = prometheus(environment, MonitoringSettings.model_validate(settings), lock()["prometheus-operator"])
    return manifests(objects, "Prometheus")["platform"]["spec"]


def test_retention_by_time_and_by_size() -> None:
    spec = prometheus_spec({"retention": "90d", "size": "1Ti"})
    assert (spec["retention"], spec["retentionSize"]) == ("90d", "870GiB")
    claim = spec["storage"]["volumeClaimTemplate"]["spec"]
    assert claim == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Ti"}}}
    assert prometheus_spec({})["retentionSize"] == "170GiB"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"retention": "30 days"}, "retention\n  Value error, a duration is written as 30s, 10m, 12h or 30d"),
        ({"retention": "1h"}, "retention\n  Value error, at least 2h"),
        ({"size": "1Gi"}, "size\n  Value error, at least 10Gi"),
        ({"size": "big"}, "size\n  Value error, a quantity is a number with an optional unit"),
        ({"retention-size": "1Gi"}, "retention-size\n  Extra inputs are not permitted"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as error:
        MonitoringSettings.model_validate(settings)
    assert message in str(error.value)


def test_the_volume_is_of_the_class_that_is_named() -> None:
    spec = prometheus_spec({"storage-class": "block"})
    assert spec["storage"]["volumeClaimTemplate"]["spec"]["storageClassName"] == "block"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "blok",
            "error  no such storage class\n"
            "  environment.yaml:102   addons.monitoring.storage-class\n"
            "  blok; storage.classes has block, shared\n"
            "  fix: did you mean block?",
        ),
        (
            "shared",
            "error  storage class does not fit\n"
            "  environment.yaml:102   addons.monitoring.storage-class\n"
            "  shared is of type efs, a network file system; Prometheus loses data on those\n"
            "  fix: name a class of a block device",
        ),
    ],
)
def test_a_class_that_does_not_do(name: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        prometheus_spec({"storage-class": name})
    assert str(error.value) == message


def test_prometheus_sees_every_monitor_of_every_namespace() -> None:
    spec = prometheus_spec({})
    selectors = {key: value for key, value in spec.items() if key.endswith("Selector")}
    kinds = ("serviceMonitor", "podMonitor", "probe", "scrapeConfig", "rule")
    assert selectors == {f"{kind}{what}": {} for kind in kinds for what in ("Selector", "NamespaceSelector")}


def test_prometheus_may_read_what_it_discovers_and_no_more() -> None:
    objects = list(prometheus(with_addons({"monitoring": {}}), MonitoringSettings(), lock()["prometheus-operator"]))
    [role] = manifests(objects, "ClusterRole").values()
    read = {resource for rule in role["rules"] for resource in rule.get("resources", ())}
    assert read == {"services", "pods", "endpointslices"}
    [binding] = manifests(objects, "ClusterRoleBinding").values()
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    [account] = manifests(objects, "ServiceAccount")
    assert [subject["name"] for subject in binding["subjects"]] == [account]
    assert manifests(objects, "Prometheus")["platform"]["spec"]["serviceAccountName"] == account


@pytest.mark.parametrize("protect", [True, False])
def test_samples_are_kept_where_the_cluster_is_protected(protect: bool) -> None:
    environment = with_addons({"monitoring": {}}, cluster={"protect": protect})
    objects = prometheus(environment, MonitoringSettings(), lock()["prometheus-operator"])
    [one] = [one for one in objects if one.identity.kind == "Prometheus"]
    assert one.lifecycle.protect is protect


@pytest.mark.parametrize(
    ("addons", "services"),
    [
        ([], []),
        (["volcano"], ["volcano-controllers-service", "volcano-scheduler-service"]),
        (["training-operator"], ["training-operator"]),
        (["gpu-operator"], ["nvidia-dcgm-exporter"]),
    ],
)
def test_what_is_there_is_scraped(addons: list[str], services: list[str]) -> None:
    chosen = {name: settings for name, settings in EVERYTHING.items() if name in [*addons, "monitoring"]}
    environment = with_addons(chosen)
    monitors = manifests(service_monitors(environment, MonitoringSettings()), "ServiceMonitor")
    assert sorted(monitors) == services
    assert {alert.target.service for alert in alerts(environment)} == set(services)
    rules = manifests(prometheus_rules(environment, MonitoringSettings()), "PrometheusRule")
    assert list(rules) == addons


def test_imitated_gpus_have_no_metrics() -> None:
    environment = with_addons(EVERYTHING, cluster={"provider": "kind"})
    assert "nvidia-dcgm-exporter" not in [target.service for target in targets(environment)]
    assert not [alert for alert in alerts(environment) if "DCGM" in alert.expr]


@pytest.mark.parametrize("alert", alerts(with_addons(EVERYTHING)), ids=lambda alert: alert.name)
def test_an_alert_uses_only_what_its_target_exports(alert: Alert) -> None:
    used = set(re.findall(r"\b(?:DCGM_\w+|volcano_\w+|training_operator_\w+|kube_\w+|up)\b", alert.expr))
    assert used
    assert used <= alert.target.metrics | {"up"}


@pytest.mark.parametrize("alert", alerts(with_addons(EVERYTHING)), ids=lambda alert: alert.name)
def test_an_alert_says_what_to_do(alert: Alert) -> None:
    assert alert.severity in ("critical", "warning")
    assert re.fullmatch(r"\d+m", alert.after)
    assert 10 < len(alert.summary) < 120
    assert alert.description.endswith(".")
    assert len(alert.description) > 80
    # A label that the expression drops would be empty in the message.
    kept = re.search(r"by \(([\w, ]+)\)", alert.expr)
    if kept:
        labels = set(re.findall(r"\$labels\.(\w+)", alert.summary + alert.description))
        assert labels <= set(kept[1].split(", "))


def test_alerts_have_names_of_their_own() -> None:
    names = [alert.name for alert in alerts(with_addons(EVERYTHING))]
    assert len(names) == len(set(names)) == len(ALERTS) + 1


def test_counters_that_the_exporter_leaves_out_are_in_no_alert() -> None:
    expressions = " ".join(alert.expr for alert in ALERTS)
    for name in ("ECC_", "VIOLATION", "RETIRED_", "NVLINK_CRC", "ROW_REMAP_PENDING", "DCGM_EXP_"):
        assert name not in expressions


def test_missing_metrics_matter_only_where_a_gpu_node_is_always_there() -> None:
    def names(nodes: dict[str, int]) -> list[str]:
        pools = {"l4": {"machine": "g6.12xlarge", "nodes": nodes}}
        environment = with_addons(EVERYTHING)
        environment.pools = {"l4": cluster(pools=pools).pools["l4"], "cpu": environment.pools["cpu"]}
        return [alert.name for alert in alerts(environment)]

    assert "GpuMetricsMissing" in names({"min": 1, "max": 8})
    assert "GpuMetricsMissing" not in names({"min": 0, "max": 8})


def test_a_code_counts_only_while_it_is_new() -> None:
    metric = "DCGM_FI_DEV_XID_ERRORS"
    assert new_xid((48, 79)) == (
        f"({metric} == 48 unless on (UUID) {metric} offset 15m == 48) or "
        f"({metric} == 79 unless on (UUID) {metric} offset 15m == 79)"
    )


@pytest.mark.sandbox
class TestUpstream:
    def test_every_object_is_sound(self) -> None:
        objects = rendered(with_addons(EVERYTHING), "monitoring")
        assert_sound(objects)
        assert_restricted(objects)
        namespaces = manifests(objects, "Namespace")
        assert {name: pod_security(one) for name, one in namespaces.items()} == {"monitoring": level("restricted")}

    @pytest.mark.parametrize("registry", ["quay.io", "mirror.acme.com"])
    def test_images_are_those_of_the_locked_version(self, registry: str) -> None:
        change = {} if registry == "quay.io" else {"cluster": {"registry": registry}}
        objects = rendered(with_addons({"monitoring": {}}, **change), "monitoring")
        container = manifests(objects, "Deployment")["prometheus-operator"]["spec"]["template"]["spec"]["containers"][0]
        flag = "--prometheus-config-reloader="
        [reloader] = [one.removeprefix(flag) for one in container["args"] if one.startswith(flag)]
        found = {container["image"], reloader, manifests(objects, "Prometheus")["platform"]["spec"]["image"]}
        locked = lock()["prometheus-operator"].images
        assert found == {f"{image}:{tag}".replace("quay.io", registry) for image, tag in locked.items()}

    def test_the_operator_keeps_out_of_other_namespaces(self) -> None:
        objects = rendered(with_addons({"monitoring": {}}), "monitoring")
        container = manifests(objects, "Deployment")["prometheus-operator"]["spec"]["template"]["spec"]["containers"][0]
        assert not [argument for argument in container["args"] if argument.startswith("--kubelet-service")]
        assert len(manifests(objects, "CustomResourceDefinition")) == 10

    @pytest.mark.parametrize("target", [SCHEDULER, CONTROLLERS, OPERATOR], ids=lambda target: target.service)
    def test_every_monitor_finds_its_service(self, target: Target) -> None:
        service = manifests(rendered(with_addons(EVERYTHING), target.addon), "Service")[target.service]
        assert service["metadata"]["namespace"] == target.namespace
        assert dict(target.labels).items() <= service["metadata"]["labels"].items()
        assert target.port in [port.get("name") for port in service["spec"]["ports"]]

    def test_prometheus_is_the_newest_that_the_operator_knows(self) -> None:
        matrix = code("prometheus-operator", "pkg/operator/defaults.go")
        newest = re.findall(r'^\t\t"(v[\d.]+)",$', matrix, re.MULTILINE)[-1]
        assert lock()["prometheus-operator"].images["quay.io/prometheus/prometheus"] == newest
        assert prometheus_spec({})["version"] == newest

    @pytest.mark.parametrize(
        ("target", "folder"),
        [
            (SCHEDULER, "pkg/scheduler/metrics"),
            (CONTROLLERS, "pkg/controllers/metrics"),
            (OPERATOR, "pkg/common"),
        ],
        ids=lambda value: value.service if isinstance(value, Target) else "",
    )
    def test_the_metrics_are_in_the_code_that_is_locked(self, target: Target, folder: str) -> None:
        text = code(target.addon, folder)
        for metric in target.metrics:
            name = metric.removeprefix("volcano_").removesuffix("_count" if "latency" in metric else "")
            assert re.search(rf'Name:\s+"{name}"', text), metric

    def test_every_target_names_the_version_that_is_locked(self) -> None:
        for target in TARGETS:
            if target.addon != "gpu-operator":
                assert lock()[target.addon].version in target.source
