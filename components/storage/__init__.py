"""StorageClasses, and the volumes that are made of them."""

from __future__ import annotations

from collections.abc import Iterator

from components.storage.claims import claim, dataset_claim, dataset_volume
from components.storage.storage_class import class_problems, storage_class
from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Rendered, declare
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Component, Registry

__all__ = ["claim", "component", "dataset_claim", "dataset_volume", "register", "storage_class", "storage_classes"]

component = Component("storage")


@component.part
def storage_classes(environment: Environment, settings: None) -> Iterator[Rendered]:
    """Yield one StorageClass for each entry of `storage.classes`. Raises InputError with all that is wrong in them."""
    classes = environment.storage.classes
    problems = [
        *(problem for name, options in classes.items() for problem in class_problems(environment, name, options)),
        *_several_defaults(environment),
        *_long_datasets(environment),
    ]
    if problems:
        raise InputError(problems)
    for name, options in classes.items():
        yield declare(storage_class(name, options), origin=environment.origin("storage", "classes", name))


def _several_defaults(environment: Environment) -> Iterator[Problem]:
    defaults = [name for name, options in environment.storage.classes.items() if options.default]
    for name in defaults[1:]:
        yield Problem(
            "more than one default storage class",
            environment.origin("storage", "classes", name, "default"),
            f"storage.classes.{name}.default",
            f"{', '.join(defaults)} are all the default",
            f"keep `default: true` on one of them, for example {defaults[0]}",
        )


def _long_datasets(environment: Environment) -> Iterator[Problem]:
    for name in environment.storage.datasets:
        volume = dataset_volume(name)
        if len(volume) > 63:
            yield Problem(
                "name too long",
                environment.origin("storage", "datasets", name),
                f"storage.datasets.{name}",
                f"{len(name)} characters; its volume is called {volume} and may have 63",
                f"use at most {63 - len(dataset_volume(''))} characters",
            )


def register(registry: Registry) -> None:
    """Add this component."""
    registry.add(component)
