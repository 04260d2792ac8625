"""Which stack is what, and what is refused before anything is registered."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pulumi
import pytest

from gpuyard.errors import InputError
from gpuyard.manifests import Manifest
from gpuyard.pulumi.program import deploy
from gpuyard.pulumi.stacks import Target, target
from gpuyard.pulumi.testing import Registered, run
from tests.pulumi.small import CLASSES, UID, crd, kubernetes, objects

ROOT = Path(__file__).resolve().parent.parent.parent
OTHER = "7d7f3c1e-88d2-4d39-8d63-0d5b8f2f7a40"


class FakeCluster:
    """A cluster with a UID and some CRDs."""

    def __init__(self, *crds: Manifest, uid: str = UID, engine: str = "") -> None:
        self._uid, self._crds, self._engine = uid, list(crds), engine

    def uid(self) -> str:
        return self._uid

    def crds(self) -> list[Manifest]:
        return self._crds

    def engine(self) -> str:
        return self._engine


@pytest.fixture
def stacks(tmp_path: Path) -> Path:
    folder = tmp_path / "stacks"
    folder.mkdir()
    return folder


def deployed(stack: str, stacks: Path, cluster: FakeCluster, *, preview: bool = False) -> list[Registered]:
    def program() -> None:
        deploy(
            stack,
            stacks=stacks,
            environments=["prod", "staging"],
            render=lambda _: objects(),
            components=CLASSES,
            cluster=cluster,
        )

    return run(program, stack=stack, preview=preview).resources


def refused(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(InputError) as error:
        deployed(*args, **kwargs)
    return str(error.value)


@pytest.mark.parametrize(
    ("stack", "what"),
    [
        ("prod-crds", Target("prod", "crds")),
        ("prod", Target("prod", "platform")),
        ("prod-jobs", Target("prod", "jobs")),
        ("team-a-jobs", Target("team-a", "jobs")),
    ],
)
def test_the_name_of_a_stack_tells_environment_and_layer(stack: str, what: Target) -> None:
    assert target(stack, ["prod", "team-a"]) == what


def test_an_unknown_stack_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(InputError) as error:
        target("prod-job", ["prod", "staging"])

    assert str(error.value) == (
        "error  unknown stack\n"  #
        "  prod-job; did you mean prod-jobs?\n"
        "  fix: pulumi stack select"
    )


def test_an_unknown_stack_like_no_other_lists_what_there_is() -> None:
    with pytest.raises(InputError) as error:
        target("x", ["prod"])

    assert "x; accepted: prod, prod-crds, prod-jobs" in str(error.value)


def test_a_stack_that_could_be_two_is_an_error() -> None:
    with pytest.raises(InputError) as error:
        target("a-jobs", ["a", "a-jobs"])

    assert str(error.value) == (
        "error  two stacks with one name\n"
        "  a-jobs: layer jobs of environment a and layer platform of environment a-jobs\n"
        "  fix: rename an environment"
    )


def test_a_cluster_of_another_engine_is_refused(stacks: Path) -> None:
    with pytest.raises(InputError) as error:
        deployed("prod-crds", stacks, FakeCluster(engine="apply"))

    assert str(error.value) == (
        "error  this cluster belongs to another engine\n"
        "  ConfigMap gpuyard-system/gpuyard-inventory: engine\n"
        "  found apply; this command is for pulumi\n"
        "  fix: gpuyard deploy --engine apply, or an empty cluster"
    )


def test_the_first_deploy_records_the_cluster_and_changes_nothing_else_in_the_file(stacks: Path) -> None:
    file = stacks / "Pulumi.prod-crds.yaml"
    file.write_text("# The CRDs of prod.\nencryptionsalt: v1:abc\nconfig: {}  # nothing yet\n")

    deployed("prod-crds", stacks, FakeCluster())

    assert file.read_text() == (
        f"# The CRDs of prod.\nencryptionsalt: v1:abc\nconfig:  # nothing yet\n  gpuyard:cluster-uid: {UID}\n"
    )


def test_what_is_configured_stays_configured(stacks: Path) -> None:
    file = stacks / "Pulumi.prod-crds.yaml"
    file.write_text("config:\n  kubernetes:suppressDeprecationWarnings: true\n")

    deployed("prod-crds", stacks, FakeCluster())

    assert file.read_text() == (
        f"config:\n  gpuyard:cluster-uid: {UID}\n  kubernetes:suppressDeprecationWarnings: true\n"
    )


def test_configuration_on_one_line_is_for_the_user_to_change(stacks: Path) -> None:
    (stacks / "Pulumi.prod-crds.yaml").write_text("config: {a:b: 1}\n")

    assert refused("prod-crds", stacks, FakeCluster()) == (
        "error  cannot record the cluster\n"
        "  stacks/Pulumi.prod-crds.yaml:1   config\n"
        "  config: {a:b: 1}\n"
        f"  fix: write config: as a block, with gpuyard:cluster-uid: {UID}"
    )


def test_a_stack_without_a_file_gets_one(stacks: Path) -> None:
    deployed("prod-crds", stacks, FakeCluster())

    assert (stacks / "Pulumi.prod-crds.yaml").read_text() == f"config:\n  gpuyard:cluster-uid: {UID}\n"


def test_a_preview_records_nothing(stacks: Path) -> None:
    deployed("prod-crds", stacks, FakeCluster(), preview=True)

    assert list(stacks.iterdir()) == []


def test_a_second_deploy_leaves_the_file_alone(stacks: Path) -> None:
    file = stacks / "Pulumi.prod-crds.yaml"
    deployed("prod-crds", stacks, FakeCluster())
    before = file.read_bytes()

    deployed("prod-crds", stacks, FakeCluster())

    assert file.read_bytes() == before


def test_the_wrong_cluster_is_refused_with_both_uids_and_the_place(stacks: Path) -> None:
    (stacks / "Pulumi.prod.yaml").write_text(f"# Platform\nconfig:\n  gpuyard:cluster-uid: {UID}\n")

    assert refused("prod", stacks, FakeCluster(crd(), uid=OTHER)) == (
        "error  wrong cluster\n"
        "  stacks/Pulumi.prod.yaml:3   gpuyard:cluster-uid\n"
        f"  recorded: {UID}\n"
        f"  this one: {OTHER}\n"
        "  fix: switch the kubeconfig context; if this one was built in its place, as each new sandbox is,\n"
        "delete this line and forget what the other one held, for each of prod, prod-crds, prod-jobs:\n"
        "pulumi stack rm --force --preserve-config STACK"
    )


def test_a_record_of_one_stack_counts_for_the_whole_environment(stacks: Path) -> None:
    (stacks / "Pulumi.prod-crds.yaml").write_text(f"config:\n  gpuyard:cluster-uid: {UID}\n")

    assert "stacks/Pulumi.prod-crds.yaml:2" in refused("prod-jobs", stacks, FakeCluster(crd(), uid=OTHER))


def test_the_cluster_of_another_environment_is_refused(stacks: Path) -> None:
    (stacks / "Pulumi.prod.yaml").write_text(f"config:\n  gpuyard:cluster-uid: {UID}\n")

    assert refused("staging-crds", stacks, FakeCluster()) == (
        "error  wrong cluster\n"
        "  stacks/Pulumi.prod.yaml:2   gpuyard:cluster-uid\n"
        f"  this cluster, {UID}, is that of stack prod\n"
        "  fix: switch the kubeconfig context"
    )


def test_the_wrong_cluster_is_refused_in_a_preview_too(stacks: Path) -> None:
    (stacks / "Pulumi.prod.yaml").write_text(f"config:\n  gpuyard:cluster-uid: {UID}\n")

    assert "wrong cluster" in refused("prod", stacks, FakeCluster(crd(), uid=OTHER), preview=True)


@pytest.mark.parametrize("stack", ["prod", "prod-jobs"])
def test_a_missing_crd_stops_the_program_with_the_command_to_run(stacks: Path, stack: str) -> None:
    assert refused(stack, stacks, FakeCluster()) == (
        "error  the cluster's CRDs are not those of this render\n"
        "  missing: pytorchjobs.kubeflow.org\n"
        "  fix: pulumi up --stack prod-crds"
    )
    assert list(stacks.iterdir()) == [], "a deploy that was refused records nothing"


def test_an_older_crd_stops_the_program(stacks: Path) -> None:
    older = crd()
    older["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {}}

    assert refused("prod", stacks, FakeCluster(older)) == (
        "error  the cluster's CRDs are not those of this render\n"
        "  older: pytorchjobs.kubeflow.org\n"
        "  fix: pulumi up --stack prod-crds"
    )


def test_a_crd_without_a_version_of_ours_is_older(stacks: Path) -> None:
    older = crd()
    older["spec"]["versions"][0]["name"] = "v1beta1"

    assert "older: pytorchjobs.kubeflow.org" in refused("prod", stacks, FakeCluster(older))


def test_a_newer_crd_and_what_the_api_server_fills_in_are_fine(stacks: Path) -> None:
    newer = crd(properties={"spec": {"type": "object"}}, description="Trains.")
    newer["spec"]["conversion"] = {"strategy": "None"}
    newer["spec"]["versions"].insert(0, {"name": "v2", "served": True, "storage": False})

    assert len(kubernetes(deployed("prod", stacks, FakeCluster(newer)))) == 7


def test_the_crds_stack_needs_no_crds(stacks: Path) -> None:
    assert set(kubernetes(deployed("prod-crds", stacks, FakeCluster()))) == {
        "CustomResourceDefinition/pytorchjobs.kubeflow.org"
    }


def test_a_component_without_a_class_is_a_mistake_in_the_project(stacks: Path) -> None:
    def program() -> None:
        deploy(
            "prod",
            stacks=stacks,
            environments=["prod"],
            render=lambda _: objects(),
            components={},
            cluster=FakeCluster(crd()),
        )

    with pytest.raises(LookupError, match="no Pulumi class for operator, team"):
        run(program, stack="prod")


def test_the_project_s_program_shows_input_errors_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(ROOT / "infra")

    with pytest.raises(pulumi.RunError) as error:
        run(lambda: runpy.run_path(str(ROOT / "infra")), stack="sandbx")

    assert str(error.value) == (
        "error  unknown stack\n"  #
        "  sandbx; did you mean sandbox?\n"
        "  fix: pulumi stack select"
    )


@pytest.mark.parametrize("folder", ["infra", "policies"])
def test_no_module_beside_a_program_has_a_name_of_the_standard_library(folder: str) -> None:
    """Pulumi puts the program's folder first on the path, so that `secrets.py` would replace the library's."""
    names = {path.stem for path in (ROOT / folder).iterdir()}

    assert names & sys.stdlib_module_names == set()
