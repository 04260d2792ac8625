"""`sandbox up | status | down`, and applying a render to a running sandbox."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests import LAYERS, Layer, Rendered
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Sources
from gpuyard.sandbox.api import Api
from gpuyard.sandbox.cluster import BINARIES as CLUSTER_BINARIES
from gpuyard.sandbox.cluster import Cluster, base_environment, healthy, set_nodes
from gpuyard.sandbox.inventory import ENGINE
from gpuyard.sandbox.localize import Substitution
from gpuyard.sandbox.mounts import forget_expected
from gpuyard.sandbox.nodes import nodes
from gpuyard.sandbox.processes import excerpt, marked, start, stop
from gpuyard.sandbox.programs import PROGRAMS
from gpuyard.sandbox.server_apply import Applied, apply_objects
from gpuyard.sandbox.stages import stages
from gpuyard.sandbox.state import DEFAULT_NAME, Home, Progress, Service, State
from gpuyard.sandbox.webhooks import certificate_names

BINARIES: tuple[str, ...] = (*CLUSTER_BINARIES, *dict.fromkeys(program.binary for program in PROGRAMS.values()))
"""Binaries of the lock file that a sandbox may need."""

_KUBELET = "kubelet"
_PATIENCE = 90


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
    engine: str = ENGINE,
) -> Sandbox:
    """Start a sandbox with the environment's pools, and apply the layers `crds` and `platform` of its render.

    One that runs as asked is left alone, what died is started again, and a sandbox whose control plane is damaged or
    of another make is cleaned away first.
    most_nodes: of one pool. run_for: how long training jobs run once all their pods do. engine: another one than ours
    deploys by itself, so nothing is applied.
    """
    home = Home(name)
    with home.locked(progress):
        cluster = Cluster(home, binaries, stages(sources.open("kwok")), certificate_names(objects))
        state = home.read()
        if state:
            _check_engine(state, engine)
        applied = objects if engine == ENGINE else ()
        wanted_nodes = nodes(environment, most_nodes)
        crds = _digest(one for one in applied if one.layer == "crds")
        digest = _digest((one for one in applied if one.layer == "platform"), crds, wanted_nodes, run_for)
        reusable = bool(state and state.cluster_digest == cluster.digest and state.environment == environment.name)
        if state and reusable and healthy(home, state):
            dead = _dead(home, state)
            if state.complete and state.objects_digest == digest and not dead:
                progress(f"sandbox {name} is already up")
                return Sandbox(name, home.kubeconfig, unchanged=True, table=_table(home))
            if dead:
                progress(f"starting again what has died: {', '.join(dead)}")
        else:
            if state:
                progress(f"sandbox {name} has no healthy control plane of this make; starting anew")
            home.clean()
            state = State(engine=engine, environment=environment.name, cluster_digest=cluster.digest)
            home.write(state)
            state.services = cluster.start()
            home.write(state)
            progress("control plane started")
        state.complete, state.objects_digest = False, digest
        home.write(state)
        api = Api(home.kubeconfig)
        set_nodes(api, wanted_nodes)
        progress(f"{len(wanted_nodes)} simulated nodes are ready")
        _start_kubelet(home, state, binaries, run_for)
        if engine == ENGINE:
            # Large CRDs keep a server busy for seconds, so those that are there are not sent again.
            for layer in ("crds", "platform") if state.crds_digest != crds else ("platform",):
                apply_objects(api, objects, environment=environment.name, progress=progress, layers=(layer,))
                state.crds_digest = crds
        _wait_for_kubelet(home, state, ready=engine == ENGINE)
        state.complete = True
        home.write(state)
        return Sandbox(name, home.kubeconfig, table=_table(home))


def apply(
    environment: str,
    objects: Sequence[Rendered],
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
        kubelet = state.services.get(_KUBELET) if state else None
        if not state or not kubelet or not kubelet.process.alive or not healthy(home, state):
            raise InputError(Problem("the sandbox is not healthy", fix="gpuyard sandbox up repairs it"))
        _check_engine(state, ENGINE)
        # Whatever comes of it, the sandbox no longer is what the last `up` made.
        state.crds_digest = state.objects_digest = ""
        home.write(state)
        api = Api(home.kubeconfig)
        applied = apply_objects(api, objects, environment=environment, progress=progress, layers=layers, only=only)
        _wait_for_kubelet(home, state, ready=True)
        return applied


def status(name: str = DEFAULT_NAME) -> Status:
    """Return what runs, without changing or waiting for anything."""
    home = Home(name)
    state = home.read() if home.exists else None
    if not state:
        return Status("broken" if home.exists else "absent")
    running = state.complete and not _dead(home, state) and healthy(home, state)
    processes = sorted((state.services | home.read_controllers()).items())
    return Status(
        "running" if running else "broken",
        state.environment,
        home.kubeconfig,
        {process: service.process.alive for process, service in processes},
        {process: service.log for process, service in processes},
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


def _check_engine(state: State, engine: str) -> None:
    """Refuse a sandbox that another engine deploys to: each would take the other's objects for changes by hand."""
    if state.engine != engine:
        raise InputError(
            Problem(
                "this sandbox belongs to another engine",
                detail=f"found {state.engine}; this command is for {engine}",
                fix=f"go on with --engine {state.engine}, or start an empty sandbox: gpuyard sandbox down",
            )
        )


