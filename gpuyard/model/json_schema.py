"""JSON Schemas of the files that users write, for completion and checks in an editor."""

from __future__ import annotations

from typing import Any

from gpuyard.model.environment import Team
from gpuyard.model.load import EnvironmentFile
from gpuyard.model.registry import Registry


def environment_schema(registry: Registry) -> dict[str, Any]:
    """Return the schema of environment.yaml and of the files it extends."""
    schema = EnvironmentFile.model_json_schema(by_alias=True)
    addons: dict[str, Any] = {}
    for name, component in sorted(registry.addons.items()):
        assert component.settings is not None
        settings = component.settings.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        schema["$defs"] |= settings.pop("$defs", {})
        addons[name] = settings
    schema["properties"]["addons"] = {"type": "object", "properties": addons, "additionalProperties": False}
    schema["properties"]["extends"] = {"type": "string", "description": "Path of the file that this one is laid over."}
    # A file that extends another may leave out everything, and null deletes what the other one has.
    schema.pop("required", None)
    return schema


def team_schema() -> dict[str, Any]:
    """Return the schema of a file of teams/."""
    return Team.model_json_schema(by_alias=True)


def job_schema(registry: Registry) -> dict[str, Any]:
    """Return the schema of a file of jobs/: the kind decides which one applies."""
    kinds: list[Any] = []
    definitions: dict[str, Any] = {}
    for name, kind in sorted(registry.kinds.items()):
        schema = kind.model.model_json_schema(by_alias=True)
        definitions |= schema.pop("$defs", {})
        schema["properties"]["kind"] = {"const": name}
        kinds.append(schema)
    return {"oneOf": kinds, "$defs": definitions}
