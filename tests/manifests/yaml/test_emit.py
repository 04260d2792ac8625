import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.manifests.yaml.emit import to_json, to_yaml
from gpuyard.manifests.yaml.read import read_documents
from tests.manifests.yaml.strings import AWKWARD, MORE, invented

ALL = [*AWKWARD, *MORE, *invented(2000)]


def test_kubectl_style():
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web"}, "annotations": {}},
        "spec": {
            "replicas": 2,
            "paused": False,
            "strategy": None,
            "template": {
                "spec": {
                    "containers": [
                        {"name": "web", "command": ["sh", "-c", "sleep 1"], "ports": [{"containerPort": 80}], "env": []}
                    ]
                }
            },
        },
    }
    assert (
        to_yaml([deployment])
        == """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels:
    app.kubernetes.io/name: web
  annotations: {}
spec:
  replicas: 2
  paused: false
  strategy: null
  template:
    spec:
      containers:
      - name: web
        command:
        - sh
        - "-c"
        - sleep 1
        ports:
        - containerPort: 80
        env: []
"""
    )


def test_documents_are_separated():
    assert to_yaml([{"a": 1}, {}, {"b": [[1, 2], [{"c": 3}]]}]) == "a: 1\n---\n{}\n---\nb:\n- - 1\n  - 2\n- - c: 3\n"
    assert to_yaml([]) == ""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("web", "web"),
        ("/data/train.py", "/data/train.py"),
        ("registry.acme.com/a@sha256:4f0c", "registry.acme.com/a@sha256:4f0c"),
        ("sleep 1", "sleep 1"),
        ("64Gi", '"64Gi"'),
        ("yes", '"yes"'),
        ("Null", '"Null"'),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        ("", '""'),
        ("caf\u00e9", '"caf\u00e9"'),
        ("x\u0085y", '"x\\u0085y"'),
        ("\ttab", '"\\ttab"'),
        ("one\ntwo", "|-\n  one\n  two"),
        ("one\n\n  two\n", "|\n  one\n\n    two"),
        ("one\n\n", "|+\n  one\n"),
        (" one\ntwo", '" one\\ntwo"'),
        ("one\n  \ntwo", '"one\\n  \\ntwo"'),
    ],
)
def test_strings(text: str, written: str):
    assert to_yaml([{"k": text}]) == f"k: {written}\n"


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (1.34, "1.34"),
        (1e-7, "1.0e-07"),
        (1.5e300, "1.5e+300"),
        (2.0, "2.0"),
        (-0.0, "-0.0"),
        (2**63, "9223372036854775808"),
    ],
)
def test_numbers(number: float, written: str):
    assert to_yaml([{"k": number}]) == f"k: {written}\n"
    assert yaml.safe_load(to_yaml([{"k": number}]))["k"] == number


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ({"k": (1,)}, TypeError, "a value is tuple (1,); manifests hold dict, list, str, int, float, bool and None"),
        ({"k": [{1: "a"}]}, TypeError, "a key is int 1; keys of manifests are str"),
        ({"k": float("inf")}, ValueError, "inf is no number that JSON can hold"),
        ({"k": "\ud83d"}, ValueError, "half of a surrogate pair is no text: '\\ud83d'"),
    ],
)
def test_what_json_cannot_hold_is_refused(value: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error) as caught:
        to_yaml([value])
    assert str(caught.value) == message


def everywhere(strings: list[str]) -> dict[str, Any]:
    """Return a manifest that has every string as a value, an item, an item of an item, and a key."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "strings"},
        "data": {f"k{index}": text for index, text in enumerate(strings)},
        "list": [*strings, [[*strings]], [{"deep": {"deeper": text}} for text in strings]],
        "keys": {text: [{text: text}] for text in strings},
    }


@pytest.mark.parametrize("loader", [yaml.SafeLoader, yaml.CSafeLoader])
def test_awkward_strings_come_back_from_a_yaml_1_1_reader(loader: Any):
    manifest = everywhere([*AWKWARD, *MORE])
    assert yaml.load(to_yaml([manifest]), Loader=loader) == manifest


def test_awkward_strings_come_back_from_kubectls_rules():
    manifest = everywhere(ALL)
    assert read_documents(to_yaml([manifest]), "out.yaml") == [manifest]


def test_awkward_strings_come_back_from_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not on PATH: not compared with its own reader")
    manifest = everywhere(ALL)
    # No server is asked, but kubectl reads the user's configuration and fails on a damaged one.
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    command = [kubectl, "label", "--local", "-o", "json", "-f", "-", "read=back"]
    run = subprocess.run(command, input=to_yaml([manifest]).encode(), capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
    back = json.loads(run.stdout)
    changed = [text for text, key in zip(ALL, manifest["data"], strict=True) if back["data"][key] != text]
    assert changed == []
    assert back["list"] == manifest["list"]
    assert back["keys"] == manifest["keys"]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.text("ab1:-#\n \t'\"|>~=e.", max_size=12)
DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.lists(st.dictionaries(TEXT, DATA, min_size=1, max_size=3), max_size=3))
def test_any_data_comes_back(documents: list[dict[str, Any]]):
    written = to_yaml(documents)
    assert list(yaml.load_all(written, Loader=yaml.CSafeLoader)) == documents
    # The same, but for whole floats: JSON does not tell 1.0 from 1.
    assert read_documents(written, "out.yaml") == documents
    assert json.loads(to_json(documents)) == documents


def test_a_part_of_several_documents_is_written_as_in_each_of_them():
    leaf = {"name": "shm", "sizes": [1, [2, 3]], "text": "two\nlines\n"}
    items = [leaf, {"first": leaf, "then": [leaf, leaf]}, [leaf, [leaf]]]
    documents = [{"a": items, "b": {"c": items, "d": leaf}}, {"a": {"c": items}}, {"z": [[items]], "leaf": leaf}]

    assert to_yaml(documents) == to_yaml(json.loads(json.dumps(documents)))


def test_documents_that_are_gone_are_not_mistaken_for_later_ones():
    # Each is freed before the next is made, mostly at the same address.
    def documents():
        for number in range(100):
            part = {"number": number}
            yield {"a": part, "b": part}

    assert to_yaml(documents()) == "---\n".join(f"a:\n  number: {n}\nb:\n  number: {n}\n" for n in range(100))


def test_json_is_one_array_with_an_object_a_line():
    assert to_json([{"a": "caf\u00e9"}, {"b": [1]}]) == '[\n{"a": "caf\\u00e9"},\n{"b": [1]}\n]\n'
    assert to_json([]) == "[]\n"
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json([{"a": float("nan")}])
