"""The three stacks under the real engine, in a sandbox of its own. Needs Pulumi's binaries on PATH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuyard import sandbox
from gpuyard.manifests import Rendered
from gpuyard.manifests.data import unshared
from gpuyard.sandbox.api import Api, ApiError, has_condition
from gpuyard.sandbox.state import Home
from gpuyard.sources import read_lock
from gpuyard.sources.build import binaries
from infra import assemble

BINARIES = ("pulumi", "pulumi-language-python", "pulumi-resource-kubernetes")
MISSING = [name for name in BINARIES if not shutil.which(name)]

if MISSING:
    pytest.skip(f"not run: {', '.join(MISSING)} not on PATH", allow_module_level=True)

pytestmark = pytest.mark.pulumi

NAME = f"pulumi-{os.getpid()}"
STACKS = ("sandbox-crds", "sandbox", "sandbox-jobs")


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[Path]:
    """Yield the kubeconfig of a sandbox that Pulumi deploys to."""
    environment = assemble.load("sandbox")
    objects = assemble.build(environment).objects
    built = binaries(read_lock(assemble.LOCK), sandbox.BINARIES, lambda name, state: None)
    sources = assemble.open_sources()
    try:
        sandbox.up(environment, objects, built, sources, progress=lambda text: None, name=NAME, engine="pulumi")
        yield Home(NAME).kubeconfig
    finally:
        sandbox.down(progress=lambda text: None, name=NAME)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project: a deployment writes into its stack files."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("gpuyard", "components", "policies", "infra", "stacks"):
        shutil.copytree(assemble.ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Pulumi.yaml", assemble.LOCK.name):
        shutil.copy(assemble.ROOT / name, folder)
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "state").mkdir()
    return folder


@pytest.fixture(scope="module")
def pulumi(project: Path, kubeconfig: Path) -> Any:
    variables = {
        "KUBECONFIG": str(kubeconfig),
        "PULUMI_BACKEND_URL": f"file://{project}/state",
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_HOME": str(project / "home"),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["pulumi", *arguments, "--non-interactive", "--color", "never"]
        return subprocess.run(
            command, cwd=project, env=os.environ | variables, capture_output=True, text=True, timeout=600, check=False
        )

    for stack in STACKS:
        assert run("stack", "init", stack).returncode == 0
    return run


def objects(layer: str) -> list[Rendered]:
    return [one for one in assemble.build(assemble.load("sandbox")).objects if one.layer == layer]


def wait_for(condition: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, f"still no {what}"
        time.sleep(0.3)


def said(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


def test_without_the_crds_the_platform_stops_with_the_command_to_run(pulumi: Any) -> None:
    done = pulumi("preview", "--stack", "sandbox")

    assert done.returncode != 0
    assert "error  the cluster's CRDs are not those of this render" in said(done)
    assert "fix: pulumi up --stack sandbox-crds" in said(done)
    assert "Traceback" not in said(done)


def test_the_crds_are_deployed_and_the_rules_run(pulumi: Any, project: Path) -> None:
    done = pulumi("up", "--stack", "sandbox-crds", "--yes", "--skip-preview", "--policy-pack", "policies")

    assert done.returncode == 0, said(done)
    assert "gpuyard" in said(done), "the pack is named in the output"
    stack = json.loads(pulumi("stack", "export", "--stack", "sandbox-crds").stdout)
    types = [one["type"] for one in stack["deployment"]["resources"]]
    assert types.count("kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition") == len(objects("crds"))
    assert "gpuyard:cluster-uid: " in (project / "stacks" / "Pulumi.sandbox-crds.yaml").read_text()


def test_a_second_preview_changes_nothing(pulumi: Any) -> None:
    done = pulumi("preview", "--stack", "sandbox-crds", "--expect-no-changes")

    assert done.returncode == 0, said(done)


def test_with_the_crds_the_platform_can_be_previewed(pulumi: Any) -> None:
    done = pulumi("preview", "--stack", "sandbox", "--policy-pack", "policies")

    assert done.returncode == 0, said(done)


def test_the_platform_is_deployed_through_its_own_webhooks(pulumi: Any, kubeconfig: Path) -> None:
    done = pulumi("up", "--stack", "sandbox", "--yes", "--skip-preview")

    assert done.returncode == 0, said(done)
    api = Api(kubeconfig)
    for one in objects("platform"):
        assert api.get_like(one.manifest), one.identity
        if one.identity.kind == "Deployment":
            assert has_condition(api.get_like(one.manifest) or {}, "Available")
    processes = Home(NAME).read_controllers()
    assert len(processes) == 4
    assert all(one.ready for one in processes.values())


def test_a_wrong_job_is_refused_by_the_deployed_webhook(kubeconfig: Path) -> None:
    (job,) = (one for one in objects("jobs") if one.identity.name.startswith("mnist-a"))
    wrong = unshared(job.manifest)
    wrong["metadata"]["name"] = "wrong"
    wrong["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "main"

    with pytest.raises(ApiError) as caught:
        Api(kubeconfig).apply(wrong)

    assert caught.value.message == (
        'admission webhook "validator.tfjob.training-operator.kubeflow.org" denied the request: '
        "spec.tfReplicaSpecs[Worker].template.spec.containers: Required value: "
        "must have at least one container with name tensorflow"
    )


def test_the_jobs_are_deployed_and_complete(pulumi: Any, kubeconfig: Path) -> None:
    done = pulumi("up", "--stack", "sandbox-jobs", "--yes", "--skip-preview")

    assert done.returncode == 0, said(done)
    runs = [one.manifest for one in objects("jobs") if one.identity.group == "kubeflow.org"]
    assert len(runs) == 3
    for run in runs:
        wait_for(lambda run=run: has_condition(Api(kubeconfig).get_like(run) or {}, "Succeeded"), "end of a job")


@pytest.mark.parametrize("stack", ["sandbox", "sandbox-jobs"])
def test_what_controllers_wrote_is_no_change(pulumi: Any, stack: str) -> None:
    done = pulumi("preview", "--stack", stack, "--refresh", "--expect-no-changes")

    assert done.returncode == 0, said(done)


def test_the_wrong_cluster_is_refused(pulumi: Any, project: Path) -> None:
    file = project / "stacks" / "Pulumi.sandbox-crds.yaml"
    right = file.read_text()
    wrong = "00000000-0000-0000-0000-000000000000"
    uid = next(line for line in right.splitlines() if "gpuyard:cluster-uid" in line).split()[-1]
    file.write_text(right.replace(uid, wrong))
    try:
        done = pulumi("preview", "--stack", "sandbox")
    finally:
        file.write_text(right)

    assert done.returncode != 0
    assert f"recorded: {wrong}" in said(done)
    assert f"this one: {uid}" in said(done)


@pytest.mark.parametrize("stack", ["sandbox-jobs", "sandbox"])
def test_destroy_comes_to_its_end(pulumi: Any, stack: str) -> None:
    done = pulumi("destroy", "--stack", stack, "--yes", "--skip-preview")

    assert done.returncode == 0, said(done)


def test_after_it_no_controller_runs() -> None:
    wait_for(lambda: Home(NAME).read_controllers() == {}, "end of the controllers")
    assert sandbox.status(NAME).state == "running"


def test_destroy_leaves_the_crds_in_the_cluster(pulumi: Any, kubeconfig: Path) -> None:
    done = pulumi("destroy", "--stack", "sandbox-crds", "--yes", "--skip-preview")

    assert done.returncode == 0, said(done)

    left = {
        one["metadata"]["name"] for one in Api(kubeconfig).list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    }
    assert left >= {one.identity.name for one in objects("crds")}
