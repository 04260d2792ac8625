"""What the documents show is what the commands print."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from infra import pages
from tests.cli.run import ROOT, gpuyard

README = (ROOT / "README.md").read_text()


def test_the_example_of_a_refused_change_is_real(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    shutil.copytree(ROOT / "stacks", stacks)
    job = stacks / "prod" / "jobs" / "llama-70b.yaml"
    job.write_text(job.read_text().replace("nodes: 12", "nodes: 24"))
    result = gpuyard("check", "prod", "--stacks", str(stacks), "--allow-missing-sources")
    shown = README.split("$ gpuyard check prod\n")[1].split("```")[0].strip()
    assert result.returncode == 1
    assert shown in result.stdout.replace(str(tmp_path) + "/", "")


def test_the_job_of_the_readme_is_the_shipped_one() -> None:
    shown = re.search(r"```yaml\n(name: resnet50\n.*?)```", README, re.DOTALL)
    assert shown
    shipped = (ROOT / "stacks/prod/jobs/resnet50.yaml").read_text()
    for line in shown[1].splitlines():
        assert line.split("sha256:")[0] in shipped


def test_every_command_of_the_readme_exists() -> None:
    commands = set(re.findall(r"^\| `gpuyard ([a-z]+)", README, re.MULTILINE))
    assert commands >= {"check", "render", "sandbox", "deploy"}
    for command in sorted(commands):
        assert gpuyard(command, "--help").returncode == 0


def test_every_make_target_of_the_documents_exists() -> None:
    documents = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")]
    named = {
        target for path in documents for target in re.findall(r"(?:^|`)make ([a-z-]+)", path.read_text(), re.MULTILINE)
    }
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named >= {"demo", "test", "bench", "bench-short"}
    assert named <= targets


def test_the_commands_of_the_example_find_what_they_promise() -> None:
    text = (ROOT / "examples/01-mistakes/README.md").read_text()
    commands = re.findall(r"^gpuyard (.+)$", text, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        result = gpuyard(*command.split(), "--allow-missing-sources")
        assert (result.returncode, result.stdout.splitlines()[-1]) == (1, "1 error, 0 warnings")


def test_no_generated_page_is_stale() -> None:
    stale = [str(path) for path, text in pages.pages().items() if (ROOT / path).read_text() != text]
    assert stale == []
