"""Storage as a Pulumi component."""

from __future__ import annotations

import pulumi

from components import storage
from gpuyard.pulumi.component import Component


class Storage(Component[None]):
    """The StorageClasses of an environment."""

    component = "storage"
    content = staticmethod(storage.register)
    exposes = {"classes": "StorageClass"}

    classes: pulumi.Output[list[str]]
