"""Trees for a repository: which files, what is touched, and that nobody ever sees half of one."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gpuyard.cli import swap
from gpuyard.cli.swap import Folder
from gpuyard.cli.tree import MARK, Changes, compare, object_paths, tree_files, write_tree
from gpuyard.errors import InputError
from gpuyard.manifests import Rendered, declare
from tests.cli.run import ROOT


def config_map(name: str, value: str = "1", namespace: str = "t") -> Rendered:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return declare({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}).of("c")


def files(*objects: Rendered, form: str = "yaml") -> dict[str, bytes]:
    entries = [(path, one.manifest) for path, one in zip(object_paths(objects), objects, strict=True)]
    return tree_files(entries, form)


def content(out: Path) -> dict[str, bytes]:
    return {
        Path(folder, name).relative_to(out).as_posix(): Path(folder, name).read_bytes()
        for folder, _, names in os.walk(out)
        for name in names
    }


def kind(kind: str, name: str, namespace: str = "", group: str = "", id: str | None = None) -> Rendered:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    api_version = f"{group}/v1" if group else "v1"
    return declare({"apiVersion": api_version, "kind": kind, "metadata": metadata}, id=id).of("c")


def test_a_file_is_named_by_component_namespace_kind_and_name() -> None:
    objects = [kind("Namespace", "vision"), kind("Role", "training", "vision", "rbac.authorization.k8s.io")]
    assert object_paths(objects) == ["c/namespace-vision", "c/vision/role-training"]


def test_two_runs_of_a_job_are_one_file_so_that_a_review_shows_what_changed() -> None:
    before = kind("PyTorchJob", "resnet50-09be77", "vision", "kubeflow.org", id="PyTorchJob/vision/resnet50")
    after = kind("PyTorchJob", "resnet50-5c1f2a", "vision", "kubeflow.org", id="PyTorchJob/vision/resnet50")
    assert object_paths([before]) == object_paths([after]) == ["c/vision/pytorchjob-resnet50"]


def test_no_two_objects_share_a_file() -> None:
    objects = [
        kind("Role", "c", "a-b"),
        kind("Role", "b-c", "a"),
        kind("Role", "B-c", "a"),
        kind("ClusterRole", "system:x"),
        kind("ClusterRole", "system_x"),
        kind("Job", "j", "a", "batch"),
        kind("Job", "j", "a", "batch.volcano.sh"),
        kind("ConfigMap", "n" * 253, "a"),
    ]
    paths = object_paths(objects)
    assert paths[:2] == ["c/a-b/role-c", "c/a/role-b-c"]
    assert len({path.lower() for path in paths}) == len(objects)
    assert max(len(part) for path in paths for part in path.split("/")) < 240
    # Their order, and what is beside them, changes no name but of those that would be one file.
    assert object_paths(objects[::-1]) == paths[::-1]


def test_only_what_changed_is_touched(tmp_path: Path) -> None:
    out = tmp_path / "prod"
    assert write_tree(files(config_map("a"), config_map("b"), config_map("c")), out) == Changes(
        [MARK, "c/t/configmap-a.yaml", "c/t/configmap-b.yaml", "c/t/configmap-c.yaml"], [], []
    )
    for name in ("a", "b"):
        os.utime(out / f"c/t/configmap-{name}.yaml", (1_000_000_000, 1_000_000_000))
    changes = write_tree(files(config_map("a"), config_map("b", "2"), config_map("d")), out)
    assert changes == Changes(["c/t/configmap-d.yaml"], ["c/t/configmap-c.yaml"], [MARK, "c/t/configmap-b.yaml"])
    assert (out / "c/t/configmap-a.yaml").stat().st_mtime == 1_000_000_000
    assert (out / "c/t/configmap-b.yaml").stat().st_mtime > 1_000_000_000
    assert content(out) == files(config_map("a"), config_map("b", "2"), config_map("d"))
    assert os.listdir(tmp_path) == ["prod"]


def test_a_tree_that_is_up_to_date_is_not_touched_at_all(tmp_path: Path) -> None:
    out = tmp_path / "prod"
    write_tree(files(config_map("a")), out)
    before = (out.stat().st_ino, out.stat().st_mtime_ns, (out / MARK).stat().st_ctime_ns)
    assert write_tree(files(config_map("a")), out) == Changes([], [], [])
    assert (out.stat().st_ino, out.stat().st_mtime_ns, (out / MARK).stat().st_ctime_ns) == before


def test_each_json_file_is_one_object(tmp_path: Path) -> None:
    write_tree(files(config_map("ä"), form="json"), tmp_path / "out")
    text = (tmp_path / "out" / object_paths([config_map("ä")])[0]).with_suffix(".json").read_text(encoding="utf-8")
    assert json.loads(text) == config_map("ä").manifest


def test_files_that_no_render_wrote_are_refused_and_stay(tmp_path: Path) -> None:
    write_tree(files(config_map("a")), tmp_path)
    (tmp_path / "c" / "thesis.tex").write_text("years of work")
    (tmp_path / "link").symlink_to(tmp_path.parent)
    with pytest.raises(InputError) as caught:
        write_tree(files(config_map("b")), tmp_path)
    assert str(caught.value) == (
        f"error  the folder holds other files\n  {tmp_path}\n  c/thesis.tex, link\n"
        "  a render replaces the whole folder, and gpuyard did not write these\n"
        "  fix: move them away, or give a new or an empty folder"
    )
    assert (tmp_path / "c" / "thesis.tex").read_text() == "years of work"
    assert (tmp_path / "c/t/configmap-a.yaml").exists()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(InputError) as caught:
        write_tree(files(config_map("a")), tmp_path / "out")
    assert str(caught.value).startswith(f"error  not a folder\n  {tmp_path}/out\n")
    assert (tmp_path / "out").read_text() == "mine"


def test_a_link_to_a_folder_stays_one_and_a_file_that_became_a_link_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o750)
    (tmp_path / "out").symlink_to("real")
    write_tree(files(config_map("a")), tmp_path / "out")
    one = tmp_path / "real/c/t/configmap-a.yaml"
    one.rename(tmp_path / "elsewhere.yaml")
    one.symlink_to(tmp_path / "elsewhere.yaml")
    assert write_tree(files(config_map("a")), tmp_path / "out").changed == ["c/t/configmap-a.yaml"]
    assert not one.is_symlink()
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o750


def test_a_tree_that_is_not_whole_says_so() -> None:
    mark = tree_files([], "yaml", skipped=["gpu-operator"])[MARK].decode()
    assert "# Incomplete: rendered without gpu-operator, which was not in the cache.\n" in mark


def test_compare_only_reads(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert compare(files(config_map("a")), out) == Changes([MARK, "c/t/configmap-a.yaml"], [], [])
    write_tree(files(config_map("a"), config_map("b")), out)
    before = content(out)
    assert compare(files(config_map("a", "2"), config_map("c")), out) == Changes(
        ["c/t/configmap-c.yaml"], ["c/t/configmap-b.yaml"], [MARK, "c/t/configmap-a.yaml"]
    )
    assert content(out) == before
    assert os.listdir(tmp_path) == ["out"]


# A process that is killed, or that cannot go on

OLD = files(*(config_map(f"m{number}") for number in range(40)))
NEW = files(*(config_map(f"m{number}", str(number % 2)) for number in range(10, 60)))

PROGRAM = """
import json, pathlib, sys
from gpuyard.cli import swap
from gpuyard.cli.tree import write_tree
trees = [{path: text.encode() for path, text in tree.items()} for tree in json.load(open(sys.argv[2]))]
if sys.argv[3] == "moved":
    swap.exchange = lambda one, other: False
