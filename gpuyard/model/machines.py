"""The machine catalogue: what one node of each type has, so that a pool can be one line.

Every entry names the page its figures were read from. Memory is what the provider states, in the unit it states.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from gpuyard.manifests.quantity import parse_quantity
from gpuyard.manifests.schemas.text import value_problem
from gpuyard.model.settings import Quantity, Settings

GENERATIONS = {"V100": 70, "T4": 75, "A100": 80, "A10G": 86, "L4": 89, "H100": 90, "H200": 90, "B200": 100}
"""CUDA compute capability of a GPU, times ten: a larger number is a newer generation.

Source: https://developer.nvidia.com/cuda-gpus
"""


class Machine(Settings):
    """One node. The catalogue has the usual ones; a pool may write its own as a map with the same keys.

    cpu:    hardware threads as Kubernetes counts them.
    memory: of the whole node; pods get less, see `allocatable_memory`.
    gpu:    short name of the card, a key of GENERATIONS.
    nics:   interfaces by fabric, as one node offers them.
    instance_type: whether nodes carry the type's name as node.kubernetes.io/instance-type; only clouds set that label,
            and only such a name has to be a label's value: "DGX H100" is none.
    """

    name: str
    cpu: Annotated[int, Field(ge=1)]
    memory: Quantity
    gpus: Annotated[int, Field(ge=0, le=16)] = 0
    gpu: str = ""
    gpu_memory: Quantity | None = None
    product: str = ""
    nics: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    instance_type: bool = False
    source: str = ""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"enum": sorted(MACHINES)}, handler(core_schema)]}

    @model_validator(mode="after")
    def known_gpu(self) -> Machine:
        if self.gpus and self.gpu not in GENERATIONS:
            raise ValueError(
                f"gpu is {self.gpu or 'left out'}; a machine with GPUs names one of {', '.join(sorted(GENERATIONS))}"
            )
        return self

    @model_validator(mode="after")
    def name_as_label(self) -> Machine:
        if self.instance_type and (problem := value_problem(self.name)):
            raise ValueError(f"with instance_type the name is a label of nodes, but {problem}")
        return self

    @property
    def generation(self) -> int:
        """Generation of the card, see GENERATIONS; 0 without GPUs."""
        return GENERATIONS.get(self.gpu, 0)

    @property
    def node_labels(self) -> dict[str, str]:
        """Labels that tell nodes of this type apart: the cloud's instance type, else the GPU that was discovered."""
        if self.instance_type:
            return {"node.kubernetes.io/instance-type": self.name}
        return {"nvidia.com/gpu.product": self.product} if self.product else {}

    @property
    def allocatable_cpu(self) -> Decimal:
        """CPUs left for pods, in whole threads: 6 % and at least one stay with the system and DaemonSets."""
        return Decimal(self.cpu - max(1, -(-self.cpu * 6 // 100)))

    @property
    def allocatable_memory(self) -> Decimal:
        """Memory left for pods in bytes, in whole GiB: 8 % and at least 2 GiB stay with the system and DaemonSets.

        Managed services keep back 2 to 7 % of large nodes (Azure's own quota for ND H100 counts 1800 of 1900 GiB).
        """
        gib = parse_quantity(self.memory) / 2**30
        return (gib - max(Decimal(2), gib * 8 / 100)).to_integral_value(rounding="ROUND_FLOOR") * 2**30


_EC2 = "https://docs.aws.amazon.com/ec2/latest/instancetypes/"
_GCE = "https://cloud.google.com/compute/docs/"
_AZURE = "https://learn.microsoft.com/azure/virtual-machines/sizes/"
_OCI = "https://docs.oracle.com/iaas/Content/Compute/References/computeshapes.htm"
_DGX = "https://docs.nvidia.com/dgx/dgxh100-user-guide/introduction-to-dgxh100.html"


def _nvidia(
    name: str, cpu: int, memory: str, gpus: int, product: str, gpu_memory: str, source: str, **nics: int
) -> Machine:
    # A machine on one's own premises has no cloud that labels its nodes.
    cloud = not name.startswith("DGX")
    gpu = product.removeprefix("NVIDIA-").removeprefix("Tesla-").split("-")[0]
    return Machine(
        name=name,
        cpu=cpu,
        memory=memory,
        gpus=gpus,
        gpu=gpu,
        gpu_memory=gpu_memory,
        product=product,
        nics=nics,
        source=source,
        instance_type=cloud,
    )


MACHINES = {
    machine.name: machine
    for machine in [
        # GPUs. `product` is the value of the label nvidia.com/gpu.product that GPU feature discovery writes.
        _nvidia("p5.48xlarge", 192, "2Ti", 8, "NVIDIA-H100-80GB-HBM3", "80Gi", _EC2 + "ac.html", efa=32),
        _nvidia("p4d.24xlarge", 96, "1152Gi", 8, "NVIDIA-A100-SXM4-40GB", "40Gi", _EC2 + "ac.html", efa=4),
        _nvidia("g5.48xlarge", 192, "768Gi", 8, "NVIDIA-A10G", "24Gi", _EC2 + "ac.html"),
        _nvidia("g6.12xlarge", 48, "192Gi", 4, "NVIDIA-L4", "24Gi", _EC2 + "ac.html"),
        _nvidia("a3-highgpu-8g", 208, "1872Gi", 8, "NVIDIA-H100-80GB-HBM3", "80Gi", _GCE + "gpus"),
        _nvidia("a3-megagpu-8g", 208, "1872Gi", 8, "NVIDIA-H100-80GB-HBM3", "80Gi", _GCE + "gpus"),
        _nvidia("a3-ultragpu-8g", 224, "2952Gi", 8, "NVIDIA-H200", "141Gi", _GCE + "gpus"),
        _nvidia(
            "Standard_ND96isr_H100_v5", 96, "1900Gi", 8, "NVIDIA-H100-80GB-HBM3", "80Gi",
            _AZURE + "gpu-accelerated/ndh100v5-series", infiniband=8,
        ),
        _nvidia("BM.GPU.H100.8", 224, "2Ti", 8, "NVIDIA-H100-80GB-HBM3", "80Gi", _OCI),
        _nvidia("DGX H100", 224, "2Ti", 8, "NVIDIA-H100-80GB-HBM3", "80Gi", _DGX),
        # CPU machines for system services and for roles without GPUs.
        Machine(name="m7i.2xlarge", cpu=8, memory="32Gi", instance_type=True, source=_EC2 + "gp.html"),
        Machine(name="m7i.8xlarge", cpu=32, memory="128Gi", instance_type=True, source=_EC2 + "gp.html"),
        Machine(name="c7i.8xlarge", cpu=32, memory="64Gi", instance_type=True, source=_EC2 + "co.html"),
        Machine(name="r7i.8xlarge", cpu=32, memory="256Gi", instance_type=True, source=_EC2 + "mo.html"),
        Machine(
            name="n2-standard-32", cpu=32, memory="128Gi", instance_type=True, source=_GCE + "general-purpose-machines"
        ),
        Machine(
            name="Standard_D32s_v5", cpu=32, memory="128Gi", instance_type=True,
            source=_AZURE + "general-purpose/dsv5-series",
        ),
        Machine(name="VM.Standard.E5.Flex.16", cpu=32, memory="256Gi", instance_type=True, source=_OCI),
    ]
}  # fmt: skip
