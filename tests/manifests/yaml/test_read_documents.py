import pytest

from gpuyard.errors import InputError
from gpuyard.manifests.yaml.read import read_documents


def problem(text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        read_documents(text, "upstream.yaml")
    return str(caught.value)


def test_documents_of_a_file():
    text = """\
# Copyright
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  1: "one"
  on: "switch"
  lr: 1e-4
  time: 12:30:45
  day: 2024-01-01
  operator: =
  mode: 0644
---
---
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}}
"""
    assert read_documents(text, "upstream.yaml") == [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a"},
            "data": {
                "1": "one",
                "true": "switch",
                "lr": 0.0001,
                "time": "12:30:45",
                "day": "2024-01-01",
                "operator": "=",
                "mode": 420,
            },
        },
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}},
    ]
    assert read_documents("# nothing\n---\n", "upstream.yaml") == []


def test_aliases_are_copies_and_the_own_key_wins_over_a_merged_one():
    text = "base: &base {a: 1, b: [2]}\none:\n  a: 9\n  <<: *base\ntwo: {<<: [{a: 3}, *base]}\nthree: *base\n"
    (document,) = read_documents(text, "upstream.yaml")
    assert document["one"] == {"a": 9, "b": [2]}
    assert document["two"] == {"a": 3, "b": [2]}
    document["three"]["b"].append(4)
    assert document["base"] == {"a": 1, "b": [2]}


def test_explicit_tags():
    assert read_documents("a: !!str 1\nb: !!int 0x10\nc: !!map {}\nd: !!null ''\n", "upstream.yaml") == [
        {"a": "1", "b": 16, "c": {}, "d": None}
    ]
    assert problem("a: !Ref x\nb: !!binary eA==\n") == (
        "error  unknown tag\n  upstream.yaml:1   a\n  `!Ref` is no tag that Kubernetes files use\n"
        "  fix: write the value without the tag\n\n"
        "error  unknown tag\n  upstream.yaml:2   b\n  `!!binary` is no tag that Kubernetes files use\n"
        "  fix: write the value without the tag"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a: 1\n---\n- b\n",
            "error  not a map\n  upstream.yaml:3\n"
            "  the document is a list; a Kubernetes object is a map with apiVersion and kind",
        ),
        (
            "spec:\n  replicas: 1\n  replicas: 2\n",
            "error  duplicate key\n  upstream.yaml:3   spec.replicas\n  `replicas` is written twice: lines 2 and 3\n"
            "  fix: keep one of them",
        ),
        (
            "a: .inf\n",
            "error  not a number\n  upstream.yaml:1   a\n  `.inf` is no number that JSON can hold\n"
            '  fix: write ".inf" in quotes',
        ),
        (
            "data: {1.5: a}\n",
            "error  key is not text\n  upstream.yaml:1   data.1.5\n  `1.5` is the number 1.5; keys are text\n"
            '  fix: write "1.5" in quotes',
        ),
    ],
)
def test_refused(text: str, said: str):
    assert problem(text) == said
