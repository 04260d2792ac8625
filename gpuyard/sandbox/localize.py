"""What is different for a controller that runs as a local process: one table, worked out from its Deployment.

Nothing here starts or reads a cluster. Whatever the table does not name is used exactly as it was rendered, so that a
wrong argument, a missing ConfigMap or a Service with the wrong port fails in the sandbox as it would in a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gpuyard.errors import InputError, Problem, listed
from gpuyard.manifests import Manifest, Rendered
from gpuyard.sandbox.processes import free_ports
from gpuyard.sandbox.programs import PROGRAMS, Program, repository


class Substitution(NamedTuple):
    """One value that is another one in the sandbox."""

    object: str
    field: str
    rendered: str
    local: str


@dataclass(frozen=True, slots=True)
class Mount:
    """A ConfigMap, a Secret or an empty folder that the container sees at `path`, and the folder in its place."""

    kind: str
    name: str
    path: str
    folder: Path
    items: tuple[tuple[str, str], ...] = ()
    optional: bool = False


@dataclass(frozen=True)
class Controller:
    """A container of a Deployment as a local process. `table`: what is different for it."""

    name: str
    namespace: str
    account: str
    program: Program
    folder: Path
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    ports: Mapping[str, int]
    table: tuple[Substitution, ...]


def known_container(deployment: Manifest) -> tuple[Manifest, Program] | None:
    """Return the container of a Deployment that runs as a process, and its program."""
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        if program := PROGRAMS.get(repository(container["image"])):
            return container, program
    return None


def run_locally(
    deployment: Rendered, binaries: Mapping[str, Path], folder: Path, ports: Mapping[str, int] | None = None
) -> Controller | None:
    """Return how a Deployment whose program is known runs as a process; None for any other.

    folder: of this controller alone. ports: by purpose; left out, free ones are chosen.
    Raises InputError for a controller that cannot run outside a pod.
    """
    known = known_container(deployment.manifest)
    if not known:
        return None
    container, program = known
    if not ports or ports.keys() != program.ports.keys():
        ports = dict(zip(program.ports, free_ports(len(program.ports)), strict=True))
    who = deployment.identity
    pod: Manifest = deployment.manifest["spec"]["template"]["spec"]
    account = pod.get("serviceAccountName") or pod.get("serviceAccount") or "default"
    table: list[Substitution] = []

    def row(field: str, rendered: str, local: str) -> None:
        table.append(Substitution(str(who), field, rendered, local))

    binary = binaries[program.binary]
    row("image", container["image"], str(binary))
    if deployment.manifest["spec"].get("replicas", 1) != 1:
        row("spec.replicas", str(deployment.manifest["spec"]["replicas"]), "1 process")
    mounts = tuple(_mounts(deployment, pod, container, folder))
    for mount in mounts:
        row(f"volumeMounts {mount.path}", f"{mount.kind} {mount.name}".strip(), str(mount.folder))

    folders = {mount.path: str(mount.folder) for mount in sorted(mounts, key=lambda one: len(one.path), reverse=True)}
    # All in one pass: the folder in place of one path may begin like another path.
    paths = re.compile(rf"(?<![\w./-])({'|'.join(map(re.escape, folders)) or '(?!)'})(?=/|$)")

    def moved(text: str) -> str:
        return paths.sub(lambda match: folders[match[1]], text)

    arguments = [*container.get("command", [])[1:], *container.get("args", [])]
    if container.get("command"):
        row("command", container["command"][0], str(binary))
    kept = [moved(argument) for argument in arguments]
    row("serviceAccountName", account, f"--kubeconfig={folder / 'kubeconfig'}, acting as this account")
    flags = {port.flag: port.form.format(ports[purpose]) for purpose, port in program.ports.items()}
    for flag, value in (flags | dict(program.flags)).items():
        kept, before = set_flag(kept, flag, value)
        row(f"args {flag}", before, value)
    environment = {variable["name"]: moved(_value(deployment, variable)) for variable in container.get("env", ())}
    return Controller(
        name=who.name,
        namespace=who.namespace,
        account=account,
        program=program,
        folder=folder,
        command=(str(binary), *kept, f"--kubeconfig={folder / 'kubeconfig'}"),
        environment=environment,
        mounts=mounts,
        ports=dict(ports),
        table=tuple(table),
    )


def _mounts(rendered: Rendered, pod: Manifest, container: Manifest, folder: Path) -> Iterator[Mount]:
    volumes: dict[str, Any] = {volume["name"]: volume for volume in pod.get("volumes", ())}
    for mount in container.get("volumeMounts", ()):
        path: str = mount["mountPath"].rstrip("/")
        # A program that asks for the temporary folder gets TMPDIR, so what is mounted below /tmp has to be there.
        is_temporary = path == "/tmp" or path.startswith("/tmp/")
        below = folder / path.lstrip("/") if is_temporary else folder / "mounts" / path.lstrip("/")
        volume: Any = volumes.get(mount["name"], {})
        source: Any
        if "configMap" in volume:
            kind, source = "ConfigMap", volume["configMap"]
        elif "secret" in volume:
            kind, source = "Secret", volume["secret"]
        elif "emptyDir" in volume:
            kind, source = "", {}
        else:
            found = ", ".join(key for key in volume if key != "name") or "nothing"
            raise InputError(
                Problem(
                    "a local controller cannot have this volume",
                    rendered.origin,
                    f"{rendered.identity}: volume {mount['name']}",
                    f"found {found}; accepted: configMap, secret, emptyDir",
                )
            )
        items = tuple((item["key"], item["path"]) for item in source.get("items", ()))
        name = source.get("name") or source.get("secretName") or ""
        yield Mount(kind, name, path, below, items, bool(source.get("optional")))


def _value(rendered: Rendered, variable: Manifest) -> str:
    """Return the value of an environment variable; the pod's own fields are those of the local process."""
    if "valueFrom" not in variable:
        return variable.get("value", "")
    who = rendered.identity
    fields = {"metadata.namespace": who.namespace, "metadata.name": f"{who.name}-local", "status.podIP": "127.0.0.1"}
    path = variable["valueFrom"].get("fieldRef", {}).get("fieldPath", "")
    if path not in fields:
        raise InputError(
            Problem(
                "a local controller cannot have this variable",
                rendered.origin,
                f"{who}: env {variable['name']}",
                f"found {variable['valueFrom']}; accepted: a value, or a fieldRef to {listed(fields)}",
            )
        )
    return fields[path]


def set_flag(arguments: list[str], flag: str, value: str) -> tuple[list[str], str]:
    """Return the arguments with a flag set, and the value it had; one dash or two, `=` or two words are the same."""
    before = "(default)"
    kept: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, equals, given = argument.partition("=")
        if name.lstrip("-") == flag.lstrip("-") and name.startswith("-"):
            before = given if equals else next(rest, "")
        else:
            kept.append(argument)
    return [*kept, f"{flag}={value}"], before