print("ready", flush=True)
while True:
    for tree in trees:
        write_tree(tree, pathlib.Path(sys.argv[1]))
"""


@contextlib.contextmanager
def rendering(out: Path, how: str) -> Iterator[None]:
    """Have a process write the old tree and the new one in turn; at the end it is killed in the middle of it."""
    trees = out.parent / "trees.json"
    trees.write_text(json.dumps([{path: text.decode() for path, text in tree.items()} for tree in (NEW, OLD)]))
    command = [sys.executable, "-c", PROGRAM, str(out), str(trees), how]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.kill()
        process.communicate()


def is_hidden_left(out: Path) -> bool:
    return any(name.startswith(".out.") for name in os.listdir(out.parent))


def test_killed_at_any_moment_the_tree_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_tree(OLD, out)
    moments, seen, leftovers = random.Random(7), {"old": 0, "new": 0}, 0
    for _ in range(50):
        with rendering(out, "exchanged"):
            time.sleep(moments.uniform(0, 0.1))
        found = content(out)
        assert found in (OLD, NEW)
        seen["old" if found == OLD else "new"] += 1
        leftovers += is_hidden_left(out)
    # They were killed in the middle of it, and each cleared away what the one before had left.
    assert leftovers > 0
    assert min(seen.values()) > 0
    write_tree(OLD, out)
    assert content(out) == OLD
    assert not is_hidden_left(out)


def test_readers_see_one_of_the_two_trees_at_any_moment(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_tree(OLD, out)
    with rendering(out, "exchanged"):
        for _ in range(2000):
            assert (out / MARK).read_bytes() in (OLD[MARK], NEW[MARK])


def test_where_folders_cannot_be_exchanged_a_kill_leaves_no_mixture_and_the_next_run_repairs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_tree(OLD, out)
    for _ in range(10):
        with rendering(out, "moved"):
            time.sleep(0.02)
        with Folder(out):
            assert content(out) in (OLD, NEW)
        assert not is_hidden_left(out)


def test_killed_between_the_two_moves_the_old_tree_comes_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_tree(OLD, out)
    (tmp_path / ".out.gpuyard" / "new" / "c").mkdir(parents=True)
    out.rename(tmp_path / ".out.gpuyard" / "old")
    with Folder(out):
        assert content(out) == OLD
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_second_process_waits_for_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    out = tmp_path / "out"
    if not can_exchange:
        monkeypatch.setattr(swap, "exchange", lambda one, other: False)
    with rendering(out, "exchanged" if can_exchange else "moved"):
        for _ in range(20):
            with Folder(out) as folder:
                folder.replace({"mine": b"1"})
                assert content(out) == {"mine": b"1"}
                folder.path.joinpath("mine").unlink()


def test_a_full_disk_leaves_the_old_tree(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_tree(OLD, out)
    large: Mapping[str, bytes] = {**NEW, **files(config_map("large", "x" * 100_000))}
    old_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, old_limit[1]))
    try:
        with pytest.raises(InputError) as caught:
            write_tree(large, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)
    assert str(caught.value) == (
        f"error  cannot write\n  {out}\n  File too large\n"
        "  fix: choose a folder that you may write to, in one that you may write to"
    )
    assert content(out) == OLD
    assert os.listdir(tmp_path) == ["out"]


def test_an_error_between_the_two_moves_puts_the_old_tree_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    write_tree(OLD, out)
    monkeypatch.setattr(swap, "exchange", lambda one, other: False)
    rename = os.rename

    def fail_for_the_new_one(source: Path, target: Path) -> None:
        if source.name == "new":
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_for_the_new_one)
    with pytest.raises(InputError, match="Input/output error"):
        write_tree(NEW, out)
    assert content(out) == OLD
    assert os.listdir(tmp_path) == ["out"]


def test_without_hard_links_files_are_copied_with_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(source: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    out = tmp_path / "out"
    write_tree(OLD, out)
    same = out / "c/t/configmap-m11.yaml"
    os.utime(same, (1_000_000_000, 1_000_000_000))
    write_tree({**OLD, **files(config_map("m12", "2"))} | {MARK: OLD[MARK]}, out)
    assert same.stat().st_mtime == 1_000_000_000


def test_an_exchange_that_fails_for_another_reason_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        swap.exchange(tmp_path / "one", tmp_path / "other")
