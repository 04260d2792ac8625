"""Volcano: the scheduler's configuration, and upstream's manifests as they are rendered."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from components.volcano import VolcanoSettings
from components.volcano.objects import volcano
from components.volcano.scheduling import scheduler_configuration
from gpuyard.errors import InputError
from gpuyard.manifests import Rendered
from gpuyard.sources.lock import GoModule
from gpuyard.sources.store import module_dir
from tests.components.addons import (
    Altered,
    assert_restricted,
    assert_sound,
    images,
    level,
    lock,
    manifests,
    pod_security,
    pods,
    rendered,
    source,
    with_addons,
)

DEPLOYMENTS = ("volcano-admission", "volcano-controllers", "volcano-scheduler")


def objects(settings: dict[str, Any] | None = None, **changes: Any) -> list[Rendered]:
    return rendered(with_addons({"volcano": settings or {}}, **changes), "volcano")


def container(found: list[Rendered], name: str) -> dict[str, Any]:
    return manifests(found, "Deployment")[name]["spec"]["template"]["spec"]["containers"][0]


def plugins(settings: VolcanoSettings) -> dict[str, dict[str, Any]]:
    tiers = scheduler_configuration(settings)["tiers"]
    return {plugin["name"]: plugin for tier in tiers for plugin in tier["plugins"]}


def test_settings_without_arguments_are_complete() -> None:
    assert VolcanoSettings() == VolcanoSettings.model_validate({"preemption": True, "replicas": 1})


@pytest.mark.parametrize("settings", [{"replicas": 0}, {"replicas": 4}, {"replicas": "1"}, {"replica": 1}])
def test_settings_that_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=f"1 validation error for VolcanoSettings\n{next(iter(settings))}"):
        VolcanoSettings.model_validate(settings)


def test_a_gang_is_placed_whole_and_shares_are_taken_back() -> None:
    configuration = scheduler_configuration(VolcanoSettings())
    assert configuration["actions"] == "enqueue, allocate, backfill, reclaim, preempt"
    first, second = [[plugin["name"] for plugin in tier["plugins"]] for tier in configuration["tiers"]]
    # What protects pods stands together: victims named in one tier are not looked at by the next.
    assert first == ["priority", "gang", "conformance", "capacity"]
    assert second == ["drf", "predicates", "nodeorder", "binpack"]
    assert plugins(VolcanoSettings())["gang"] == {
        "name": "gang",
        "enablePreemptable": False,
        "enableReclaimable": False,
    }


def test_without_preemption_shares_are_still_taken_back() -> None:
    settings = VolcanoSettings(preemption=False)
    assert scheduler_configuration(settings)["actions"] == "enqueue, allocate, backfill, reclaim"
    assert plugins(settings) == plugins(VolcanoSettings())


def test_gpus_decide_which_node_is_filled_first() -> None:
    arguments = plugins(VolcanoSettings())["binpack"]["arguments"]
    assert arguments["binpack.resources"] == "nvidia.com/gpu"
    assert arguments["binpack.resources.nvidia.com/gpu"] > arguments["binpack.cpu"]


@pytest.mark.sandbox
class TestUpstream:
    def test_every_object_is_sound(self) -> None:
        assert_sound(objects())

    def test_all_kinds_are_there_that_the_controller_waits_for(self) -> None:
        assert sorted(manifests(objects(), "CustomResourceDefinition")) == [
            "colocationconfigurations.config.volcano.sh",
            "commands.bus.volcano.sh",
            "cronjobs.batch.volcano.sh",
            "hypernodes.topology.volcano.sh",
            "jobflows.flow.volcano.sh",
            "jobs.batch.volcano.sh",
            "jobtemplates.flow.volcano.sh",
            "nodeshards.shard.volcano.sh",
            "numatopologies.nodeinfo.volcano.sh",
            "podgroups.scheduling.volcano.sh",
            "queues.scheduling.volcano.sh",
        ]

    def test_images_are_the_locked_ones(self) -> None:
        assert set(images(objects())) == {f"{image}:{tag}" for image, tag in lock()["volcano"].images.items()}

    def test_images_come_through_the_mirror(self) -> None:
        found = images(objects(cluster={"registry": "mirror.acme.com"}))
        assert {image.split("/")[0] for image in found} == {"mirror.acme.com"}

    def test_the_configuration_is_the_one_that_the_scheduler_reads(self) -> None:
        found = objects()
        text = manifests(found, "ConfigMap")["volcano-scheduler-configmap"]["data"]["volcano-scheduler.conf"]
        assert yaml.safe_load(text) == scheduler_configuration(VolcanoSettings())
        scheduler = container(found, "volcano-scheduler")
        assert "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf" in scheduler["args"]
        assert "--disable-default-scheduler-config=true" in scheduler["args"]
        assert {"name": "scheduler-config", "mountPath": "/volcano.scheduler"} in scheduler["volumeMounts"]

    def test_actions_plugins_and_flags_exist_upstream(self) -> None:
        entry = lock()["volcano"]
        assert isinstance(entry, GoModule)
        source("volcano")
        folder = module_dir(entry)
        assert folder is not None
        scheduler = folder / "pkg/scheduler"
        known = {path.name for path in (scheduler / "actions").iterdir()}
        assert set(scheduler_configuration(VolcanoSettings())["actions"].split(", ")) <= known
        code = "".join(path.read_text() for path in sorted((scheduler / "plugins").rglob("*.go")))
        flags = set(re.findall(r'yaml:"(\w+)"', (scheduler / "conf/scheduler_conf.go").read_text()))
        for name, plugin in plugins(VolcanoSettings()).items():
            assert re.search(rf'PluginName\s*=\s*"{name}"', code), name
            assert plugin.keys() <= flags, name

    @pytest.mark.parametrize(("replicas", "elected"), [(1, "false"), (2, "true"), (3, "true")])
    def test_several_replicas_elect_a_leader(self, replicas: int, elected: str) -> None:
        found = objects({"replicas": replicas})
        deployments = manifests(found, "Deployment")
        assert sorted(deployments) == list(DEPLOYMENTS)
        assert {one["spec"]["replicas"] for one in deployments.values()} == {replicas}
        for name in ("volcano-scheduler", "volcano-controllers"):
            assert f"--leader-elect={elected}" in container(found, name)["args"]
            assert (deployments[name]["spec"].get("strategy") == {"type": "Recreate"}) == (replicas == 1)
        assert "strategy" not in deployments["volcano-admission"]["spec"]

    def test_pods_are_sized_and_restricted(self) -> None:
        found = objects()
        assert_restricted(found)
        for what, pod in pods(found):
            assert pod["priorityClassName"] == "system-cluster-critical", what
            assert pod["serviceAccountName"].startswith("volcano-"), what
            resources = pod["containers"][0]["resources"]
            assert resources["requests"].keys() == resources["limits"].keys() == {"cpu", "memory"}, what
        namespaces = manifests(found, "Namespace")
        assert {name: pod_security(one) for name, one in namespaces.items()} == {"volcano-system": level("restricted")}

    def test_the_admission_server_answers_exactly_what_is_registered(self) -> None:
        found = objects()
        kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        registered = [
            webhook["clientConfig"]["service"]["path"]
            for kind in kinds
            for one in manifests(found, kind).values()
            for webhook in one["webhooks"]
        ]
        flag = "--enabled-admission="
        [enabled] = [one for one in container(found, "volcano-admission")["args"] if one.startswith(flag)]
        assert sorted(registered) == sorted(enabled.removeprefix(flag).split(","))
        assert len(registered) == 7

    def test_one_job_for_each_version_fills_the_certificate(self) -> None:
        found = objects()
        [job] = manifests(found, "Job").values()
        assert job["metadata"]["name"] == "volcano-admission-init-" + source("volcano").version.replace(".", "-")
        [role] = manifests(found, "Role").values()
        secret = "volcano-admission-secret"
        assert role["rules"] == [
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "patch"], "resourceNames": [secret]}
        ]
        assert list(manifests(found, "Secret")) == [secret]
        shell, flag, script = job["spec"]["template"]["spec"]["containers"][0]["command"]
        assert (shell, flag) == ("sh", "-c")
        assert f"--secret {secret}" in script
        # The admission pod waits for the keys that the script writes.
        pod = manifests(found, "Deployment")["volcano-admission"]["spec"]["template"]["spec"]
        keys = [item["key"] for item in pod["volumes"][0]["secret"]["items"]]
        assert keys == ["ca.crt", "tls.crt", "tls.key"]
        assert all(f'"{key}":""' in script for key in keys)

    @pytest.mark.parametrize(("provider", "quotas"), [("gke", ["critical-pods"]), ("eks", [])])
    def test_google_wants_a_quota_for_critical_pods(self, provider: str, quotas: list[str]) -> None:
        found = manifests(objects(cluster={"provider": provider}), "ResourceQuota")
        assert list(found) == quotas
        for quota in found.values():
            # Three Deployments while they are rolled, and the Job.
            assert quota["spec"]["hard"] == {"pods": "7"}

    def test_it_is_there_without_an_entry_of_its_own(self) -> None:
        environment = with_addons({"volcano": {}})
        del environment.written["addons", "volcano"]
        environment.written["scheduling", "gang"] = environment.written["scheduling",]
        origins = {one.origin for one in volcano(environment, VolcanoSettings(), source("volcano"))}
        assert origins == {environment.origin("scheduling", "gang")}


@pytest.mark.sandbox
def test_an_upstream_change_under_a_patch_is_an_error() -> None:
    def rename(manifest: dict[str, Any]) -> None:
        manifest["spec"]["template"]["spec"]["containers"][0]["image"] = "ghcr.io/volcano-sh/scheduler:v2"

    altered = Altered("volcano", "Deployment", "volcano-scheduler", rename)
    with pytest.raises(InputError) as error:
        list(volcano(with_addons({"volcano": {}}), VolcanoSettings(), altered))
    assert str(error.value) == (
        "error  a patch does not fit its upstream file\n"
        f"  volcano {altered.version}, installer/volcano-development.yaml\n"
        "  Deployment volcano-system/volcano-scheduler, spec.template.spec.containers.0.image: "
        "expected an image of docker.io/volcanosh/vc-scheduler, found ghcr.io/volcano-sh/scheduler:v2\n"
        "  fix: read what changed upstream and change the component that patches it, or lock the former version"
    )
