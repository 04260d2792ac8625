"""An environment: one cluster and everything that runs on it, as typed data.

`gpuyard.model.load` reads it from `stacks/<name>/`. Every value is plain: no Pulumi Output, no secret.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, GetJsonSchemaHandler, field_validator, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from gpuyard.errors import Origin
from gpuyard.manifests.quantity import add_resources
from gpuyard.manifests.scheduling import GPU
from gpuyard.manifests.scheduling import Taint as NodeTaint
from gpuyard.model.fabrics import FABRICS, Fabric
from gpuyard.model.jobs import Job
from gpuyard.model.layers import Path, Written
from gpuyard.model.machines import MACHINES, Machine
from gpuyard.model.settings import Dns1035Label, DnsLabel, Quantity, Settings

Provider = Literal["eks", "gke", "aks", "oci", "on-prem", "kubeadm", "kind"]

VERSIONS = tuple(f"1.{minor}" for minor in range(30, 38))
"""Minor versions of Kubernetes that clusters may have."""

POOL_LABEL = "gpuyard.dev/pool"


class Cluster(Settings):
    """Which cluster this is. `protect` refuses to delete volumes, queues and namespaces until that is said twice."""

    name: DnsLabel
    provider: Provider
    kubernetes: Annotated[str, Field(json_schema_extra={"enum": [*VERSIONS]})]
    protect: bool = False
    registry: str = ""

    @field_validator("kubernetes")
    @classmethod
    def supported(cls, value: str) -> str:
        if value not in VERSIONS:
            raise ValueError(f"accepted are the minor versions {VERSIONS[0]} to {VERSIONS[-1]}")
        return value


class Nodes(Settings):
    """How many nodes a pool has. `nodes: 8` is short for a fixed size."""

    min: Annotated[int, Field(ge=0)]
    max: Annotated[int, Field(ge=1)]

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "integer", "minimum": 1}, handler(core_schema)]}

    @model_validator(mode="before")
    @classmethod
    def fixed(cls, value: Any) -> Any:
        return {"min": value, "max": value} if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def ordered(self) -> Nodes:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is larger than max {self.max}")
        return self


class Taint(Settings):
    """A taint that the pool's nodes carry beside the one that keeps CPU work off GPU nodes."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class Pool(Settings):
    """Nodes of one machine type. The pool's nodes carry the labels in `selector`."""

    machine: Machine
    nodes: Nodes
    capacity: Literal["on-demand", "spot", "reserved"] = "on-demand"
    fabric: Fabric | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    taints: list[Taint] = Field(default_factory=list[Taint])

    @field_validator("machine", mode="before")
    @classmethod
    def from_catalogue(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value not in MACHINES:
                from gpuyard.errors import listed, nearest

                hint = nearest(value, MACHINES)
                raise ValueError(
                    f"no machine of the catalogue is called {value}; "
                    + (hint or f"accepted: {listed(MACHINES, limit=40)}, or a map of its own")
                )
            return MACHINES[value]
        return value

    @field_validator("fabric", mode="before")
    @classmethod
    def fabric_by_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value not in FABRICS:
                from gpuyard.errors import listed

                raise ValueError(f"no fabric is called {value}; accepted: {listed(FABRICS)}")
            return FABRICS[value]
        return value

    @model_validator(mode="after")
    def can_be_selected(self) -> Pool:
        if not self.selector:
            raise ValueError("nothing tells this pool's nodes apart: give the labels that they all carry")
        return self

    @model_validator(mode="after")
    def machine_has_fabric(self) -> Pool:
        if self.fabric and self.fabric.name not in self.machine.nics:
            has = ", ".join(self.machine.nics) or "none"
            raise ValueError(f"machine {self.machine.name} has no {self.fabric.name} interfaces; its fabrics: {has}")
        return self

    @property
    def selector(self) -> dict[str, str]:
        """Labels that every node of this pool has and no node of another pool has."""
        return dict(self.labels) or self.machine.node_labels

    @cached_property
    def node(self) -> dict[str, Decimal]:
        """What one node offers to pods, by resource: allocatable CPU and memory, GPUs, NICs and huge pages."""
        offer = {"cpu": self.machine.allocatable_cpu, "memory": self.machine.allocatable_memory}
        if self.machine.gpus:
            offer[GPU] = Decimal(self.machine.gpus)
        return offer | self.fabric_resources

    @cached_property
    def fabric_resources(self) -> dict[str, Decimal]:
        """What one node offers because of its fabric: interfaces and huge pages."""
        return self.fabric.node_resources(self.machine) if self.fabric else {}

    @property
    def gpus(self) -> int:
        """GPUs of the pool at its largest size."""
        return self.machine.gpus * self.nodes.max


class Priority(Settings):
    """A PriorityClass, and which generation of GPUs its jobs are sent to when they name no pool."""

    value: Annotated[int, Field(ge=-1_000_000_000, le=1_000_000_000)]
    prefer: Literal["newest", "oldest"] = "newest"


class SharedQueue(Settings):
    """A queue beside the teams' own, which the named teams (left out: all of them) may use."""

    quota: dict[str, Annotated[int, Field(ge=0)]]
    share: Annotated[int, Field(ge=1, le=65535)] = 1
    teams: list[str] | None = None


class Scheduling(Settings):
    """Who places gangs, with which priorities, and the queues beside the teams' own."""

    gang: Literal["volcano", "none"] = "volcano"
    priorities: dict[DnsLabel, Priority] = Field(default_factory=dict)
    queues: dict[DnsLabel, SharedQueue] = Field(default_factory=dict)


class StorageClass(Settings):
    """A StorageClass by the type of its driver; which options a type takes is checked by the storage component."""

    type: Literal["ebs-gp3", "efs", "fsx-lustre", "nfs", "local-path"]
    default: bool = False
    reclaim: Literal["Delete", "Retain"] = "Delete"
    throughput: int | None = None
    iops: int | None = None
    file_system: str | None = None
    subnet: str | None = None
    security_groups: list[str] | None = None
    server: str | None = None
    share: str | None = None

    @property
    def shared(self) -> bool:
        """Whether pods on several nodes can mount one volume (ReadWriteMany)."""
        return self.type in ("efs", "fsx-lustre", "nfs")


class Dataset(Settings):
    """Data that jobs read, mounted at the same path in every pod and environment."""

    class_: str = Field(alias="class")
    size: Quantity
    mount: Annotated[str, Field(pattern=r"^/.*[^/]$")] | None = None


class Storage(Settings):
    """Storage classes and datasets by name, and the class of checkpoints that name none."""

    classes: dict[DnsLabel, StorageClass] = Field(default_factory=dict)
    datasets: dict[Dns1035Label, Dataset] = Field(default_factory=dict)
    checkpoints: str | None = None


class Members(Settings):
    """Groups of the identity provider: admins manage the namespace's jobs and roles, members run jobs."""

    admin: list[str] = Field(default_factory=list[str])
    member: list[str] = Field(default_factory=list[str])


class Team(Settings):
    """A namespace of people who share a quota.

    quota: GPUs of each GPU pool, CPUs of each CPU pool; memory, NICs and the rest follow from the pool's machine.
    share: weight against other teams when the cluster is full.
    """

    name: Annotated[Dns1035Label, Field(max_length=40)]
    members: Members = Members()
    quota: dict[str, Annotated[int, Field(ge=0)]]
    share: Annotated[int, Field(ge=1, le=65535)] = 1
    datasets: list[str] = Field(default_factory=list[str])
    secrets: list[str] = Field(default_factory=list[str])
    pull_secrets: list[str] = Field(default_factory=list[str])


S = TypeVar("S", bound=Settings)
T = TypeVar("T")


@dataclass
class Environment:
    """Everything that is known of one cluster before a single object is made."""

    name: str
    cluster: Cluster
    pools: dict[str, Pool]
    scheduling: Scheduling
    storage: Storage
    addons: dict[str, Settings]
    teams: dict[str, Team]
    jobs: dict[str, Job]
    written: dict[Path, list[Written]] = field(default_factory=dict[Path, list[Written]])
    """Where each value came from, the last one in force: ("pools", "h100", "nodes") or ("jobs", "resnet50", "gpus")."""
    shared: dict[Any, Any] = field(default_factory=dict[Any, Any], init=False, repr=False, compare=False)
    """What one build made once for all objects that have it; see `share`."""

    def share(self, key: Any, make: Callable[[], T]) -> T:
        """Return what `make` made for this key in this build. Nobody changes it afterwards.

        Ten thousand jobs of one pool have the same tolerations: one list takes less memory than ten thousand, and what
        is worked out for it is worked out once.
        """
        if key not in self.shared:
            self.shared[key] = make()
        return self.shared[key]

    def origin(self, *path: str | int) -> Origin | None:
        """Return the file and line of a value, or of the nearest map around it that was written."""
        for length in range(len(path), 0, -1):
            places = self.written.get(path[:length])
            if places:
                return places[-1].origin
        return None

    def node_labels(self, pool: str) -> dict[str, str]:
        """Return the labels that are known of every node of a pool."""
        found = self.pools[pool]
        product = {"nvidia.com/gpu.product": found.machine.product} if found.machine.product else {}
        return {"kubernetes.io/os": "linux", POOL_LABEL: pool, **product, **found.machine.node_labels, **found.labels}

    def node_taints(self, pool: str) -> tuple[NodeTaint, ...]:
        """Return the taints of a pool's nodes that keep pods away which do not tolerate them."""
        found = self.pools[pool]
        own = [(one.key, one.value, one.effect) for one in found.taints if one.effect != "PreferNoSchedule"]
        return (*([(GPU, "", "NoSchedule")] if found.machine.gpus else []), *own)

    def addon(self, name: str, settings: type[S]) -> S | None:
        """Return the settings of an add-on, or None when this environment does not have it."""
        found = self.addons.get(name)
        return found if isinstance(found, settings) else None

    def job_pools(self, job: Job) -> list[str]:
        """Return the GPU pools that may run a job, the preferred one first.

        They are those the job names; left out, all GPU pools that its queue has a quota of, newest or oldest generation
        first as the job's priority says. One gang runs on one kind of node: when its pods need the fabric, only pools
        with the same interfaces as the first one remain.
        """
        names = list(job.pools)
        if not names:
            queue = self.scheduling.queues.get(job.queue or "")
            quota = queue.quota if queue else self.teams[job.team].quota
            prefer = self.scheduling.priorities[job.priority].prefer if job.priority else "newest"
            sign = -1 if prefer == "newest" else 1
            usable = [
                name for name, pool in self.pools.items() if pool.machine.gpus >= job.gpus > 0 and quota.get(name)
            ]
            names = sorted(usable, key=lambda name: (sign * self.pools[name].machine.generation, name))
            if names and job.gpu_pods > 1:
                first = self.fabric_shape(names[0])
                names = [name for name in names if self.fabric_shape(name) == first]
        return names

    def fabric_shape(self, pool: str) -> tuple[str, int]:
        """Return the fabric of a pool and the interfaces of one node; ("", 0) without a fabric."""
        fabric = self.pools[pool].fabric
        return (fabric.name, self.pools[pool].machine.nics[fabric.name]) if fabric else ("", 0)

    def usable_queues(self, team: str) -> list[str]:
        """Return the queues that a team may use: its own, then the shared ones by name."""
        shared = [name for name, queue in self.scheduling.queues.items() if queue.teams is None or team in queue.teams]
        return [team, *sorted(shared)]

    def cpu_pools(self) -> list[str]:
        """Return the pools without GPUs, by name."""
        return sorted(name for name, pool in self.pools.items() if not pool.machine.gpus)

    def quota_resources(self, quota: dict[str, int]) -> dict[str, Decimal]:
        """Return what a quota in GPUs (of a CPU pool: in CPUs) comes to in every resource.

        A GPU brings its share of the node's CPUs, memory, NICs and huge pages, so that a team can fill exactly the
        nodes it pays for. The ResourceQuota and the queue's capability are both this number.
        """
        amounts: list[dict[str, Decimal]] = []
        for name, count in quota.items():
            pool = self.pools[name]
            of = Decimal(pool.machine.gpus) if pool.machine.gpus else pool.machine.allocatable_cpu
            amounts.append({resource: value * count / of for resource, value in pool.node.items()})
        return add_resources(amounts)
