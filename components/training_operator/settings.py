"""What a person may set under `addons: training-operator:`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gpuyard.model.settings import Settings


class TrainingOperatorSettings(Settings):
    """The operator that runs PyTorchJob, TFJob and their kin.

    threads:    jobs of one kind that are worked on at the same time.
    init-image: image in which workers wait for their master's name to resolve; left out, upstream's own through
                `cluster.registry`. It needs `sh` and `nslookup`.
    """

    threads: Annotated[int, Field(ge=1, le=64)] = 4
    init_image: Annotated[str, Field(min_length=1)] | None = None
