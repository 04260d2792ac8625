"""Fabrics: how pods on different nodes reach each other's GPUs, and everything that a pod needs for it."""

from __future__ import annotations

from decimal import Decimal

from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from gpuyard.manifests.quantity import parse_quantity
from gpuyard.model.machines import Machine
from gpuyard.model.settings import Quantity, Settings


class Fabric(Settings):
    """A fabric by its name; a pod takes all interfaces of its node or none."""

    name: str
    resource: str
    env: dict[str, str] = Field(default_factory=dict)
    hugepages: Quantity | None = None
    capabilities: list[str] = Field(default_factory=list[str])

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"enum": sorted(FABRICS)}

    def node_resources(self, machine: Machine) -> dict[str, Decimal]:
        """Return the extended resources and huge pages that one node offers for this fabric."""
        offer = {self.resource: Decimal(machine.nics[self.name])}
        if self.hugepages:
            offer["hugepages-2Mi"] = parse_quantity(self.hugepages)
        return offer


FABRICS = {
    fabric.name: fabric
    for fabric in [
        # aws-ofi-nccl and the EFA device plugin; 5120 MiB of huge pages for libfabric. NCCL_PROTO and RDMAV_FORK_SAFE
        # stay unset on purpose: both slow EFA down or break it.
        Fabric(
            name="efa",
            resource="vpc.amazonaws.com/efa",
            env={
                "FI_PROVIDER": "efa",
                "NCCL_TUNER_PLUGIN": "libnccl-ofi-tuner.so",
                "NCCL_BUFFSIZE": "8388608",
                "NCCL_P2P_NET_CHUNKSIZE": "524288",
                "NCCL_SOCKET_IFNAME": "^lo,docker,veth,eni,pod-id-link0",
            },
            hugepages="5120Mi",
            capabilities=["IPC_LOCK"],
        ),
        # ND H100 v5 with the network operator's SR-IOV resource: one InfiniBand interface for each GPU.
        Fabric(
            name="infiniband",
            resource="rdma/ib",
            env={
                "NCCL_IB_PCI_RELAXED_ORDERING": "1",
                "NCCL_IB_QPS_PER_CONNECTION": "4",
                "NCCL_IGNORE_CPU_AFFINITY": "1",
                "NCCL_SOCKET_IFNAME": "eth0",
            },
            capabilities=["IPC_LOCK"],
        ),
    ]
}
