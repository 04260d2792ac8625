"""Which cluster is whose: recorded in the stack files at the first deploy, checked before every one.

The name of a kubeconfig context differs from person to person, so it says nothing. The UID of the namespace kube-system
is made with the cluster and never changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from gpuyard.cache import write_atomically
from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests.data import at
from gpuyard.manifests.yaml.read import read_settings

KEY = "gpuyard:cluster-uid"


class Recorded(NamedTuple):
    """A UID and the stack file that records it."""

    stack: str
    uid: str
    origin: Origin


def stack_file(stacks: Path, stack: str) -> Path:
    """Return where Pulumi keeps the configuration of a stack."""
    return stacks / f"Pulumi.{stack}.yaml"


def recorded(stacks: Path) -> list[Recorded]:
    """Return every UID that a stack file records, by name of the file."""
    found: list[Recorded] = []
    for file in sorted(stacks.glob("Pulumi.*.yaml")):
        text = file.read_text()
        if not text.strip():
            continue
        settings, lines = read_settings(text, f"{stacks.name}/{file.name}")
        uid = at(settings, "config", KEY)
        if uid is not None:
            stack = file.name.removeprefix("Pulumi.").removesuffix(".yaml")
            found.append(Recorded(stack, str(uid), Origin(f"{stacks.name}/{file.name}", lines["config", KEY])))
    return found


def check_cluster(uid: str, own: Iterable[str], known: Iterable[Recorded]) -> None:
    """Refuse a cluster that is not this environment's, or that is another's.

    own: the stacks of this environment. Its three stacks are on one cluster, so a record of one counts for all.
    """
    own = set(own)
    for record in known:
        if record.stack in own and record.uid != uid:
            raise InputError(
                Problem(
                    "wrong cluster",
                    record.origin,
                    KEY,
                    f"recorded: {record.uid}\nthis one: {uid}",
                    "switch the kubeconfig context; if this one was built in its place, as each new sandbox is,\n"
                    "delete this line and forget what the other one held, for each of "
                    f"{', '.join(sorted(own))}:\npulumi stack rm --force --preserve-config STACK",
                )
            )
        if record.stack not in own and record.uid == uid:
            raise InputError(
                Problem(
                    "wrong cluster",
                    record.origin,
                    KEY,
                    f"this cluster, {uid}, is that of stack {record.stack}",
                    "switch the kubeconfig context",
                )
            )


_EMPTY_CONFIG = re.compile(r"config:[ ]*(?:\{[ ]*\})?(?P<rest>[ ]*(?:#.*)?)")


def record_cluster(uid: str, stacks: Path, stack: str) -> None:
    """Write the UID into the file of a stack that has none yet. Everything else in the file stays as it is."""
    file = stack_file(stacks, stack)
    lines = file.read_text().splitlines() if file.exists() else []
    entry = f"  {KEY}: {uid}"
    for number, line in enumerate(lines):
        if match := _EMPTY_CONFIG.fullmatch(line):
            lines[number : number + 1] = [f"config:{match['rest']}", entry]
            break
        if line.startswith("config:"):
            place = Origin(f"{stacks.name}/{file.name}", number + 1)
            raise InputError(
                Problem(
                    "cannot record the cluster",
                    place,
                    "config",
                    line,
                    f"write config: as a block, with {entry.strip()}",
                )
            )
    else:
        lines += ["config:", entry]
    write_atomically(file, ("\n".join(lines) + "\n").encode())
