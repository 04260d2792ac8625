"""StorageClasses by type, and what is refused in them."""

from __future__ import annotations

from typing import Any

import pytest

from components.storage import storage_classes
from gpuyard.errors import InputError
from tests.components.clusters import cluster

LUSTRE = {"type": "fsx-lustre", "throughput": 500, "subnet": "subnet-1", "security-groups": ["sg-1", "sg-2"]}


def rendered(options: dict[str, Any]) -> dict[str, Any]:
    (storage_class,) = storage_classes(cluster(storage={"classes": {"one": options}}), None)
    return storage_class.manifest


def refused(**storage: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        list(storage_classes(cluster(storage=storage), None))
    return [f"{problem.field}: {problem.title}: {problem.detail}" for problem in caught.value.problems]


def test_a_disk_of_one_node_is_encrypted_and_bound_when_its_pod_is_placed() -> None:
    assert rendered({"type": "ebs-gp3", "default": True, "iops": 6000}) == {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "one",
            "labels": {"app.kubernetes.io/managed-by": "gpuyard"},
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "ebs.csi.aws.com",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "parameters": {"type": "gp3", "encrypted": "true", "iops": "6000"},
        "allowVolumeExpansion": True,
    }


def test_lustre() -> None:
    lustre = rendered(LUSTRE | {"reclaim": "Retain"})
    assert lustre["provisioner"] == "fsx.csi.aws.com"
    assert lustre["reclaimPolicy"] == "Retain"
    assert lustre["volumeBindingMode"] == "Immediate"
    assert lustre["mountOptions"] == ["flock"]
    assert lustre["parameters"] == {
        "deploymentType": "PERSISTENT_2",
        "dataCompressionType": "LZ4",
        "fileSystemTypeVersion": "2.15",
        "automaticBackupRetentionDays": "0",
        "perUnitStorageThroughput": "500",
        "subnetId": "subnet-1",
        "securityGroupIds": "sg-1,sg-2",
    }
    assert "annotations" not in lustre["metadata"]


def test_efs() -> None:
    efs = rendered({"type": "efs", "file-system": "fs-1"})
    assert efs["provisioner"] == "efs.csi.aws.com"
    assert efs["parameters"] == {"provisioningMode": "efs-ap", "directoryPerms": "700", "fileSystemId": "fs-1"}


def test_nfs_waits_for_its_server() -> None:
    nfs = rendered({"type": "nfs", "server": "10.0.0.5", "share": "/export"})
    assert nfs["provisioner"] == "nfs.csi.k8s.io"
    assert nfs["parameters"] == {"server": "10.0.0.5", "share": "/export"}
    assert nfs["mountOptions"] == ["nfsvers=4.1", "hard"]


def test_a_folder_of_a_node_is_bound_when_its_pod_is_placed() -> None:
    local = rendered({"type": "local-path"})
    assert local["provisioner"] == "rancher.io/local-path"
    assert local["volumeBindingMode"] == "WaitForFirstConsumer"
    assert not {"parameters", "mountOptions", "allowVolumeExpansion"} & local.keys()


def test_every_parameter_is_a_string() -> None:
    assert {type(value) for value in rendered(LUSTRE)["parameters"].values()} == {str}


def test_options_that_a_type_needs_and_does_not_take() -> None:
    assert refused(classes={"one": {"type": "fsx-lustre", "throughput": 500, "iops": 5, "security-groups": []}}) == [
        "storage.classes.one.iops: option of another type: type fsx-lustre takes throughput, subnet, security-groups",
        "storage.classes.one.subnet: missing option: a class of type fsx-lustre needs subnet",
        "storage.classes.one.security-groups: missing option: a class of type fsx-lustre needs security-groups",
    ]
    assert refused(classes={"one": {"type": "local-path", "throughput": 5}}) == [
        "storage.classes.one.throughput: option of another type: type local-path takes no further options"
    ]


def test_a_throughput_that_cannot_be_ordered() -> None:
    assert refused(classes={"one": LUSTRE | {"throughput": 200}}) == [
        "storage.classes.one.throughput: unknown value: 200; accepted: 125, 250, 500, 1000 MB/s for each TiB"
    ]


def test_two_default_classes() -> None:
    environment = cluster(
        storage={
            "classes": {
                "disk": {"type": "ebs-gp3", "default": True},
                "local": {"type": "local-path", "default": True},
            }
        }
    )
    with pytest.raises(InputError) as caught:
        list(storage_classes(environment, None))
    assert str(caught.value) == (
        "error  more than one default storage class\n"
        f"  {environment.origin('storage', 'classes', 'local', 'default')}   storage.classes.local.default\n"
        "  disk, local are all the default\n"
        "  fix: keep `default: true` on one of them, for example disk"
    )


def test_the_name_of_a_dataset_leaves_room_for_its_volume() -> None:
    name = "d" * 56
    assert refused(datasets={name: {"class": "shared", "size": "1Gi"}}) == [
        f"storage.datasets.{name}: name too long: 56 characters; its volume is called dataset-{name} and may have 63"
    ]
