"""`sandbox up | status | down`, and applying a render to a running sandbox."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import LAYERS, Layer, Rendered
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Sources
from gpuyard.sandbox.api import Api
from gpuyard.sandbox.cluster import BINARIES as CLUSTER_BINARIES
from gpuyard.sandbox.cluster import Cluster, base_environment, healthy, set_nodes
from gpuyard.sandbox.controllers import Controllers, forget_expected
from gpuyard.sandbox.localize import Substitution
from gpuyard.sandbox.nodes import nodes
from gpuyard.sandbox.processes import marked, start, stop
from gpuyard.sandbox.programs import PROGRAMS
from gpuyard.sandbox.server_apply import Applied, apply_objects
from gpuyard.sandbox.stages import stages
from gpuyard.sandbox.state import DEFAULT_NAME, Home, Progress, Service, State
from gpuyard.sandbox.webhooks import certificate_names, localize

BINARIES: tuple[str, ...] = (*CLUSTER_BINARIES, *dict.fromkeys(program.binary for program in PROGRAMS.values()))
"""Binaries of the lock file that a sandbox may need."""

_PODS = "pods"


@dataclass(frozen=True)
class Sandbox:
    """A running sandbox. `unchanged`: it ran already as asked, and nothing was done."""

    name: str
    kubeconfig: Path
    unchanged: bool = False
    table: list[Substitution] = field(default_factory=list[Substitution])


@dataclass(frozen=True)
class Status:
    """What there is of a sandbox: `running`, `broken` (a process died, or `up` was interrupted), or `absent`.

    processes: whether each one lives. logs: where each one writes.
    """

    state: str
    environment: str = ""
    kubeconfig: Path | None = None
    processes: dict[str, bool] = field(default_factory=dict[str, bool])
    logs: dict[str, str] = field(default_factory=dict[str, str])


def up(
    environment: Environment,
    objects: Sequence[Rendered],
    binaries: Mapping[str, Path],
    sources: Sources,
    *,
    progress: Progress,
    name: str = DEFAULT_NAME,
    most_nodes: int = 4,
    run_for: str = "4s",
) -> Sandbox:
    """Start a sandbox with the environment's pools, and apply the layers `crds` and `platform` of its render.

    One that runs as asked is left alone, a controller that died is started again, and a sandbox whose control plane is
    damaged or of another make is cleaned away first.
    most_nodes: of one pool. run_for: how long training jobs run once all their pods do.
    """
    home = Home(name)
    with home.locked(progress):
        cluster = Cluster(home, binaries, stages(sources.open("kwok")), certificate_names(objects))
        state = home.read()
        wanted_nodes = nodes(environment, most_nodes)
        crds = _digest(one for one in objects if one.layer == "crds")
        digest = _digest((one for one in objects if one.layer == "platform"), crds, wanted_nodes, run_for)
        reusable = bool(state and state.cluster_digest == cluster.digest and state.environment == environment.name)
        if state and reusable and healthy(home, state):
            if state.complete and state.objects_digest == digest and not state.dead:
                progress(f"sandbox {name} is already up")
                local = localize(objects, binaries, home.path / "controllers", _ports(state))
                return Sandbox(name, home.kubeconfig, unchanged=True, table=local.table)
            if state.dead:
                progress(f"starting again what has died: {', '.join(state.dead)}")
        else:
            if state:
                progress(f"sandbox {name} has no healthy control plane of this make; starting anew")
            home.clean()
            state = State(environment=environment.name, cluster_digest=cluster.digest)
            home.write(state)
            state.services = cluster.start()
            home.write(state)
            progress("control plane started")
        state.complete, state.objects_digest = False, digest
        home.write(state)
        api = Api(home.kubeconfig)
        set_nodes(api, wanted_nodes)
        progress(f"{len(wanted_nodes)} simulated nodes are ready")
        _start_pods(home, state, run_for)
        controllers = _controllers(home, state, api, cluster, objects, binaries)
        # Large CRDs keep a server busy for seconds, so those that are there are not sent again.
        for layer in ("crds", "platform") if state.crds_digest != crds else ("platform",):
            apply_objects(
                api,
                objects,
                environment=environment.name,
                progress=progress,
                controllers=controllers,
                layers=(layer,),
            )
            state.crds_digest = crds
        state.complete = True
        home.write(state)
        return Sandbox(name, home.kubeconfig, table=controllers.local.table)


def apply(
    environment: str,
    objects: Sequence[Rendered],
    binaries: Mapping[str, Path],
    *,
    progress: Progress,
    name: str = DEFAULT_NAME,
    layers: Sequence[Layer] = LAYERS,
    only: Callable[[Rendered], bool] | None = None,
) -> Applied:
    """Apply a render to a sandbox that is up; controllers whose Deployment or configuration changed start anew."""
    home = Home(name)
    if not home.exists:
        raise InputError(Problem("the sandbox is not up", fix="gpuyard sandbox up"))
    with home.locked(progress):
        state = home.read()
        if not state or not healthy(home, state):
            raise InputError(Problem("the sandbox is not healthy", fix="gpuyard sandbox up repairs it"))
        api = Api(home.kubeconfig)
        controllers = _controllers(home, state, api, Cluster(home, binaries, ()), objects, binaries)
        # Whatever comes of it, the sandbox no longer is what the last `up` made.
        state.crds_digest = state.objects_digest = ""
        home.write(state)
        return apply_objects(
            api, objects, environment=environment, progress=progress, controllers=controllers, layers=layers, only=only
        )


def status(name: str = DEFAULT_NAME) -> Status:
    """Return what runs, without changing or waiting for anything."""
    home = Home(name)
    state = home.read() if home.exists else None
    if not state:
        return Status("broken" if home.exists else "absent")
    running = state.complete and not state.dead and healthy(home, state)
    return Status(
        "running" if running else "broken",
        state.environment,
        home.kubeconfig,
        {process: service.process.alive for process, service in sorted(state.services.items())},
        {process: service.log for process, service in sorted(state.services.items())},
    )


def down(*, progress: Progress, name: str = DEFAULT_NAME) -> bool:
    """Stop every process and delete every file of a sandbox; return whether there was one."""
    home = Home(name)
    # Processes may outlive a folder that somebody deleted by hand.
    there = home.exists or bool(marked(home.path))
    if there:
        with home.locked(progress):
            home.wipe()
    for program in PROGRAMS.values():
        if program.expects:
            forget_expected(Path(program.expects))
    return there


def _controllers(
    home: Home, state: State, api: Api, cluster: Cluster, objects: Sequence[Rendered], binaries: Mapping[str, Path]
) -> Controllers:
    local = localize(objects, binaries, home.path / "controllers", _ports(state))
    return Controllers(api, home, state, local, cluster.certificate())


def _ports(state: State) -> dict[str, dict[str, int]]:
    """Return the ports of the controllers that run; those of a stopped one may be taken by now."""
    return {name: service.ports for name, service in state.services.items() if service.process.alive}


def _start_pods(home: Home, state: State, run_for: str) -> None:
    running = state.services.get(_PODS)
    if running and running.process.alive and running.digest == run_for:
        return
    if running:
        stop([running.process])
    log = home.folder("logs") / "pods.log"
    command = [sys.executable, "-m", "gpuyard.sandbox.pods", "--kubeconfig", str(home.kubeconfig), "--run-for", run_for]
    # The folder that holds this package, wherever it was installed or checked out.
    environment = base_environment(home) | {"PYTHONPATH": str(Path(__file__).parents[2])}
    state.services[_PODS] = Service(
        start(command, folder=home.path, environment=environment, log=log), str(log), run_for
    )
    home.write(state)


def _digest(objects: Iterable[Rendered], *more: object) -> str:
    content = [[rendered.manifest for rendered in objects], more]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
