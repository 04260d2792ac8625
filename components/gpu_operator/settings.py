"""What a person may set under `addons: gpu-operator:`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gpuyard.model.settings import Settings


class GpuOperatorSettings(Settings):
    """NVIDIA's GPU Operator.

    driver:         who brings the GPU driver: `preinstalled` with the node image, or the `operator`. It must agree with
                    how the node pools are made; two drivers on one node break it.
    driver-version: of the operator's driver; left out, the one that this version of the operator was released with.
    auto-upgrade:   a new driver version is rolled out node by node, which evicts GPU pods; left out, not in clusters
                    with `protect`.
    """

    driver: Literal["preinstalled", "operator"]
    driver_version: Annotated[str, Field(pattern=r"^\d+(\.\d+){1,2}$")] | None = None
    auto_upgrade: bool | None = None

    @model_validator(mode="after")
    def driver_is_ours(self) -> GpuOperatorSettings:
        for field, value in (("driver-version", self.driver_version), ("auto-upgrade", self.auto_upgrade)):
            if value is not None and self.driver == "preinstalled":
                raise ValueError(f"{field} is for a driver that the operator installs; this one is preinstalled")
        return self
