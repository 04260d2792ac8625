"""A folder that `render --out` wrote as the base of a diff: the same report as that of the project which wrote it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuyard.cli.committed import is_committed, read_committed
from gpuyard.cli.gitops import argocd_tree, flux_tree
from gpuyard.cli.repository import Location
from gpuyard.cli.tree import MARK, object_paths, tree_files, write_tree
from gpuyard.diff.state import JobState, PoolState, State
from gpuyard.errors import InputError
from gpuyard.manifests import RUN, Lifecycle, Manifest, Rendered, declare
from gpuyard.manifests.diff import compare
from tests.diff.project import command, copy_project, diff, git, variables

WHERE = Location("https://git.acme.com/platform.git", "main", "rendered/prod")
KEPT = Lifecycle(protect=True)
POOLS = (
    PoolState("h100", 4, 4, 8, {"gpuyard.dev/pool": "h100"}, (("nvidia.com/gpu", "", "NoSchedule"),)),
    PoolState("l4", 4, 4, 4, {"gpuyard.dev/pool": "l4"}, (("nvidia.com/gpu", "", "NoSchedule"),)),
    PoolState("cpu", 4, 4, 0, {"gpuyard.dev/pool": "cpu"}, ()),
)


def config(name: str, value: str = "1", **metadata: Any) -> Rendered:
    metadata = {"name": name, "namespace": "t", **metadata}
    return declare({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}).of("c")


def namespace(name: str) -> Rendered:
    return declare({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, lifecycle=KEPT).of("team")


def install(version: str) -> Rendered:
    """Return a one-shot Job with its version in its name."""
    metadata = {"name": f"install-{version}", "namespace": "t"}
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"completions": 1}}
    return declare(manifest, id="Job/t/install").of("c")


def run(job: str, file: str, queue: str | None = "research", gpus: int = 8) -> Rendered:
    """Return a run of a job: one pod that leads and two that work with GPUs, and one for parameters without."""
    spec: Manifest = {"tolerations": [{"operator": "Exists"}]}
    worker = {"name": "w", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    roles = {
        "Chief": {"template": {"spec": {**spec, "containers": [worker]}}},
        "Worker": {"replicas": 2, "template": {"spec": {**spec, "containers": [worker]}}},
        "PS": {"replicas": 1, "template": {"spec": {**spec, "containers": [{"name": "p"}]}}},
    }
    policy = {"schedulingPolicy": {"queue": queue}} if queue else {}
    labels = {"gpuyard.dev/team": "t", "gpuyard.dev/job": job}
    manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": f"{job}-{file}", "namespace": "t", "labels": labels},
        "spec": {"runPolicy": policy, "tfReplicaSpecs": roles},
    }
    return declare(manifest, id=f"TFJob/t/{job}", layer="jobs", lifecycle=RUN).of("jobs")


def written(folder: Path, *objects: Rendered, form: str = "yaml", skipped: tuple[str, ...] = ()) -> Path:
    entries = [(path, one.manifest) for path, one in zip(object_paths(objects), objects, strict=True)]
    write_tree(tree_files(entries, form, skipped=skipped), folder)
    return folder


def changes(folder: Path, *today: Rendered) -> list[tuple[str, str]]:
    found = compare(read_committed(folder, State(today)).objects, today)
    return [(change.verb, str(change.identity)) for change in found]


CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "switches.acme.com"},
    "spec": {"group": "acme.com", "names": {"kind": "Switch", "plural": "switches"}},
}
OBJECTS = (
    declare(CRD).of("c"),
    namespace("t"),
    config("a", annotations={"mine": "yes"}),
    config("A"),
    install("1"),
    run("resnet", "aaaaaa"),
)


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_what_was_just_written_is_no_change(tmp_path: Path, form: str) -> None:
    folder = written(tmp_path / "out", *OBJECTS, form=form)
    assert is_committed(folder)
    assert changes(folder, *OBJECTS) == []


@pytest.mark.parametrize("controller", ["argocd", "flux"])
def test_what_is_for_a_controller_is_no_change(tmp_path: Path, controller: str) -> None:
    entries = (
        argocd_tree("prod", "acme", OBJECTS, WHERE) if controller == "argocd" else flux_tree("prod", OBJECTS, WHERE)
    )
    write_tree(tree_files(entries, "yaml"), tmp_path / "out")
    assert changes(tmp_path / "out", *OBJECTS) == []


def test_a_run_is_known_by_its_labels_and_a_job_with_a_version_by_its_file(tmp_path: Path) -> None:
    folder = written(tmp_path / "out", install("1"), run("resnet", "aaaaaa"), config("a"))
    today = (install("2"), run("resnet", "bbbbbb"), config("a", "2"))
    found = compare(read_committed(folder, State(today)).objects, today)
    assert [
        (one.verb, one.identity.name, (one.before or one.former or one.rendered).identity.name) for one in found
    ] == [
        ("replaced", "install-2", "install-1"),
        ("added", "resnet-bbbbbb", "resnet-aaaaaa"),
        ("changed", "a", "a"),
    ]


def test_what_is_gone_lives_as_its_kind_does(tmp_path: Path) -> None:
    folder = written(tmp_path / "out", namespace("t"), namespace("old"), run("resnet", "aaaaaa"), config("a"))
    today = (namespace("t"),)
    found = {one.identity.name: one for one in read_committed(folder, State(today)).objects}
    assert {name: one.lifecycle for name, one in found.items()} == {
        "t": KEPT,
        "old": KEPT,
        "resnet-aaaaaa": RUN,
        "a": Lifecycle(),
    }
    gone = found["resnet-aaaaaa"]
    assert (gone.id, gone.component, gone.layer) == ("TFJob/t/resnet", "jobs", "jobs")
    assert str(gone.origin) == f"{folder}/jobs/t/tfjob-resnet.yaml"


def test_jobs_are_read_off_their_runs(tmp_path: Path) -> None:
    folder = written(tmp_path / "out", run("resnet", "aaaaaa"), run("vit", "bbbbbb", None, 4))
    state = read_committed(folder, State((), POOLS))
    assert state.jobs == (
        JobState("resnet", "t", "resnet-aaaaaa", "research", 3, 8, ("h100",)),
        JobState("vit", "t", "vit-bbbbbb", "t", 3, 4, ("h100", "l4")),
    )
    assert state.pools == POOLS


def test_sources_that_the_folder_goes_without_are_known(tmp_path: Path) -> None:
    folder = written(tmp_path / "out", config("a"), skipped=("gpu-operator",))
    assert read_committed(folder, State()).skipped == ("gpu-operator",)


def refused(folder: Path, today: State | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read_committed(folder, today or State())
    return str(caught.value).replace(str(folder), "out")


def test_objects_of_a_source_that_is_missing_today_do_not_look_removed(tmp_path: Path) -> None:
    folder = written(tmp_path / "out", config("a"), skipped=("volcano",))
    assert refused(folder, State(skipped=("gpu-operator", "volcano"))) == (
        "error  the base has objects of sources that are not in the cache\n"
        "  out\n"
        "  it was rendered with gpu-operator; without, their objects would look removed\n"
        "  fix: gpuyard sources pull gpu-operator"
    )


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    folder = written(tmp_path / "out", config("a"))
    (folder / "c" / "t" / "configmap-a.yaml").unlink()
    assert refused(folder) == (
        f"error  a file of the render is missing\n  out/c/t/configmap-a.yaml\n  {MARK} lists it\n  fix: render again"
    )


@pytest.mark.parametrize("path", ["../secret.yaml", "c/../../secret.yaml", "/etc/hostname", "c/link.yaml"])
def test_nothing_outside_of_the_folder_is_read(tmp_path: Path, path: str) -> None:
    folder = written(tmp_path / "out", config("a"))
    (tmp_path / "secret.yaml").write_text("password: abc\n")
    (folder / "c" / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (folder / MARK).write_text(f"{path}\n")
    assert refused(folder) == (
        f"error  a file outside of the folder\n  out/{MARK}   {path}\n"
        "  it leads out of the folder, and a render writes only inside\n  fix: render again"
    )


@pytest.mark.parametrize("text", ["", "a: 1\n", "kind: A\napiVersion: v1\nmetadata: {}\n", "a: 1\n---\nb: 1\n"])
def test_a_file_that_holds_no_object(tmp_path: Path, text: str) -> None:
    folder = written(tmp_path / "out", config("a"))
    (folder / "c" / "t" / "configmap-a.yaml").write_text(text)
    assert refused(folder) == (
        "error  not one object\n  out/c/t/configmap-a.yaml\n"
        "  a file of a render is one map with apiVersion, kind and metadata.name\n  fix: render again"
    )


def told(result: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Return the changes of a report without places and order: a folder has other files, and no order to apply them."""
    assert result.returncode == 1, result.stderr
    changes = [{**one, "file": None, "line": None} for one in json.loads(result.stdout)["changes"]]
    return sorted(changes, key=lambda change: change["object"])


