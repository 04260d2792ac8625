"""TFJob."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from components.jobs import RESOURCES, register
from components.jobs.tensorflow import TensorFlowJob, tensorflow_run
from gpuyard.errors import InputError
from gpuyard.model.registry import Registry
from tests.components.clusters import cluster


def described(**job: Any) -> dict[str, Any]:
    base = {"name": "ranker", "team": "vision", "kind": "tensorflow", "image": "registry.acme.com/ranker:1", "gpus": 1}
    return base | {"replicas": {"chief": 1, "worker": 6, "ps": 2}, "pools": ["l4"]} | job


def spec(**job: Any) -> dict[str, Any]:
    environment = cluster(job=described(**job))
    (found,) = environment.jobs.values()
    assert isinstance(found, TensorFlowJob)
    (run,) = tensorflow_run(environment, found)
    assert run.manifest["kind"] == "TFJob"
    assert run.id == "TFJob/vision/ranker"
    return run.manifest["spec"]


def test_the_kind_is_run_by_the_training_operator() -> None:
    registry = Registry()
    register(registry)
    kind = registry.kinds["tensorflow"]
    assert (kind.model, kind.render, kind.addon) == (TensorFlowJob, tensorflow_run, "training-operator")
    assert RESOURCES == ("pytorchjobs", "tfjobs")


def test_roles_are_spelled_as_the_operator_wants_them() -> None:
    replicas = spec(replicas={"chief": 1, "worker": 6, "ps": 2, "evaluator": 1})["tfReplicaSpecs"]
    assert {role: replica["replicas"] for role, replica in replicas.items()} == {
        "Chief": 1,
        "Worker": 6,
        "PS": 2,
        "Evaluator": 1,
    }
    for replica in replicas.values():
        assert replica["restartPolicy"] == "OnFailure"
        (container,) = replica["template"]["spec"]["containers"]
        assert container["name"] == "tensorflow"


def test_a_role_without_pods_is_left_out() -> None:
    assert spec(replicas={"worker": 2})["tfReplicaSpecs"].keys() == {"Worker"}


def test_chief_and_workers_hold_the_gpus() -> None:
    replicas = spec(replicas={"chief": 1, "worker": 6, "ps": 2, "evaluator": 1})["tfReplicaSpecs"]
    limits = {
        role: replica["template"]["spec"]["containers"][0]["resources"]["limits"] for role, replica in replicas.items()
    }
    assert limits == {
        "Chief": {"memory": "39Gi", "nvidia.com/gpu": "1"},
        "Worker": {"memory": "39Gi", "nvidia.com/gpu": "1"},
        "PS": {"memory": "16Gi"},
        "Evaluator": {"memory": "16Gi"},
    }


def test_parameter_servers_stand_on_cpu_nodes() -> None:
    pod = spec()["tfReplicaSpecs"]["PS"]["template"]["spec"]
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["m7i.8xlarge"]
    assert "tolerations" not in pod
    assert "env" not in pod["containers"][0]


def test_the_gang_is_every_pod() -> None:
    assert spec(priority="batch")["runPolicy"]["schedulingPolicy"] == {
        "minAvailable": 9,
        "queue": "vision",
        "priorityClass": "batch",
    }


def test_workers_fit_beside_parameter_servers_in_the_share_of_their_gpus() -> None:
    environment = cluster(job=described())
    replicas = spec()["tfReplicaSpecs"]
    cpus = sum(
        replica["replicas"] * int(replica["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        for replica in replicas.values()
    )
    assert cpus == 7 * 10 + 2 * 4
    assert cpus <= environment.quota_resources({"l4": 7})["cpu"]


@pytest.mark.parametrize(
    ("replicas", "policy"),
    [({"worker": 2}, "AllWorkers"), ({"worker": 2, "ps": 1}, "AllWorkers"), ({"chief": 1}, None)],
)
def test_without_a_chief_the_job_ends_with_its_last_worker(replicas: dict[str, int], policy: str | None) -> None:
    assert spec(replicas=replicas).get("successPolicy") == policy


def test_somebody_has_to_train() -> None:
    with pytest.raises(ValidationError, match="a job needs a chief or a worker"):
        TensorFlowJob.model_validate(described(replicas={"ps": 2}))


def test_there_is_one_chief() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        TensorFlowJob.model_validate(described(replicas={"chief": 2}))


def test_tf_config_is_the_operators() -> None:
    with pytest.raises(InputError, match="the training operator sets TF_CONFIG itself"):
        spec(env={"TF_CONFIG": "{}"})
    assert spec(env={"MASTER_ADDR": "elsewhere"})["tfReplicaSpecs"]
