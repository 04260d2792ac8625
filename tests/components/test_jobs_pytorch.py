"""PyTorchJob."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from components.jobs import register
from components.jobs.pytorch import PyTorchJob, pytorch_run
from gpuyard.manifests import Rendered
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Registry
from tests.components.clusters import cluster


def described(**job: Any) -> dict[str, Any]:
    base = {"name": "resnet", "team": "vision", "kind": "pytorch", "image": "registry.acme.com/resnet:1", "gpus": 8}
    return base | job


def rendered(environment: Environment) -> Rendered:
    (job,) = environment.jobs.values()
    assert isinstance(job, PyTorchJob)
    *_, run = pytorch_run(environment, job)
    return run


def spec(**job: Any) -> dict[str, Any]:
    return rendered(cluster(job=described(**job))).manifest["spec"]


def test_the_kind_is_run_by_the_training_operator() -> None:
    registry = Registry()
    register(registry)
    kind = registry.kinds["pytorch"]
    assert (kind.model, kind.render, kind.addon) == (PyTorchJob, pytorch_run, "training-operator")


def test_a_run_is_named_after_the_job_file_and_never_touched_again() -> None:
    environment = cluster(job=described())
    (job,) = environment.jobs.values()
    run = rendered(environment)
    assert run.manifest["apiVersion"] == "kubeflow.org/v1"
    assert run.manifest["kind"] == "PyTorchJob"
    assert run.manifest["metadata"] == {
        "name": job.object_name,
        "namespace": "vision",
        "labels": {
            "app.kubernetes.io/managed-by": "gpuyard",
            "gpuyard.dev/team": "vision",
            "gpuyard.dev/job": "resnet",
        },
    }
    assert run.id == "PyTorchJob/vision/resnet"
    assert run.layer == "jobs"
    assert str(run.origin) == "jobs/resnet.yaml"
    life = run.lifecycle
    assert (life.protect, life.retain, life.replace, life.ignore, life.wait) == (False, True, "never", ("spec",), False)


def test_another_file_is_another_run_of_the_same_job() -> None:
    one, other = (rendered(cluster(job=described(args=args))) for args in (["a"], ["b"]))
    assert one.id == other.id
    assert one.manifest["metadata"]["name"] != other.manifest["metadata"]["name"]


def test_the_first_node_is_the_master() -> None:
    replicas = spec(nodes=4, pools=["h100"])["pytorchReplicaSpecs"]
    assert {role: replica["replicas"] for role, replica in replicas.items()} == {"Master": 1, "Worker": 3}
    assert {replica["restartPolicy"] for replica in replicas.values()} == {"OnFailure"}
    assert replicas["Master"]["template"] == replicas["Worker"]["template"]
    (container,) = replicas["Worker"]["template"]["spec"]["containers"]
    assert container["name"] == "pytorch"


def test_one_node_is_a_master_alone() -> None:
    assert spec()["pytorchReplicaSpecs"].keys() == {"Master"}


@pytest.mark.parametrize(("gpus", "processes"), [(8, "8"), (1, "1"), (0, "1")])
def test_one_process_for_each_gpu(gpus: int, processes: str) -> None:
    assert spec(gpus=gpus)["nprocPerNode"] == processes


def test_a_gang_is_all_pods_in_the_teams_queue() -> None:
    policy = spec(nodes=4, pools=["h100"], priority="research")["runPolicy"]
    assert policy["schedulingPolicy"] == {"minAvailable": 4, "queue": "vision", "priorityClass": "research"}
    assert policy["cleanPodPolicy"] == "Running"
    assert not {"ttlSecondsAfterFinished", "activeDeadlineSeconds"} & policy.keys()


def test_a_job_may_wait_in_a_shared_queue() -> None:
    assert spec(queue="overflow")["runPolicy"]["schedulingPolicy"] == {"minAvailable": 1, "queue": "overflow"}


def test_without_volcano_there_is_no_gang() -> None:
    run = rendered(cluster(job=described(), scheduling={"gang": "none"}))
    assert "schedulingPolicy" not in run.manifest["spec"]["runPolicy"]


def test_a_time_limit_is_in_seconds() -> None:
    assert spec(**{"time-limit": "12h"})["runPolicy"]["activeDeadlineSeconds"] == 43200


@pytest.mark.parametrize(
    ("nodes", "retries", "limit"),
    [
        # The operator fails a job when the restarts of all its pods have reached the limit.
        (1, 0, 0),
        (1, 3, 4),
        (4, 3, 13),
        (4, 0, 0),
    ],
)
def test_retries_are_of_the_whole_gang(nodes: int, retries: int, limit: int) -> None:
    assert spec(nodes=nodes, retries=retries, pools=["h100"])["runPolicy"]["backoffLimit"] == limit


def test_a_collective_that_hangs_leaves_a_trace() -> None:
    (container,) = spec()["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"]
    assert {one["name"]: one["value"] for one in container["env"]} == {
        "NCCL_DEBUG": "WARN",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "TORCH_NCCL_ENABLE_MONITORING": "1",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "20000",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "/dev/shm/nccl_trace_rank_",
        "TORCH_DIST_INIT_BARRIER": "1",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    }


def test_a_job_has_at_least_one_node() -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        PyTorchJob.model_validate(described(nodes=0))
