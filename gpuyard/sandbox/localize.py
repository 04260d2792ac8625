"""What is different for a controller that runs as a local process: one table, worked out from the rendered objects.

Nothing here starts or reads a cluster. Whatever the table does not name is used exactly as it was rendered, so that a
wrong argument, a missing ConfigMap or a Service with the wrong port fails in the sandbox as it would in a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from gpuyard.errors import InputError, Problem, listed
from gpuyard.manifests import Identity, Manifest, Rendered
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
    """A container of a rendered Deployment as a local process."""

    name: str
    namespace: str
    account: str
    program: Program
    folder: Path
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    ports: Mapping[str, int]
    guards: tuple[Identity, ...] = ()
    """Webhook configurations that call it; it is ready when all of them hold its authority's certificate."""


@dataclass
class Local:
    """The controllers to run, the objects that are applied in another form, and the table of all substitutions.

    certificates: Secrets (namespace, name) that an install Job would make, and the Service each one is for.
    """

    controllers: dict[Identity, Controller] = field(default_factory=dict[Identity, Controller])
    manifests: dict[Identity, Manifest] = field(default_factory=dict[Identity, Manifest])
    certificates: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    table: list[Substitution] = field(default_factory=list[Substitution])

    def manifest(self, rendered: Rendered) -> Manifest:
        """Return what is applied for an object."""
        return self.manifests.get(rendered.identity, rendered.manifest)


def run_locally(
    objects: Iterable[Rendered],
    binaries: Mapping[str, Path],
    folder: Path,
    ports: Mapping[str, Mapping[str, int]] | None = None,
) -> Local:
    """Return how the rendered Deployments whose programs are known run as processes.

    folder: below it each controller has one of its own. ports: of controllers that run already, by name and purpose.
    Raises InputError for a controller that cannot run outside a pod.
    """
    local = Local()
    for rendered in objects:
        if rendered.identity.kind == "Deployment":
            for container in rendered.manifest["spec"]["template"]["spec"]["containers"]:
                program = PROGRAMS.get(repository(container["image"]))
                if program:
                    name = rendered.identity.name
                    known = (ports or {}).get(name) or dict(
                        zip(program.ports, free_ports(len(program.ports)), strict=True)
                    )
                    _add_controller(local, rendered, container, program, binaries, folder / name, known)
    return local


def _add_controller(
    local: Local,
    rendered: Rendered,
    container: Manifest,
    program: Program,
    binaries: Mapping[str, Path],
    folder: Path,
    ports: Mapping[str, int],
) -> None:
    who = rendered.identity
    pod: Manifest = rendered.manifest["spec"]["template"]["spec"]
    account = pod.get("serviceAccountName") or pod.get("serviceAccount") or "default"
    table = _Table(local, str(who))
    binary = binaries[program.binary]
    table.row("image", container["image"], str(binary))
    if rendered.manifest["spec"].get("replicas", 1) != 1:
        table.row("spec.replicas", str(rendered.manifest["spec"]["replicas"]), "1 process")
    mounts = tuple(_mounts(rendered, pod, container, folder))
    for mount in mounts:
        table.row(f"volumeMounts {mount.path}", f"{mount.kind} {mount.name}".strip(), str(mount.folder))

    folders = {mount.path: str(mount.folder) for mount in sorted(mounts, key=lambda one: len(one.path), reverse=True)}
    # All in one pass: the folder in place of one path may begin like another path.
    paths = re.compile(rf"(?<![\w./-])({'|'.join(map(re.escape, folders)) or '(?!)'})(?=/|$)")

    def moved(text: str) -> str:
        return paths.sub(lambda match: folders[match[1]], text)

    arguments = [*container.get("command", [])[1:], *container.get("args", [])]
    if container.get("command"):
        table.row("command", container["command"][0], str(binary))
    kept = [moved(argument) for argument in arguments]
    table.row("serviceAccountName", account, f"--kubeconfig={folder / 'kubeconfig'}, acting as this account")
    flags = {port.flag: port.form.format(ports[purpose]) for purpose, port in program.ports.items()}
    for flag, value in (flags | dict(program.flags)).items():
        kept, before = set_flag(kept, flag, value)
        table.row(f"args {flag}", before, value)
    environment = {variable["name"]: moved(_value(rendered, variable)) for variable in container.get("env", ())}
    local.controllers[who] = Controller(
        name=who.name,
        namespace=who.namespace,
        account=account,
        program=program,
        folder=folder,
        command=(str(binary), *kept, f"--kubeconfig={folder / 'kubeconfig'}"),
        environment=environment,
        mounts=mounts,
        ports=dict(ports),
    )


@dataclass
class _Table:
    local: Local
    object: str

    def row(self, field: str, rendered: str, local: str) -> None:
        self.local.table.append(Substitution(self.object, field, rendered, local))


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
