"""`--only PATTERN`: which objects of a render a person means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from gpuyard.errors import InputError, Problem, nearest
from gpuyard.manifests import Rendered

JOB_LABEL = "gpuyard.dev/job"


def names_of(rendered: Rendered) -> list[str]:
    """Return what an object can be called: job/NAME, component/NAME, layer/NAME, Kind/NAME, Kind/NAMESPACE/NAME."""
    who = rendered.identity
    names = [f"component/{rendered.component}", f"layer/{rendered.layer}", f"{who.kind}/{who.name}", rendered.id]
    if who.namespace:
        names.append(f"{who.kind}/{who.namespace}/{who.name}")
    job = rendered.manifest["metadata"].get("labels", {}).get(JOB_LABEL)
    return [*names, f"job/{job}"] if job else names


def only(objects: Iterable[Rendered], patterns: Sequence[str]) -> list[Rendered]:
    """Return the objects that one of the patterns matches, in their order; `*` and `?` are wildcards.

    Raises InputError for a pattern that matches nothing: a typo would otherwise deploy nothing and say fine.
    """
    everything = [(rendered, names_of(rendered)) for rendered in objects]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for _, names in everything for name in names):
            known = {name for _, names in everything for name in names}
            hint = (
                nearest(pattern, known)
                or "accepted: job/NAME, component/NAME, layer/NAME, Kind/NAME, Kind/NAMESPACE/NAME"
            )
            raise InputError(Problem("nothing matches --only", detail=f"{pattern}; {hint}"))
    if not patterns:
        return [rendered for rendered, _ in everything]
    return [r for r, names in everything if any(fnmatchcase(name, pattern) for name in names for pattern in patterns)]
