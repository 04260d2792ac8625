"""The command line as a person and a pipeline use it: what it prints, and its exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.run import ROOT, gpuyard


def test_help_lists_every_command_without_loading_one() -> None:
    result = gpuyard("--help")
    assert result.returncode == 0
    for name in ("envs", "render", "check", "graph", "explain", "sources", "sandbox", "deploy", "demo", "doctor"):
        assert f"\n  {name} " in result.stdout


def test_a_misspelt_command_names_the_nearest() -> None:
    result = gpuyard("chek", "prod")
    assert result.returncode == 2
    assert "no command is called chek; did you mean check?" in result.stderr


def test_envs() -> None:
    result = gpuyard("envs")
    assert result.returncode == 0
    assert result.stdout.splitlines() == [
        "environment  cluster       provider  kubernetes  pools                     GPUs  teams  jobs",
        "dev          acme-dev      eks       1.34        a10g, cpu                 16    1      1",
        "prod         acme-prod     eks       1.34        h100, a100, l4-spot, cpu  400   3      8",
        "sandbox      sandbox       kind      1.36        gpu, cpu                  4     2      3",
        "staging      acme-staging  eks       1.34        a100, l4-spot, cpu        48    2      2",
    ]


@pytest.mark.parametrize("environment", ["sandbox", "dev", "staging", "prod"])
def test_the_shipped_environments_are_clean(environment: str) -> None:
    result = gpuyard("check", environment, "--allow-missing-sources")
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "0 errors, 0 warnings")


def test_check_as_json_is_one_object() -> None:
    result = gpuyard("check", "unfit-gang", "--stacks", "examples/01-mistakes", "--format", "json")
    assert result.returncode == 1
    report = json.loads(result.stdout)
    assert set(report) == {"findings", "summary"}
    finding = report["findings"][0]
    assert set(finding) >= {"rule", "severity", "object", "path", "message", "value", "file", "line"}
    assert (finding["rule"], finding["severity"]) == ("queue-fits-gang", "error")


def test_input_errors_exit_with_2_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "environment.yaml").write_text("clutser: {}\n")
    result = gpuyard("check", "broken", "--stacks", str(tmp_path))
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "did you mean cluster?" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_same_input_same_bytes_under_any_hash_seed(form: str) -> None:
    one, two = (
        gpuyard("render", "prod", "--format", form, "--allow-missing-sources", seed=seed) for seed in ("1", "77")
    )
    assert one.returncode == 0
    assert len(one.stdout) > 100_000
    assert one.stdout == two.stdout


def test_render_as_json_is_one_array_of_objects() -> None:
    objects = json.loads(gpuyard("render", "sandbox", "--format", "json").stdout)
    assert {"Namespace", "Queue", "TFJob", "PyTorchJob"} <= {one["kind"] for one in objects}
    assert all(one["metadata"]["name"] for one in objects)


def test_only_one_job() -> None:
    objects = json.loads(gpuyard("render", "sandbox", "--only", "job/mnist-a", "--format", "json").stdout)
    assert [one["kind"] for one in objects] == ["TFJob"]


def test_only_that_matches_nothing_is_an_error() -> None:
    result = gpuyard("render", "sandbox", "--only", "job/mnist-z")
    assert result.returncode == 2
    assert "nothing matches --only" in result.stderr
    assert "did you mean job/mnist-" in result.stderr


def test_explain_names_the_file_and_what_it_overrides() -> None:
    result = gpuyard("explain", "prod", "addons.monitoring.retention")
    assert result.stdout.splitlines() == [
        "addons.monitoring.retention = 30d",
        "  stacks/prod/environment.yaml:28",
        "  stacks/base.yaml:11   was 7d",
    ]


def test_explain_a_key_that_nobody_wrote() -> None:
    result = gpuyard("explain", "prod", "pools.h100.nodez")
    assert result.returncode == 2
    assert "pools.h100 has fabric, machine, nodes" in result.stderr
    assert "did you mean nodes?" in result.stderr


def test_render_into_a_folder_replaces_only_its_own(tmp_path: Path) -> None:
    out = tmp_path / "tree"
    first = gpuyard("render", "sandbox", "--only", "component/team", "--out", str(out))
    assert first.returncode == 0
    count = len(list(out.rglob("*.yaml")))
    # One more than the objects: the list of the files.
    assert first.stdout == f"sandbox: {count} objects in {out}; {count + 1} added\n"
    assert (out / "team/namespace-research.yaml").is_file()
    second = gpuyard("render", "sandbox", "--only", "job/mnist-a", "--out", str(out))
    assert second.stdout == f"sandbox: 1 object in {out}; 1 added, {count} removed, 1 changed\n"
    assert [path.name for path in out.rglob("*.yaml")] == ["tfjob-mnist-a.yaml"]


def test_a_changed_job_is_a_change_of_one_file(tmp_path: Path) -> None:
    stacks, out = tmp_path / "stacks", tmp_path / "tree"
    shutil.copytree(ROOT / "stacks", stacks)
    render = ("render", "sandbox", "--only", "job/*", "--stacks", str(stacks), "--out", str(out))
    assert gpuyard(*render).returncode == 0
    job = stacks / "sandbox/jobs/mnist-a.yaml"
    job.write_text(job.read_text().replace("priority: research", "priority: production"))
    assert gpuyard(*render).stdout.endswith("; 1 changed\n")


def test_verify_names_the_stale_files_and_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "tree"
    render = ("render", "sandbox", "--only", "job/*", "--out", str(out))
    assert gpuyard(*render).returncode == 0
    fresh = gpuyard(*render, "--verify")
    assert (fresh.returncode, fresh.stdout) == (0, f"sandbox: {out} is up to date\n")
    lost, edited = sorted(out.rglob("*.yaml"))[:2]
    lost.unlink()
    edited.write_text("kind: TFJob\n")
    (out / "gone.yaml").write_text("kind: TFJob\n")
    with (out / ".gpuyard-render").open("a") as marked:
        marked.write("gone.yaml\n")
    stale = gpuyard(*render, "--verify")
    assert stale.returncode == 1
    assert stale.stdout.splitlines() == [
        f"added    {lost.relative_to(out)}",
        "removed  gone.yaml",
        "changed  .gpuyard-render",
        f"changed  {edited.relative_to(out)}",
        f"sandbox: {out} is stale: 1 added, 1 removed, 2 changed",
        "  fix: the same command without --verify",
    ]
    assert edited.read_text() == "kind: TFJob\n"
    assert not lost.exists()


def test_verify_of_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    out = tmp_path / "none" / "tree"
    result = gpuyard("render", "sandbox", "--only", "job/mnist-a", "--out", str(out), "--verify")
    assert result.returncode == 1
    assert f"sandbox: {out} is stale: 2 added" in result.stdout
    assert not out.parent.exists()


def test_render_into_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    for verify in ([], ["--verify"]):
        result = gpuyard("render", "sandbox", "--only", "component/team", "--out", str(tmp_path), *verify)
        assert result.returncode == 2
        assert "gpuyard did not write these" in result.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_folder_that_cannot_be_written_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = gpuyard("render", "sandbox", "--only", "component/team", "--out", str(tmp_path / "file" / "tree"))
    assert result.returncode == 2
    assert result.stderr.startswith(f"error  cannot write\n  {tmp_path}/file/tree\n  File exists\n")


def test_a_missing_source_stops_with_the_command_to_run(tmp_path: Path) -> None:
    for command in ("render", "check"):
        result = gpuyard(command, "sandbox", cache=tmp_path)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr == (
            "error  3 sources are not in the cache\n"
            "  gpuyard.lock.yaml\n"
            "  prometheus-operator, training-operator, volcano\n"
            "  fix: gpuyard sources pull prometheus-operator training-operator volcano, "
            "or go on without with --allow-missing-sources\n"
        )


def test_going_on_without_a_source_is_said_in_every_output(tmp_path: Path) -> None:
    allowed = "--allow-missing-sources"
    for arguments in (
        ("render", "sandbox", "--format", "json"),
        ("check", "sandbox"),
        ("check", "sandbox", "--format", "json"),
    ):
        result = gpuyard(*arguments, allowed, cache=tmp_path)
        assert "incomplete: rendered without prometheus-operator, training-operator, volcano" in result.stderr
    assert json.loads(result.stdout)["summary"]["environments"][0]["skipped"] == [
        "prometheus-operator",
        "training-operator",
        "volcano",
    ]


def test_a_deployment_never_goes_on_without_a_source(tmp_path: Path) -> None:
    result = gpuyard("deploy", "sandbox", "--engine", "apply", cache=tmp_path)
    assert result.returncode == 2
    assert "3 sources are not in the cache" in result.stderr
    assert gpuyard("deploy", "sandbox", "--allow-missing-sources").returncode == 2


def test_outside_of_a_project(tmp_path: Path) -> None:
    result = gpuyard("envs", cwd=tmp_path)
    assert result.returncode == 2
    assert "no Pulumi.yaml with infra/ here or above" in result.stderr


def loaded_modules(*arguments: str) -> set[str]:
    """Return the modules that a command imports."""
    command = [sys.executable, "-X", "importtime", "-c", "from gpuyard.cli import main; main()", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ}, check=False)
    lines = [line for line in result.stderr.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip() for line in lines}


@pytest.mark.parametrize(
    "arguments",
    [("render", "sandbox"), ("check", "sandbox", "prod", "--allow-missing-sources"), ("explain", "prod", "pools")],
)
def test_nothing_that_judges_or_shows_loads_pulumi(arguments: tuple[str, ...]) -> None:
    modules = loaded_modules(*arguments)
    assert "gpuyard.manifests.graph" in modules
    assert {
        name for name in modules if name.split(".")[0] in ("pulumi", "pulumi_kubernetes", "kubernetes", "rich")
    } == set()


def test_a_check_of_what_was_checked_loads_nothing_that_it_does_not_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUYARD_CACHE", str(tmp_path))
    first, second = (loaded_modules("check", "sandbox", "--allow-missing-sources") for _ in range(2))
    assert "jsonschema_rs" in first
    assert "gpuyard.manifests.schemas.schema" in second
    unused = {"jsonschema_rs", "cel_expr_python", "kubernetes_validate", "difflib", "http.client", "ssl"}
    # Types alone: nothing of it is there at run time.
    unused |= {"components.gpu_operator.policy"}
    unused |= {f"gpuyard.sources.{name}" for name in ("build", "charts", "https", "pull")}
    assert second & unused == set()


def test_help_loads_next_to_nothing() -> None:
    modules = loaded_modules("--help")
    assert "click" in modules
    assert modules & {"pulumi", "pydantic", "yaml", "rich", "kubernetes", "jsonschema_rs"} == set()
