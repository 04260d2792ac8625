"""Upstream manifests: take the objects that are known, patch them, and refuse a file that has changed under a patch.

Versions and image tags are the lock file's.
"""

from __future__ import annotations

from typing import Any

from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests import Manifest, identity
from gpuyard.manifests.data import is_list, is_map
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Pin, Source

Path = tuple[str | int, ...]


def mirrored(environment: Environment, image: str) -> str:
    """Return an image or repository as this cluster pulls it: `cluster.registry` in place of the registry's host.

    An image without a host comes from Docker Hub, where images without a slash live under `library/`.
    """
    registry = environment.cluster.registry.rstrip("/")
    if not registry:
        return image
    host, slash, rest = image.partition("/")
    if not slash:
        return f"{registry}/library/{image}"
    has_host = "." in host or ":" in host or host == "localhost"
    return f"{registry}/{rest if has_host else image}"


def image_tag(name: str, pin: Pin, image: str) -> str:
    """Return the tag of an image. Raises InputError when the lock entry `name` has none."""
    if image not in pin.images:
        raise InputError(
            Problem(
                "no tag for this image",
                Origin("gpuyard.lock.yaml"),
                f"{name}.images",
                image,
                f"add the image, with the tag that belongs to {name} {pin.version}",
            )
        )
    return pin.images[image]


class Upstream:
    """The objects of one upstream file. Each is taken once; what nobody takes is an error at the end.

    The verbs follow JSON Patch: `replace`, `remove` and `expect` need a value to be there, `add` needs it not to be. A
    patch that does not fit raises InputError naming the source, its version, the file, the object and the field.
    """

    def __init__(self, name: str, source: Source, file: str) -> None:
        self.name = name
        self.version = source.version
        self.file = file
        self._source = source
        self._objects = source.manifests(file)

    def take(self, kind: str, name: str) -> Manifest:
        """Return the object of this kind and name, and cross it off."""
        for index, manifest in enumerate(self._objects):
            if manifest["kind"] == kind and manifest["metadata"]["name"] == name:
                return self._objects.pop(index)
        raise self._misfit(f"{kind} {name}", "is not in the file")

    def take_all(self, *kinds: str) -> list[Manifest]:
        """Return every object of these kinds in the order of the file, and cross them off; none at all is an error."""
        found = [manifest for manifest in self._objects if manifest["kind"] in kinds]
        if not found:
            raise self._misfit(" or ".join(kinds), "is not in the file")
        self._objects = [manifest for manifest in self._objects if manifest["kind"] not in kinds]
        return found

    def finish(self) -> None:
        """Refuse what nobody took: an object that is new upstream is either used or dropped by name."""
        if self._objects:
            names = ", ".join(sorted(str(identity(manifest)) for manifest in self._objects))
            raise self._misfit(names, "is in the file and is neither used nor dropped")

    def read(self, manifest: Manifest, path: Path) -> Any:
        """Return the value at a path."""
        value: Any = manifest
        for depth, step in enumerate(path):
            if not _has(value, step):
                raise self._misfit(str(identity(manifest)), "nothing is there", path[: depth + 1])
            value = value[step]
        return value

    def expect(self, manifest: Manifest, path: Path, value: Any) -> None:
        """Check that upstream still says what our own part of the object relies on."""
        found = self.read(manifest, path)
        if found != value:
            raise self._misfit(str(identity(manifest)), f"expected {value}, found {found}", path)

    def replace(self, manifest: Manifest, path: Path, value: Any) -> None:
        """Change a value that upstream sets."""
        self.read(manifest, path)
        self.read(manifest, path[:-1])[path[-1]] = value

    def add(self, manifest: Manifest, path: Path, value: Any) -> None:
        """Set a value that upstream leaves out."""
        parent = self.read(manifest, path[:-1])
        if _has(parent, path[-1]):
            raise self._misfit(str(identity(manifest)), f"upstream sets {parent[path[-1]]} by now", path)
        parent[path[-1]] = value

    def remove(self, manifest: Manifest, path: Path) -> None:
        """Take a value away that upstream sets."""
        self.read(manifest, path)
        del self.read(manifest, path[:-1])[path[-1]]

    def set_flag(self, manifest: Manifest, path: Path, flag: str, value: str) -> None:
        """Change the one `flag=value` among the arguments at a path."""
        arguments: list[str] = self.read(manifest, path)
        places = [index for index, argument in enumerate(arguments) if argument.startswith(f"{flag}=")]
        if len(places) != 1:
            raise self._misfit(str(identity(manifest)), f"{flag}= is there {len(places)} times", path)
        arguments[places[0]] = f"{flag}={value}"

    def set_image(self, manifest: Manifest, container: Path, repository: str, image: str) -> None:
        """Change the image of a container that upstream takes from `repository`, with whatever tag."""
        path = (*container, "image")
        found: str = self.read(manifest, path)
        if found != repository and not found.startswith(f"{repository}:"):
            raise self._misfit(str(identity(manifest)), f"expected an image of {repository}, found {found}", path)
        self.replace(manifest, path, image)

    def image(self, repository: str) -> str:
        """Return `repository:tag`, with the tag that is locked."""
        return f"{repository}:{image_tag(self.name, self._source, repository)}"

    def _misfit(self, what: str, how: str, path: Path = ()) -> InputError:
        field = ".".join(str(step) for step in path)
        return misfit(f"{self.name} {self.version}, {self.file}", f"{what}{f', {field}' if field else ''}: {how}")


def misfit(upstream: str, detail: str) -> InputError:
    """Return the error that stops a render when what is locked is not what a component was written for."""
    return InputError(
        Problem(
            "a patch does not fit its upstream file",
            detail=f"{upstream}\n{detail}",
            fix="read what changed upstream and change the component that patches it, or lock the former version",
        )
    )


def _has(value: Any, step: str | int) -> bool:
    if isinstance(step, int):
        return is_list(value) and -len(value) <= step < len(value)
    return is_map(value) and step in value
