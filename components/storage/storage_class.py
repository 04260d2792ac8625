"""The StorageClass of each type, with the parameters that its driver reads; parameters are always strings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gpuyard.errors import Problem
from gpuyard.manifests import Manifest
from gpuyard.manifests.data import is_list
from gpuyard.model.environment import Environment, StorageClass
from gpuyard.model.settings import kebab

OPTIONS = ("throughput", "iops", "file_system", "subnet", "security_groups", "server", "share")
"""Fields of the model that only some types take."""

LUSTRE_THROUGHPUT = (125, 250, 500, 1000)
"""MB/s for each TiB that a PERSISTENT_2 file system can be ordered with."""


@dataclass(frozen=True)
class Driver:
    """One type of storage.

    parameters: what every class of this type has; `options` maps a field of the model to the driver's parameter.
    late:       bind a volume only when its pod is placed, because it stands in one zone or on one node.
    """

    provisioner: str
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    options: dict[str, str] = field(default_factory=dict[str, str])
    required: tuple[str, ...] = ()
    mount_options: tuple[str, ...] = ()
    late: bool = False
    expands: bool = False


DRIVERS = {
    "ebs-gp3": Driver(
        "ebs.csi.aws.com",
        parameters={"type": "gp3", "encrypted": "true"},
        options={"iops": "iops", "throughput": "throughput"},
        late=True,
        expands=True,
    ),
    # Each volume is an access point: a folder of its own on one file system, which grows by itself.
    "efs": Driver(
        "efs.csi.aws.com",
        parameters={"provisioningMode": "efs-ap", "directoryPerms": "700"},
        options={"file_system": "fileSystemId"},
        required=("file_system",),
        mount_options=("tls",),
    ),
    # Each volume is a file system. PERSISTENT_2 keeps data when a server fails, SCRATCH_2 would not.
    "fsx-lustre": Driver(
        "fsx.csi.aws.com",
        parameters={
            "deploymentType": "PERSISTENT_2",
            "dataCompressionType": "LZ4",
            "fileSystemTypeVersion": "2.15",
            "automaticBackupRetentionDays": "0",
        },
        options={
            "throughput": "perUnitStorageThroughput",
            "subnet": "subnetId",
            "security_groups": "securityGroupIds",
        },
        required=("throughput", "subnet", "security_groups"),
        mount_options=("flock",),
    ),
    # `hard`: a server that is away makes a training job wait instead of reading errors.
    "nfs": Driver(
        "nfs.csi.k8s.io",
        options={"server": "server", "share": "share"},
        required=("server", "share"),
        mount_options=("nfsvers=4.1", "hard"),
    ),
    "local-path": Driver("rancher.io/local-path", late=True),
}


def class_problems(environment: Environment, name: str, options: StorageClass) -> Iterator[Problem]:
    """Yield a problem for each option that the class's type needs and lacks, or does not take, or cannot have so."""
    driver = DRIVERS[options.type]
    path = ("storage", "classes", name)
    for option in OPTIONS:
        value: Any = getattr(options, option)
        key = kebab(option)
        place = environment.origin(*path, key), f"storage.classes.{name}.{key}"
        if value is None or value == []:
            if option in driver.required:
                yield Problem("missing option", *place, f"a class of type {options.type} needs {key}", f"add {key}:")
        elif option not in driver.options:
            taken = ", ".join(kebab(one) for one in driver.options) or "no further options"
            yield Problem("option of another type", *place, f"type {options.type} takes {taken}", f"take {key} out")
    if options.type == "fsx-lustre" and options.throughput not in (None, *LUSTRE_THROUGHPUT):
        yield Problem(
            "unknown value",
            environment.origin(*path, "throughput"),
            f"storage.classes.{name}.throughput",
            f"{options.throughput}; accepted: {', '.join(map(str, LUSTRE_THROUGHPUT))} MB/s for each TiB",
        )


def storage_class(name: str, options: StorageClass) -> Manifest:
    """Return the StorageClass of a checked entry."""
    driver = DRIVERS[options.type]
    parameters = dict(driver.parameters)
    for option, parameter in driver.options.items():
        value: Any = getattr(options, option)
        if value is not None:
            parameters[parameter] = ",".join(value) if is_list(value) else str(value)
    metadata: dict[str, Any] = {"name": name, "labels": {"app.kubernetes.io/managed-by": "gpuyard"}}
    if options.default:
        metadata["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    manifest: Manifest = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": metadata,
        "provisioner": driver.provisioner,
        "reclaimPolicy": options.reclaim,
        "volumeBindingMode": "WaitForFirstConsumer" if driver.late else "Immediate",
    }
    if parameters:
        manifest["parameters"] = parameters
    if driver.mount_options:
        manifest["mountOptions"] = list(driver.mount_options)
    if driver.expands:
        manifest["allowVolumeExpansion"] = True
    return manifest
