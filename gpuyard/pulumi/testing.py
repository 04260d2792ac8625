"""A Pulumi engine in this process, for tests: runs a program and tells what it registered. No CLI, no provider.

It keeps the raw request of every registration, so that options, dependencies and secrets are seen as the engine would
see them, and echoes inputs as outputs. Nothing is defaulted, awaited or diffed.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from google.protobuf import empty_pb2, json_format
from pulumi.runtime import mocks
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import SETTINGS, configure

from gpuyard.manifests.data import is_list, is_map
from gpuyard.pulumi.properties import whole

SECRET = "[secret]"
"""What stands in `props` for a secret value."""

_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"


@dataclass(frozen=True)
class Registered:
    """One registration, as the engine received it. `parent` and `dependencies` are URNs, dependencies sorted."""

    urn: str
    type: str
    name: str
    custom: bool
    parent: str
    provider: str
    version: str
    props: dict[str, Any]
    dependencies: tuple[str, ...]
    protect: bool
    retain_on_delete: bool
    delete_before_replace: bool
    ignore_changes: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """What one run of a program registered, sorted by URN, and the outputs of its components, by URN."""

    resources: list[Registered]
    outputs: dict[str, dict[str, Any]]

    def of_type(self, prefix: str) -> list[Registered]:
        """Return the resources whose type begins with `prefix`: "kubernetes:"."""
        return [resource for resource in self.resources if resource.type.startswith(prefix)]


class DuplicateUrnError(Exception):
    """Two resources with one URN, which a real engine refuses."""


def run(
    program: Callable[[], object],
    *,
    stack: str,
    project: str = "gpuyard",
    config: Mapping[str, str] | None = None,
    preview: bool = False,
    timeout: float = 120,
) -> Run:
    """Run a Pulumi program and return what it registered. What the program raises is raised.

    timeout: seconds; an Output that never resolves would wait for ever. The error names what came last.
    """
    # A fresh context has a root stack, a configuration and settings of its own: runs do not see each other.
    return contextvars.Context().run(_run, program, stack, project, config or {}, preview, timeout)


def _run(
    program: Callable[[], object], stack: str, project: str, config: Mapping[str, str], preview: bool, timeout: float
) -> Run:
    monitor = _Monitor()
    untyped: Any = monitor
    settings: Any = SETTINGS  # its attributes are context variables in disguise
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        configure(
            mocks.MockSettings(
                monitor=monitor,
                monitor_features=set(untyped.GetDeploymentInfo(empty_pb2.Empty()).supportedFeatures),
                engine=mocks.MockEngine(None),
                project=project,
                stack=stack,
                dry_run=preview,
                organization="organization",
                callbacks=None,
            )
        )
        # Left out, these are shared by the whole process.
        settings.outputs = set()
        settings.package_refs = {}
        settings.base_providers_by_ref = {}
        pulumi.runtime.set_all_config(dict(config))

        def main() -> None:
            program()  # what it returns is nobody's business; Pulumi would wait for it

        work = pulumi.runtime.run_in_stack(main)
        try:
            loop.run_until_complete(asyncio.wait_for(work, timeout))
        except TimeoutError as error:
            last = next(reversed(monitor.registered), "nothing")
            raise TimeoutError(f"not done after {timeout:g} s; registered last: {last}") from error
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return Run([monitor.registered[urn] for urn in sorted(monitor.registered)], monitor.outputs)


class _Monitor(mocks.MockMonitor):
    """Answers the program in the engine's place. Reads and calls have no answer: our programs make none."""

    def __init__(self) -> None:
        no_mocks: Any = None  # they would answer what is answered or refused here
        super().__init__(no_mocks)
        self.registered: dict[str, Registered] = {}
        self.outputs: dict[str, dict[str, Any]] = {}

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802, the name is the protocol's
        urn: str = self.make_urn(request.parent, request.type, request.name)
        if request.type == "pulumi:pulumi:Stack":
            return resource_pb2.RegisterResourceResponse(urn=urn)
        resource = _registered(urn, request)
        other = self.registered.setdefault(urn, resource)
        if other is not resource:
            raise DuplicateUrnError(f"{urn} is registered twice")
        id_ = f"{request.name}-id" if request.custom else ""
        return resource_pb2.RegisterResourceResponse(urn=urn, id=id_, object=request.object)

    def Invoke(self, request: Any) -> Any:  # noqa: N802, the name is the protocol's
        raise NotImplementedError(f"the program called {request.tok}")

    def ReadResource(self, request: Any) -> Any:  # noqa: N802, the name is the protocol's
        raise NotImplementedError(f"the program read {request.type} {request.name}")

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802, the name is the protocol's
        self.outputs[request.urn] = decode(json_format.MessageToDict(request.outputs))
        return empty_pb2.Empty()


def _registered(urn: str, request: Any) -> Registered:
    return Registered(
        urn=urn,
        type=request.type,
        name=request.name,
        custom=request.custom,
        parent=request.parent,
        provider=request.provider,
        version=request.version,
        props=decode(json_format.MessageToDict(request.object)),
        dependencies=tuple(sorted(request.dependencies)),
        protect=request.protect,
        retain_on_delete=request.retainOnDelete,
        delete_before_replace=request.deleteBeforeReplace,
        ignore_changes=tuple(request.ignoreChanges),
    )


def decode(value: Any) -> Any:
    """Return a property as plain data: whole numbers as int (the protocol knows only floats), secrets masked."""
    if is_map(value):
        secret = value.get(_SIGNATURE) == _SECRET_SIGNATURE
        return SECRET if secret else {key: decode(item) for key, item in value.items()}
    if is_list(value):
        return [decode(item) for item in value]
    return whole(value)
