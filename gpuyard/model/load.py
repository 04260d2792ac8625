"""Reads `stacks/<environment>/` into an Environment, or says everything that is wrong with it at once."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from gpuyard.errors import InputError, Origin, Problem, listed, nearest
from gpuyard.manifests.yaml.read import field_name
from gpuyard.model.complain import problems, value_text
from gpuyard.model.environment import Cluster, Environment, Pool, Scheduling, Storage, Team
from gpuyard.model.jobs import Job
from gpuyard.model.layers import Document, read_file, read_layers, shown
from gpuyard.model.references import broken_references
from gpuyard.model.registry import Registry
from gpuyard.model.settings import DnsLabel, Settings

SUFFIXES = (".yaml", ".yml", ".json")


class EnvironmentFile(Settings):
    """`environment.yaml` after its layers are merged. What an add-on takes is checked by the add-on's own model."""

    cluster: Cluster
    pools: dict[DnsLabel, Pool] = Field(default_factory=dict)
    scheduling: Scheduling = Scheduling()
    storage: Storage = Storage()
    addons: dict[str, dict[str, Any]] = Field(default_factory=dict)


S = TypeVar("S", bound=Settings)


def environments(stacks: FilePath) -> list[str]:
    """Return the names of the environments in a stacks folder, sorted: the folders with an environment.yaml."""
    if not stacks.is_dir():
        raise InputError(
            Problem("no such folder", Origin(str(stacks)), fix="give the folder of environments with --stacks")
        )
    return sorted(folder.name for folder in stacks.iterdir() if (folder / "environment.yaml").is_file())


def load(stacks: FilePath, name: str, registry: Registry) -> Environment:
    """Read one environment. Raises InputError with every problem of the earliest stage that has one."""
    known = environments(stacks)
    if name not in known:
        hint = nearest(name, known) or f"accepted: {listed(known)}"
        raise InputError(Problem("no such environment", Origin(str(stacks)), detail=f"{name}; {hint}"))
    folder = stacks / name
    document = read_layers(folder / "environment.yaml", stacks)
    found: list[Problem] = []
    file = _validate(EnvironmentFile, document, (), found)
    teams = _named_files(folder / "teams", stacks, "teams", document, found)
    jobs = _named_files(folder / "jobs", stacks, "jobs", document, found)
    checked_teams = {key: _validate(Team, document, ("teams", key), found) for key in teams}
    checked_jobs = {key: _job(key, document, registry, found) for key in jobs}
    addons = _addons(document, registry, found) if file else {}
    if found or not file:
        raise InputError(sorted(found, key=lambda problem: (problem.origin or Origin(""), problem.field)))
    gang = file.scheduling.gang
    if gang in registry.addons and gang not in addons:
        # Naming the gang scheduler is enough to get it; an entry under addons only changes its settings.
        addons[gang] = _defaults(registry, gang)
    environment = Environment(
        name=name,
        cluster=file.cluster,
        pools=file.pools,
        scheduling=file.scheduling,
        storage=file.storage,
        addons=dict(sorted(addons.items())),
        teams={key: team for key, team in checked_teams.items() if team},
        jobs={key: job for key, job in checked_jobs.items() if job},
        written=document.written,
    )
    broken = broken_references(environment, registry)
    if broken:
        raise InputError(broken)
    return environment


def _defaults(registry: Registry, addon: str) -> Settings:
    model = registry.addons[addon].settings
    assert model is not None
    return model()


def _validate(model: type[S], document: Document, prefix: tuple[str, ...], found: list[Problem]) -> S | None:
    data: Any = document.data
    for key in prefix:
        data = data[key]
    try:
        return model.model_validate(data if prefix else {k: v for k, v in data.items() if k not in ("teams", "jobs")})
    except ValidationError as error:
        found += problems(error, model, document, prefix)
        return None


def _named_files(
    folder: FilePath, stacks: FilePath, section: str, document: Document, found: list[Problem]
) -> list[str]:
    """Read the files of a folder into `document` under their `name`, and return the names in file order."""
    if section in document.data:
        what = f"one file for each of the {section} in {shown(folder, stacks)}/"
        found.append(Problem("unknown field", document.origin((section,)), section, f"{section} are files: {what}"))
        del document.data[section]
    merged = Document()
    files = sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES) if folder.is_dir() else []
    for file in files:
        try:
            data, lines, name = read_file(file, stacks)
        except InputError as error:
            found += error.problems
            continue
        key = data.get("name")
        if not isinstance(key, str):
            key = file.stem
        other = merged.written.get((section, key))
        if other:
            found.append(
                Problem(
                    f"two {section} with one name",
                    Origin(name, lines.get(("name",), 0)),
                    "name",
                    f"{key} is also the name of {other[-1].origin.file}",
                    "give one of them another name",
                )
            )
            continue
        shifted = {(section, key, *path): line for path, line in lines.items()}
        merged.overlay({section: {key: data}}, {(section,): 1, **shifted}, name)
    document.data[section] = merged.data.get(section, {})
    document.written.update(merged.written)
    return list(document.data[section])


def _job(key: str, document: Document, registry: Registry, found: list[Problem]) -> Job | None:
    path = ("jobs", key)
    kind = document.data["jobs"][key].get("kind")
    if kind is not None and kind not in registry.kinds:
        hint = nearest(str(kind), registry.kinds) or f"accepted: {listed(registry.kinds)}"
        found.append(Problem("unknown value", document.origin((*path, "kind")), "kind", f"{value_text(kind)}; {hint}"))
        return None
    model = registry.kinds[kind].model if kind else Job
    return _validate(model, document, path, found)


def _addons(document: Document, registry: Registry, found: list[Problem]) -> dict[str, Settings]:
    addons: dict[str, Settings] = {}
    for name in document.data.get("addons", {}):
        path = ("addons", name)
        if name not in registry.addons:
            hint = nearest(name, registry.addons) or f"accepted: {listed(registry.addons)}"
            found.append(Problem("unknown add-on", document.origin(path), field_name(path), hint))
            continue
        model = registry.addons[name].settings
        assert model is not None
        checked = _validate(model, document, path, found)
        if checked is not None:
            addons[name] = checked
    return addons
