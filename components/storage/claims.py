"""PersistentVolumeClaims: datasets of a team and checkpoints of a job."""

from __future__ import annotations

from gpuyard.errors import Origin
from gpuyard.manifests import Layer, Lifecycle, Rendered, declare
from gpuyard.model.environment import Environment


def dataset_claim(environment: Environment, team: str, dataset: str, origin: Origin | None) -> Rendered:
    """Return the volume of a dataset in a team's namespace, named as `dataset_volume` says."""
    options = environment.storage.datasets[dataset]
    return claim(environment, team, dataset_volume(dataset), options.class_, options.size, origin=origin)


def dataset_volume(dataset: str) -> str:
    """Return the name of a dataset's claim, and of the volume in the pods that mount it."""
    return f"dataset-{dataset}"


def claim(
    environment: Environment,
    team: str,
    name: str,
    class_name: str,
    size: str,
    *,
    origin: Origin | None,
    layer: Layer = "platform",
) -> Rendered:
    """Return a claim that outlives what mounts it.

    It is never waited for: a class that binds late has no volume before the first pod. It is never replaced, which
    would lose the data.
    """
    mode = "ReadWriteMany" if environment.storage.classes[class_name].shared else "ReadWriteOnce"
    return declare(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": team,
                "labels": {"app.kubernetes.io/managed-by": "gpuyard", "gpuyard.dev/team": team},
            },
            "spec": {
                "accessModes": [mode],
                "storageClassName": class_name,
                "resources": {"requests": {"storage": size}},
            },
        },
        layer=layer,
        origin=origin,
        lifecycle=Lifecycle(protect=environment.cluster.protect, retain=True, replace="never", wait=False),
    )