def _dead(home: Home, state: State) -> list[str]:
    """Return the names of processes that should run and do not."""
    services = state.services | home.read_controllers()
    return sorted(name for name, service in services.items() if not service.process.alive)


def _table(home: Home) -> list[Substitution]:
    return [Substitution(*row) for _, service in sorted(home.read_controllers().items()) for row in service.table]


def _start_kubelet(home: Home, state: State, binaries: Mapping[str, Path], run_for: str) -> None:
    """Start the sandbox's own process; one that was started with the same arguments is left alone."""
    command = [sys.executable, "-m", "gpuyard.sandbox.kubelet", "--sandbox", home.name, "--run-for", run_for]
    for name in sorted({program.binary for program in PROGRAMS.values()}):
        command += ["--binary", f"{name}={binaries[name]}"]
    digest = hashlib.sha256("\0".join(command).encode()).hexdigest()[:16]
    running = state.services.get(_KUBELET)
    if running and running.process.alive and running.digest == digest:
        return
    if running:
        stop([running.process])
    log = home.folder("logs") / "kubelet.log"
    # The folder that holds this package, wherever it was installed or checked out; and the cache that holds us.
    environment = base_environment(home) | {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "GPUYARD_CACHE": str(home.path.parents[1]),
    }
    state.services[_KUBELET] = Service(
        start(command, folder=home.path, environment=environment, log=log), str(log), digest
    )
    home.write(state)


def _wait_for_kubelet(home: Home, state: State, *, ready: bool) -> None:
    """Wait until the kubelet has seen all that the cluster holds and, if asked, every controller runs as that says.

    Deployments are Available by now; a changed ConfigMap shows in none of them.
    """
    kubelet, began = state.services[_KUBELET], time.time()
    late: list[Service] = []
    while time.time() < began + _PATIENCE and kubelet.process.alive:
        # In this order: what runs is asked for once the kubelet has seen all.
        if home.last_beat() > began:
            late = [one for one in home.read_controllers().values() if ready and not (one.ready and one.process.alive)]
            if not late:
                return
        time.sleep(0.05)
    logs = [Path(one.log) for one in late] or [Path(kubelet.log)]
    raise InputError(
        Problem(
            "controllers do not become ready" if late else "the kubelet does not work",
            Origin(str(logs[0])),
            detail="\n".join(excerpt(log) for log in logs),
            fix="the logs say why",
        )
    )


def _digest(objects: Iterable[Rendered], *more: object) -> str:
    content = [[rendered.manifest for rendered in objects], more]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
