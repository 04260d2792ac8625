"""How layered files merge and how the places of values are kept."""

from __future__ import annotations

from pathlib import Path

from gpuyard.model.layers import read_layers


def layers(folder: Path, base: str, leaf: str) -> tuple[dict[str, object], dict[str, list[str]]]:
    (folder / "base.yaml").write_text(base)
    (folder / "leaf.yaml").write_text("extends: base.yaml\n" + leaf)
    document = read_layers(folder / "leaf.yaml", folder)
    written = {
        ".".join(map(str, path)): [f"{Path(place.origin.file).name}:{place.origin.line}" for place in places]
        for path, places in document.written.items()
    }
    return document.data, written


def test_maps_merge_and_scalars_replace(tmp_path: Path) -> None:
    data, written = layers(tmp_path, "a: {x: 1, z: 2}\n", "a: {z: 3}\n")
    assert data == {"a": {"x": 1, "z": 3}}
    assert written["a.x"] == ["base.yaml:1"]
    assert written["a.z"] == ["base.yaml:1", "leaf.yaml:2"]


def test_lists_replace(tmp_path: Path) -> None:
    data, written = layers(tmp_path, "a: [1, 2, 3]\n", "a:\n- 4\n")
    assert data == {"a": [4]}
    assert written["a.0"] == ["leaf.yaml:3"]
    assert "a.1" not in written


def test_null_deletes(tmp_path: Path) -> None:
    data, written = layers(tmp_path, "a: {x: 1}\nb: {z: 1}\n", "a: null\nb: {z: ~}\n")
    assert data == {"b": {}}
    assert "a.x" not in written
    assert "b.z" not in written


def test_a_map_over_a_scalar_replaces_it(tmp_path: Path) -> None:
    data, _ = layers(tmp_path, "a: 1\n", "a: {x: 1}\n")
    assert data == {"a": {"x": 1}}


def test_a_scalar_over_a_map_forgets_what_was_in_it(tmp_path: Path) -> None:
    data, written = layers(tmp_path, "a: {x: 1}\n", "a: 8\n")
    assert data == {"a": 8}
    assert "a.x" not in written