def test_the_report_is_that_of_the_project_that_wrote_the_folder(tmp_path: Path) -> None:
    project, folder = tmp_path / "project", tmp_path / "out"
    copy_project(project)
    subprocess.run(
        command("render", "prod", "--allow-missing-sources", "--out", str(folder)),
        cwd=project,
        env=variables(project),
        check=True,
        capture_output=True,
    )
    prod = project / "stacks" / "prod"
    for name in ("ranker", "click-model"):
        (prod / "jobs" / f"{name}.yaml").unlink()
    (prod / "teams" / "ads.yaml").unlink()
    for file, before, after in (
        (prod / "jobs" / "vit.yaml", "nodes: 2", "nodes: 1"),
        (prod / "environment.yaml", "quota: {a100: 16}", "quota: {a100: 8}"),
        (prod / "environment.yaml", "throughput: 500", "throughput: 1000"),
        (prod / "environment.yaml", "retention: 30d", "retention: 20d"),
    ):
        assert file.read_text().count(before) == 1
        file.write_text(file.read_text().replace(before, after))

    result = diff(project, "prod", "--base", str(folder), "--format", "json")

    expected = told(diff(project, "prod", "--base", "HEAD", "--format", "json"))
    assert told(result) == expected
    assert json.loads(result.stdout)["base"] == str(folder)
    assert {change["verb"] for change in expected} == {"added", "removed", "changed", "replaced"}
    assert git(project, "status", "--porcelain").count("\n") == 4


def test_a_folder_that_is_neither(tmp_path: Path) -> None:
    copy_project(tmp_path / "project")
    result = diff(tmp_path / "project", "dev", "--base", str(tmp_path))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.replace(str(tmp_path), "folder") == (
        "error  the base is neither a project nor a render\n"
        "  folder\n"
        "  a project has Pulumi.yaml; a render is the whole folder that `gpuyard render --out` wrote\n"
        "  fix: give one of these folders, or a revision\n"
    )
