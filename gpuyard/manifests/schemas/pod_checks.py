"""What the API server checks of pods and OpenAPI does not say.

Each list is looked at as a whole at first, in few steps, because nearly always all is well; only then item by item.

Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go (ValidatePodSpec and what it calls); for what stands
twice in a list with keys, server-side apply (sigs.k8s.io/structured-merge-diff), which refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import itemgetter
from typing import Any

from gpuyard.manifests.schemas.amounts import check_container_resources
from gpuyard.manifests.schemas.shapes import Found, Steps, as_list, is_map, maps, texts
from gpuyard.manifests.schemas.text import env_problem, label_problem, port_name_problem, port_problem

_NAME, _PATH = itemgetter("name"), itemgetter("mountPath")
_ODD = (KeyError, TypeError)
"""Raised by a first look at a list that its schema refuses; such a list is looked at item by item."""

CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def check_pod(pod: object, claims: Iterable[str] = ()) -> list[Found]:
    """Check the spec of a pod; `claims`: the volumes that come from the claim templates of a StatefulSet."""
    if not is_map(pod):
        return []
    found: list[Found] = []
    volumes: Any = pod.get("volumes") or ()
    try:
        names = set(map(_NAME, volumes))
        good = (
            len(names) == len(volumes) and max(map(len, volumes), default=2) == 2 and not any(map(label_problem, names))
        )
    except _ODD:
        names, good = set[str](), False
    if not good:
        names = {*texts(maps(volumes), "name")}
        found += _check_volumes(volumes)
    _check_containers(pod, names.union(claims), found)
    return found


def check_pod_part(pod: object) -> list[Found]:
    """Check containers that an operator adds to a pod of its own, whose volumes and images only it knows."""
    found: list[Found] = []
    if is_map(pod):
        _check_containers(pod, None, found)
    return found


def check_unique_name(name: object, steps: Steps, first: dict[str, Steps], check: Callable[[str], str]) -> list[Found]:
    """Check a name of one of several things; `first` says where each was seen."""
    if not isinstance(name, str) or not name:
        return []
    problem = check(name) or (f"{_place(first[name])} has this name too" if name in first else "")
    first.setdefault(name, steps)
    return [Found((*steps, "name"), name, problem)] if problem else []


def _check_containers(pod: dict[str, Any], volumes: set[str] | None, found: list[Found]) -> None:
    names: dict[str, Steps] = {}
    for field in CONTAINERS:
        for index, container in enumerate(as_list(pod[field])) if field in pod else ():
            if not is_map(container):
                continue
            steps = (field, index)
            found += check_unique_name(container.get("name"), steps, names, label_problem)
            if volumes is not None and not container.get("image"):
                found.append(Found((*steps, "image"), container.get("image"), "required field is missing"))
            if "resources" in container:
                found += check_container_resources(container["resources"], *steps, "resources")
            if "env" in container:
                found += _check_env(container["env"], *steps, "env")
            if "ports" in container:
                found += _check_ports(container["ports"], *steps, "ports")
            if "volumeMounts" in container:
                found += _check_mounts(container["volumeMounts"], volumes, *steps, "volumeMounts")


def _check_env(env: Any, *steps: str | int) -> Iterable[Found]:
    try:
        # With a name, a value and a source there are three fields.
        good = _are_variables(tuple(map(_NAME, env or ()))) and max(map(len, env), default=2) <= 2
    except _ODD:
        good = False
    return () if good else _each_variable(env, steps)


@lru_cache(maxsize=1024)
def _are_variables(names: tuple[str, ...]) -> bool:
    return len(set(names)) == len(names) and not any(map(env_problem, names))


def _each_variable(env: object, steps: Steps) -> Iterator[Found]:
    first: dict[str, Steps] = {}
    for index, each in enumerate(as_list(env)):
        if is_map(each):
            yield from check_unique_name(each.get("name"), (*steps, index), first, env_problem)
            if each.get("value") and each.get("valueFrom"):
                message = "`value` and `valueFrom` exclude each other"
                yield Found((*steps, index, "valueFrom"), each["valueFrom"], message)


def _check_ports(ports: object, *steps: str | int) -> Iterator[Found]:
    names: dict[str, Steps] = {}
    numbers: dict[tuple[str, str], int] = {}
    for index, port in enumerate(as_list(ports)):
        if not is_map(port):
            continue
        here, number = (*steps, index), port.get("containerPort")
        if problem := port_problem(number):
            yield Found((*here, "containerPort"), number, problem)
        # 0 is the same as left out here.
        if problem := port_problem(port.get("hostPort") or None):
            yield Found((*here, "hostPort"), port["hostPort"], problem)
        yield from check_unique_name(port.get("name"), here, names, port_name_problem)
        key = (str(number), str(port.get("protocol") or "TCP"))
        if key in numbers:
            yield Found((*here, "containerPort"), number, f"ports[{numbers[key]}] is {number} {key[1]} too")
        numbers.setdefault(key, index)


def _check_volumes(volumes: object) -> Iterator[Found]:
    names: dict[str, Steps] = {}
    for index, volume in enumerate(as_list(volumes)):
        if is_map(volume):
            yield from check_unique_name(volume.get("name"), ("volumes", index), names, label_problem)
            # Of a volume without a source the API server makes an emptyDir.
            sources = sorted(key for key in volume if key != "name")
            if len(sources) > 1:
                message = f"a volume has one source; this one has {len(sources)}: {', '.join(sources)}"
                yield Found(("volumes", index), volume, message)


def _check_mounts(mounts: Any, volumes: set[str] | None, *steps: str | int) -> Iterable[Found]:
    try:
        good = len(set(map(_PATH, mounts or ()))) == len(mounts)
        good = good and (volumes is None or volumes.issuperset(map(_NAME, mounts)))
    except _ODD:
        good = False
    return () if good else _each_mount(mounts, volumes, steps)


def _each_mount(mounts: object, volumes: set[str] | None, steps: Steps) -> Iterator[Found]:
    paths: dict[str, int] = {}
    for index, mount in enumerate(as_list(mounts)):
        if not is_map(mount):
            continue
        name, path = mount.get("name"), mount.get("mountPath")
        if volumes is not None and isinstance(name, str) and name not in volumes:
            known = ", ".join(sorted(volumes)) or "none"
            yield Found((*steps, index, "name"), name, f"no volume of this pod is called {name}; volumes: {known}")
        if isinstance(path, str):
            if path in paths:
                yield Found((*steps, index, "mountPath"), path, f"{steps[-1]}[{paths[path]}] is mounted there too")
            paths.setdefault(path, index)


def _place(steps: Steps) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
