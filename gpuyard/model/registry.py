"""Content registers itself here: add-ons, other components, job kinds. The framework never imports content.

A component is one package of `components/`. It registers its settings model and its parts; a part is a pure function
from an environment to objects. A part that reads an upstream source says which one, so that a missing source is known
before anything is rendered; one that needs no more than its pin is rendered without the source.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests import Manifest, Rendered
from gpuyard.manifests.graph import Graph

if TYPE_CHECKING:
    from gpuyard.model.environment import Environment
    from gpuyard.model.jobs import Job
    from gpuyard.model.settings import Settings


class Pin(Protocol):
    """What the lock file says of an upstream system. It is known without the cache."""

    @property
    def version(self) -> str: ...

    @property
    def images(self) -> Mapping[str, str]:
        """Container image without its tag -> the tag that belongs to this version."""
        ...


class Source(Pin, Protocol):
    """An upstream system at its locked version, as parts read it."""

    def manifests(self, path: str) -> list[Manifest]:
        """Return the objects of a YAML file, or of every YAML file of a folder in name order. They are the caller's."""
        ...

    def chart(self, *, release: str, namespace: str, kubernetes: str, values: dict[str, Any]) -> list[Manifest]:
        """Return the objects that the chart expands to, CRDs included, hooks dropped."""
        ...


class Sources(Protocol):
    """What `gpuyard.sources` gives to a build."""

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return those of the names whose source is not in the cache, in the given order."""
        ...

    def open(self, name: str) -> Source:
        """Return a source that is in the cache."""
        ...

    def pin(self, name: str) -> Pin:
        """Return what is locked of a source, whether or not it is in the cache."""
        ...


Plain = Callable[["Environment", Any], Iterable[Rendered]]
Sourced = Callable[["Environment", Any, Source], Iterable[Rendered]]
Pinned = Callable[["Environment", Any, Pin], Iterable[Rendered]]


class Part(NamedTuple):
    """One function of a component, and the lock entry whose source or whose pin it takes; both are empty for none."""

    function: Callable[..., Iterable[Rendered]]
    source: str = ""
    pin: str = ""


@dataclass
class Component:
    """A capability of the platform.

    settings: the model of its entry under `addons:`. Such a component is an add-on and is rendered where an environment
              names it; one without a settings model is rendered always and gets None as its settings.
    """

    name: str
    settings: type[Settings] | None = None
    parts: list[Part] = field(default_factory=list[Part])

    def part(self, function: Plain) -> Plain:
        """Register a function `(environment, settings) -> objects`."""
        self.parts.append(Part(function))
        return function

    def sourced(self, source: str) -> Callable[[Sourced], Sourced]:
        """Register a function `(environment, settings, source) -> objects` that reads the lock entry `source`."""

        def register(function: Sourced) -> Sourced:
            self.parts.append(Part(function, source=source))
            return function

        return register

    def pinned(self, pin: str) -> Callable[[Pinned], Pinned]:
        """Register a function `(environment, settings, pin) -> objects` that reads no more than what is locked.

        It is never skipped: it needs nothing from the cache.
        """

        def register(function: Pinned) -> Pinned:
            self.parts.append(Part(function, pin=pin))
            return function

        return register


J = TypeVar("J", bound="Job")


class JobKind(NamedTuple, Generic[J]):
    """A kind of training job: the word under `kind:`, its model, and the function that makes its objects."""

    name: str
    model: type[J]
    render: Callable[[Environment, J], Iterable[Rendered]]
    addon: str
    """The add-on whose operator runs it; an environment without that add-on cannot have such a job."""


@dataclass
class Registry:
    """All content of one project, by name."""

    components: dict[str, Component] = field(default_factory=dict[str, Component])
    kinds: dict[str, JobKind[Any]] = field(default_factory=dict[str, JobKind[Any]])

    def add(self, *items: Component | JobKind[Any]) -> None:
        """Add content; a name that is taken is a mistake in the project and raises ValueError."""
        for item in items:
            table: dict[str, Any] = self.components if isinstance(item, Component) else self.kinds
            if item.name in table:
                raise ValueError(f"{type(item).__name__} {item.name} is registered twice")
            table[item.name] = item

    @property
    def addons(self) -> dict[str, Component]:
        return {name: component for name, component in self.components.items() if component.settings}


class Build(NamedTuple):
    """The objects of an environment in the order to apply them, and the sources that it had to go without."""

    objects: list[Rendered]
    skipped: tuple[str, ...] = ()


def build(registry: Registry, environment: Environment, sources: Sources, *, allow_missing: bool = False) -> Build:
    """Make every object of an environment.

    Raises InputError when a source is missing (unless `allow_missing`), when something cannot be rendered, when two
    objects have one name, or when objects need each other.
    """
    parts = list(_parts(registry, environment))
    wanted = sorted({part.source for _, _, part in parts if part.source})
    skipped = tuple(sources.missing(wanted))
    if skipped and not allow_missing:
        raise missing_sources(skipped)
    objects: list[Rendered] = []
    problems: list[Problem] = []
    # Objects are plain dicts that all live until the end: collecting garbage among them only costs time.
    was_enabled = gc.isenabled()
    gc.disable()
    environment.shared.clear()
    try:
        for component, make in _functions(registry, environment, sources, skipped):
            try:
                objects.extend(rendered.of(component) for rendered in make())
            except InputError as error:
                problems.extend(error.problems)
        if problems:
            raise InputError(problems)
        return Build(Graph(objects).order(), skipped)
    finally:
        if was_enabled:
            gc.enable()


def missing_sources(names: Iterable[str]) -> InputError:
    """Return the error that stops a command when sources are not in the cache."""
    listed = list(names)
    return InputError(
        Problem(
            f"{len(listed)} {'source is' if len(listed) == 1 else 'sources are'} not in the cache",
            Origin("gpuyard.lock.yaml"),
            detail=", ".join(listed),
            fix=f"gpuyard sources pull {' '.join(listed)}, or go on without with --allow-missing-sources",
        )
    )


def _parts(registry: Registry, environment: Environment) -> Iterator[tuple[Component, Any, Part]]:
    for _, component in sorted(registry.components.items()):
        if component.settings is None or component.name in environment.addons:
            settings = environment.addons.get(component.name)
            yield from ((component, settings, part) for part in component.parts)


def _functions(
    registry: Registry, environment: Environment, sources: Sources, skipped: tuple[str, ...]
) -> Iterator[tuple[str, Callable[[], Iterable[Rendered]]]]:
    """Yield (component, function without arguments) for every part that can run, then for every job."""
    for component, settings, part in _parts(registry, environment):
        if part.pin:
            yield component.name, partial(part.function, environment, settings, sources.pin(part.pin))
        elif not part.source:
            yield component.name, partial(part.function, environment, settings)
        elif part.source not in skipped:
            yield component.name, partial(part.function, environment, settings, sources.open(part.source))
    for job in environment.jobs.values():
        yield "jobs", partial(registry.kinds[job.kind].render, environment, job)
